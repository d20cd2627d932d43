// Package wake knows which bindings a change of a cluster can concern, so that only those are looked at.
package wake

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Interest is what a binding depends on.
type Interest struct {
	// Kind of the object.
	Kind schema.GroupVersionKind
	// Placement, and a text that is the same for equal placements only.
	Placement   core.Placement
	Fingerprint string
	// Clusters that the object is placed on.
	Clusters []string
	// Settled bindings stay where they are: only the clusters that they are placed on concern them.
	Settled bool
	// Waiting bindings lack room, so that they are concerned by every change of it in clusters that may take them.
	Waiting bool
}

// Index of the interests of all bindings. Bindings with the same kind and placement share one check.
type Index struct {
	mu       sync.Mutex
	bindings map[types.NamespacedName]Interest
	placed   map[string]sets.Set[types.NamespacedName]
	groups   map[groupKey]*group
	kinds    map[schema.GroupVersionKind]sets.Set[types.NamespacedName]
}

type groupKey struct {
	kind        schema.GroupVersionKind
	fingerprint string
}

type group struct {
	placement core.Placement
	members   sets.Set[types.NamespacedName]
	waiting   sets.Set[types.NamespacedName]
}

// NewIndex makes an empty one.
func NewIndex() *Index {
	return &Index{
		bindings: map[types.NamespacedName]Interest{}, placed: map[string]sets.Set[types.NamespacedName]{},
		groups: map[groupKey]*group{}, kinds: map[schema.GroupVersionKind]sets.Set[types.NamespacedName]{},
	}
}

// Set the interest of a binding.
func (i *Index) Set(key types.NamespacedName, interest Interest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remove(key)
	i.bindings[key] = interest
	insert(i.kinds, interest.Kind, key)
	for _, cluster := range interest.Clusters {
		insert(i.placed, cluster, key)
	}
	if interest.Settled && !interest.Waiting {
		return
	}
	at := groupKey{interest.Kind, interest.Fingerprint}
	g := i.groups[at]
	if g == nil {
		g = &group{
			placement: interest.Placement, members: sets.Set[types.NamespacedName]{},
			waiting: sets.Set[types.NamespacedName]{},
		}
		i.groups[at] = g
	}
	g.members.Insert(key)
	if interest.Waiting {
		g.waiting.Insert(key)
	}
}

// Remove a binding that is gone.
func (i *Index) Remove(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remove(key)
}

func (i *Index) remove(key types.NamespacedName) {
	old, found := i.bindings[key]
	if !found {
		return
	}
	delete(i.bindings, key)
	drop(i.kinds, old.Kind, key)
	for _, cluster := range old.Clusters {
		drop(i.placed, cluster, key)
	}
	at := groupKey{old.Kind, old.Fingerprint}
	if g := i.groups[at]; g != nil {
		g.members.Delete(key)
		g.waiting.Delete(key)
		if len(g.members) == 0 {
			delete(i.groups, at)
		}
	}
}

func insert[K comparable](in map[K]sets.Set[types.NamespacedName], at K, key types.NamespacedName) {
	if in[at] == nil {
		in[at] = sets.Set[types.NamespacedName]{}
	}
	in[at].Insert(key)
}

func drop[K comparable](in map[K]sets.Set[types.NamespacedName], at K, key types.NamespacedName) {
	delete(in[at], key)
	if len(in[at]) == 0 {
		delete(in, at)
	}
}

// PlacedOn lists the bindings that are placed on a cluster.
func (i *Index) PlacedOn(cluster string) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.placed[cluster].UnsortedList()
}

// ChangedWith lists the bindings whose objects in a cluster a change of the cluster may change: those that are placed
// there, if it is not a matter of room or APIs.
func (i *Index) ChangedWith(before, after *core.Cluster) []types.NamespacedName {
	change := compare(before, after)
	if !change.features {
		return nil
	}
	return i.PlacedOn(change.name)
}

// OfKind lists the bindings of objects of a kind.
func (i *Index) OfKind(kind schema.GroupVersionKind) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.kinds[kind].UnsortedList()
}

// All lists every binding.
func (i *Index) All() []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys := make([]types.NamespacedName, 0, len(i.bindings))
	for key := range i.bindings {
		keys = append(keys, key)
	}
	return keys
}

// ConcernedBy lists the bindings whose decision a change of a cluster may change. before is nil for a new cluster,
// after for one that is gone.
func (i *Index) ConcernedBy(before, after *core.Cluster) []types.NamespacedName {
	change := compare(before, after)
	i.mu.Lock()
	defer i.mu.Unlock()
	result := sets.Set[types.NamespacedName]{}
	if change.features || change.apis {
		for key := range i.placed[change.name] {
			result.Insert(key)
		}
	}
	for at, g := range i.groups {
		if candidates := g.concerned(change, at.kind); len(candidates) > 0 && g.mayTake(change) {
			result = result.Union(candidates)
		}
	}
	return result.UnsortedList()
}

// concerned are the bindings of a group that the kind of change means something to.
func (g *group) concerned(c change, kind schema.GroupVersionKind) sets.Set[types.NamespacedName] {
	served, serves := servesKind(c.before, kind), servesKind(c.after, kind)
	switch {
	case c.before == nil || c.after == nil || c.known:
		return g.members
	case !served && !serves:
		return nil
	case c.features || served != serves:
		return g.members
	case c.room:
		return g.waiting
	}
	return nil
}

// mayTake tells whether the cluster, before or after the change, is one that the placement names or selects.
func (g *group) mayTake(c change) bool {
	return g.selects(c.before) || g.selects(c.after)
}

func (g *group) selects(cluster *core.Cluster) bool {
	if cluster == nil {
		return false
	}
	if len(g.placement.Terms) == 0 {
		return true
	}
	return slices.ContainsFunc(g.placement.Terms, func(t core.Term) bool { return t.Matches(cluster) })
}

func servesKind(cluster *core.Cluster, kind schema.GroupVersionKind) bool {
	if cluster == nil || cluster.APIs == nil {
		return false
	}
	_, served := (*cluster.APIs)[kind]
	return served
}
