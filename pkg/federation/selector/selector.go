// Package selector matches objects with the resource selectors of policies.
package selector

import (
	"fmt"
	"runtime"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

// Rank tells how closely selectors name an object. A closer match counts for more.
type Rank int

// Ranks, from not at all to by name.
const (
	NoMatch Rank = iota
	ByKind
	ByLabels
	ByName
)

// Best is the closest match among the selectors. Namespaced policies pass their namespace, to which they are bound.
func Best(selectors []policyv1alpha1.ResourceSelector, policyNamespace string, object *unstructured.Unstructured) Rank {
	best := NoMatch
	for _, s := range selectors {
		best = max(best, match(s, policyNamespace, object))
	}
	return best
}

// Unserved tells of the selectors whose kind the fleet doesn't serve: mistyped ones, or such that are served later.
func Unserved(selectors []policyv1alpha1.ResourceSelector, serves func(schema.GroupVersionKind) bool) []string {
	var problems []string
	for i, s := range selectors {
		if !serves(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)) {
			problems = append(problems, fmt.Sprintf(
				"spec.resourceSelectors[%d]: the fleet serves no kind %s in %s; nothing is selected by it until it "+
					"does", i, s.Kind, s.APIVersion))
		}
	}
	return problems
}

func match(s policyv1alpha1.ResourceSelector, policyNamespace string, object *unstructured.Unstructured) Rank {
	if s.APIVersion != object.GetAPIVersion() || s.Kind != object.GetKind() {
		return NoMatch
	}
	if policyNamespace != "" && object.GetNamespace() != policyNamespace {
		return NoMatch
	}
	if s.Namespace != "" && object.GetNamespace() != s.Namespace {
		return NoMatch
	}
	if s.Name != "" {
		return rankIf(s.Name == object.GetName(), ByName)
	}
	if s.LabelSelector == nil {
		return ByKind
	}
	selector := compiled(s.LabelSelector)
	return rankIf(selector != nil && selector.Matches(labels.Set(object.GetLabels())), ByLabels)
}

// compilations are kept as long as the selectors that they are of: a large one takes long to compile, and is asked
// about every object of its kind.
var compilations sync.Map

// compiled gives nil for an invalid selector. One that was asked about must not be changed; those of a cache never are.
func compiled(s *metav1.LabelSelector) labels.Selector {
	key := weak.Make(s)
	if known, found := compilations.Load(key); found {
		return *known.(*labels.Selector)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		selector = nil
	}
	compilations.Store(key, &selector)
	runtime.AddCleanup(s, func(key weak.Pointer[metav1.LabelSelector]) { compilations.Delete(key) }, key)
	return selector
}

func rankIf(matches bool, rank Rank) Rank {
	if matches {
		return rank
	}
	return NoMatch
}
