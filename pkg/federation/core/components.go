package core

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Component is a part of an object that has several, each with replicas of its own.
type Component struct {
	Name     string
	Replicas int32
	// Request of one replica. One that asks for no pods asks for one.
	Request Resources
	// Nodes restricts the nodes that replicas may run on; nil means all without taints.
	Nodes *NodeClaim
}

// SetOf makes a set of components the one replica of a binding.
func (b *Binding) SetOf(components []Component) {
	b.Workload, b.Replicas, b.Components, b.Request = true, 1, components, RequestOf(components)
}

// RequestOf is what a set of components asks for: all replicas of all of them.
func RequestOf(components []Component) Resources {
	var sum Resources
	for i := range components {
		c := &components[i]
		sum = sum.Plus(bounded(onePodAtLeast(c.Request), int64(c.Replicas)).Times(int64(c.Replicas)))
	}
	return sum
}

func onePodAtLeast(request Resources) Resources {
	request.Pods = max(1, request.Pods)
	return request
}

// bounded keeps what people write from overflowing when it is multiplied and added up. No cluster has as much.
func bounded(r Resources, times int64) Resources {
	most := int64(1<<56) / max(1, times)
	result := Resources{
		CPU: min(r.CPU, most), Memory: min(r.Memory, most), Storage: min(r.Storage, most), Pods: min(r.Pods, most),
	}
	for name, amount := range r.Other {
		if result.Other == nil {
			result.Other = make(map[string]int64, len(r.Other))
		}
		result.Other[name] = min(amount, most)
	}
	return result
}

// OneCluster tells whether a spread constraint wants exactly one cluster. Only then are components placed as a unit.
func OneCluster(constraints []SpreadConstraint) bool {
	return slices.ContainsFunc(constraints, func(c SpreadConstraint) bool {
		return c.Field == FieldCluster && c.Min == 1 && c.Max != nil && *c.Max == 1
	})
}

// counted names what is divided.
func (b *Binding) counted() string {
	if len(b.Components) > 0 {
		return "sets of components"
	}
	return "replicas"
}

// componentNeeds is a component in a form that is quick to pack.
type componentNeeds struct {
	name     string
	replicas int64
	request  Resources
	claim    *nodeMatcher
	// places counts the replicas that the nodes at hand would hold of this component alone.
	places int64
}

func componentsNeed(components []Component) []componentNeeds {
	var result []componentNeeds
	for i := range components {
		if c := &components[i]; c.Replicas > 0 {
			result = append(result, componentNeeds{
				name: c.Name, replicas: int64(c.Replicas), request: onePodAtLeast(c.Request),
				claim: compileClaim(c.Nodes),
			})
		}
	}
	return result
}

// setsOnNodes is a number of sets, at most most, that fit on the nodes together. It is found by packing them, so that
// components that compete for the same nodes are not promised more than there is; a cleverer packing may find room for
// more.
func setsOnNodes(nodes []Node, components []componentNeeds, most int64) int64 {
	sorted := slices.Clone(components)
	for i := range sorted {
		c := &sorted[i]
		c.places = onNodes(nodes, &c.request, c.claim)
		most = min(most, c.places/c.replicas)
	}
	slices.SortStableFunc(sorted, func(a, b componentNeeds) int {
		return cmp.Or(cmp.Compare(a.places, b.places), strings.Compare(a.name, b.name))
	})
	if most <= 0 || pack(nodes, sorted, most) {
		return max(0, most)
	}
	fits, tooMany := int64(0), most
	for fits+1 < tooMany {
		if half := fits + (tooMany-fits)/2; pack(nodes, sorted, half) {
			fits = half
		} else {
			tooMany = half
		}
	}
	return fits
}

// shelf is a number of nodes that have the same left.
type shelf struct {
	node  *Node
	count int64
	free  Resources
}

// pack tells whether that many sets fit when the components are put on the nodes one after the other, the one with the
// fewest places first, each node being filled before the next.
func pack(nodes []Node, components []componentNeeds, sets int64) bool {
	shelves := make([]shelf, 0, len(nodes)+2*len(components))
	for i := range nodes {
		shelves = append(shelves, shelf{&nodes[i], min(nodes[i].Count, math.MaxInt32), nodes[i].Free})
	}
	for i := range components {
		c := &components[i]
		left := c.replicas * sets
		for j := 0; j < len(shelves) && left > 0; j++ {
			if shelves[j].count > 0 && c.claim.matches(shelves[j].node) {
				shelves, left = fill(shelves, j, &c.request, left)
			}
		}
		if left > 0 {
			return false
		}
	}
	return true
}

// fill puts as many replicas on a shelf as it holds. Nodes that are filled, and one that is filled in part, go to
// shelves of their own.
func fill(shelves []shelf, at int, request *Resources, left int64) ([]shelf, int64) {
	each := min(shelves[at].free.hold(request), left)
	if each == 0 {
		return shelves, left
	}
	put := func(count, replicas int64) {
		s := &shelves[at]
		s.count -= count
		left -= count * replicas
		shelves = append(shelves, shelf{s.node, count, s.free.Minus(request.Times(replicas))})
	}
	if full := min(shelves[at].count, left/each); full > 0 {
		put(full, each)
	}
	if left > 0 && shelves[at].count > 0 {
		put(1, left)
	}
	return shelves, left
}
