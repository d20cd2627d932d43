package dependencies

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// index knows which bindings refer to what, to wake them when that appears, changes its labels, or goes.
type index struct {
	mu sync.Mutex
	// names and selectors of a kind, by referrer.
	names     map[named]map[types.NamespacedName]bool
	selectors map[schema.GroupVersionKind]map[types.NamespacedName][]references.Reference
	of        map[types.NamespacedName][]references.Reference
}

type named struct {
	schema.GroupVersionKind
	types.NamespacedName
}

func newIndex() *index {
	return &index{
		names:     map[named]map[types.NamespacedName]bool{},
		selectors: map[schema.GroupVersionKind]map[types.NamespacedName][]references.Reference{},
		of:        map[types.NamespacedName][]references.Reference{},
	}
}

// set replaces what is known of a referrer.
func (i *index) set(referrer types.NamespacedName, refers []references.Reference) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.of[referrer] {
		i.forget(referrer, r)
	}
	delete(i.of, referrer)
	if len(refers) == 0 {
		return
	}
	i.of[referrer] = refers
	for _, r := range refers {
		i.remember(referrer, r)
	}
}

func (i *index) remember(referrer types.NamespacedName, r references.Reference) {
	if r.Labels != nil {
		if i.selectors[r.GroupVersionKind] == nil {
			i.selectors[r.GroupVersionKind] = map[types.NamespacedName][]references.Reference{}
		}
		i.selectors[r.GroupVersionKind][referrer] = append(i.selectors[r.GroupVersionKind][referrer], r)
		return
	}
	key := named{r.GroupVersionKind, r.NamespacedName}
	if i.names[key] == nil {
		i.names[key] = map[types.NamespacedName]bool{}
	}
	i.names[key][referrer] = true
}

func (i *index) forget(referrer types.NamespacedName, r references.Reference) {
	if r.Labels != nil {
		delete(i.selectors[r.GroupVersionKind], referrer)
		return
	}
	key := named{r.GroupVersionKind, r.NamespacedName}
	delete(i.names[key], referrer)
	if len(i.names[key]) == 0 {
		delete(i.names, key)
	}
}

// referrers of an object of a kind.
func (i *index) referrers(gvk schema.GroupVersionKind, object *unstructured.Unstructured) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var result []types.NamespacedName
	for referrer := range i.names[named{
		gvk, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	}] {
		result = append(result, referrer)
	}
	for referrer, refers := range i.selectors[gvk] {
		for _, r := range refers {
			if r.Matches(gvk, object) {
				result = append(result, referrer)
				break
			}
		}
	}
	return result
}
