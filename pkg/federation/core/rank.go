package core

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// candidate is a cluster that fits, with what orders it.
type candidate struct {
	*Cluster
	// score is 100 for clusters that have the object already, so that it stays where it is.
	score int64
	// weight of static division; 1 when it doesn't apply.
	weight int64
	// estimate is how many more replicas the cluster has room for.
	estimate int64
	// previous is how many it has.
	previous int64
}

// available counts the replicas that are there already as room for this object.
func (c candidate) available() int64 { return c.estimate + c.previous }

const localityScore = 100

// rank orders the clusters that fit: those that have the object first, then heavier ones, then those with more room,
// then by name. With static weights, clusters without a weight are left out.
func rank(fitting []*Cluster, b Binding, why reasons) []candidate {
	weights := staticWeights(fitting, b)
	candidates := make([]candidate, 0, len(fitting))
	for i, c := range fitting {
		if weights[i] == 0 {
			why.add(c.Name, NoWeight, "no entry of spec.placement.replicaScheduling.weightPreference.staticWeightList matches it")
			continue
		}
		candidates = append(candidates, newCandidate(c, b, weights[i]))
	}
	slices.SortFunc(candidates, compareCandidates)
	return candidates
}

func newCandidate(c *Cluster, b Binding, weight int64) candidate {
	result := candidate{Cluster: c, weight: weight, estimate: int64(b.Replicas)}
	if b.Replicas > 0 && (c.Room != nil || b.Placement.Strategy.dynamic()) {
		result.estimate = Estimate(c.Room, b.Request)
	}
	for _, t := range b.Previous {
		if t.Cluster == c.Name {
			result.score, result.previous = localityScore, int64(t.Replicas)
		}
	}
	return result
}

func compareCandidates(a, b candidate) int {
	// cmp.Or would compare the names of every pair.
	switch {
	case a.score != b.score:
		return cmp.Compare(b.score, a.score)
	case a.weight != b.weight:
		return cmp.Compare(b.weight, a.weight)
	case a.available() != b.available():
		return cmp.Compare(b.available(), a.available())
	}
	return strings.Compare(a.Name, b.Name)
}

// staticWeights are parallel to the clusters. When no entry matches any of them, all weigh the same.
func staticWeights(clusters []*Cluster, b Binding) []int64 {
	weights := make([]int64, len(clusters))
	var largest int64
	if b.Placement.Strategy == StaticWeight && b.Workload {
		for i, c := range clusters {
			weights[i] = weightOf(c, b.Placement.Weights)
			largest = max(largest, weights[i])
		}
	}
	if largest == 0 {
		for i := range weights {
			weights[i] = 1
		}
	}
	return weights
}

func weightOf(c *Cluster, rules []Weight) int64 {
	var largest int64
	for _, rule := range rules {
		if rule.Matches(c) {
			largest = max(largest, rule.Weight)
		}
	}
	return largest
}

// Estimate is how many replicas of a request a cluster has room for by the sums over its nodes. A cluster of which
// nothing is known has no room.
func Estimate(room *Room, request map[string]int64) int64 {
	if room == nil {
		return 0
	}
	fits := room.free("pods")
	for name, amount := range request {
		if amount > 0 {
			fits = min(fits, room.free(name)/amount)
		}
	}
	return min(max(fits, 0), math.MaxInt32)
}

func (r *Room) free(name string) int64 {
	return max(0, r.Allocatable[name]-r.Allocated[name]-r.Allocating[name])
}
