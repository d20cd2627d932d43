package core

import (
	"cmp"
	"math"
	"slices"
)

// candidate is a cluster that fits, with what orders it.
type candidate struct {
	// index of the cluster in the snapshot; the order of names.
	index int32
	// tier is 0 for clusters of the affinity, 1 and more for those of its overflow tiers.
	tier int8
	// left tells that the affinity term doesn't match it; see Binding.BetweenTerms.
	left bool
	// score is 100 for clusters that have the object already, so that it stays where it is.
	score int64
	// weight of static division; 1 when it doesn't apply.
	weight int64
	// estimate is how many more replicas the cluster has room for.
	estimate int64
	// previous is how many it has.
	previous int64
	// least and most bound its share.
	least, most int64
}

// available counts the replicas that are there already as room for this object.
func (c *candidate) available() int64 { return c.estimate + c.previous }

const (
	localityScore = 100
	unlimited     = math.MaxInt32
)

// needsEstimates: not when neither the division nor the choice of clusters looks at room.
func (a *attempt) needsEstimates() bool {
	return a.binding.Placement.Strategy.Dynamic() || len(a.binding.Placement.Spread) > 0
}

// estimate is the room for more replicas. When nothing is known of a cluster it is said to have none if the division
// depends on it, and else enough.
func (a *attempt) estimate(c *Cluster, n *needs) int64 {
	b := a.binding
	if b.Replicas == 0 {
		return 0
	}
	if c.Room == nil {
		switch b.Placement.Strategy {
		case Even:
			return unlimited
		case DynamicWeight, Aggregated:
			return 0
		}
		return int64(b.Replicas)
	}
	var promised Resources
	if len(a.snapshot.promises) > 0 {
		promised = a.snapshot.promises[c.Name]
	}
	return n.fit(c.Room, promised)
}

// sortByPreference orders clusters for spread constraints: those of the affinity before overflow tiers, those that have
// the object first, then heavier ones, then those with more room, then by name.
func sortByPreference(candidates []candidate) {
	slices.SortFunc(candidates, func(a, b candidate) int { return compareCandidates(&a, &b) })
}

func compareCandidates(a, b *candidate) int {
	switch {
	case a.tier != b.tier:
		return cmp.Compare(a.tier, b.tier)
	case a.score != b.score:
		return cmp.Compare(b.score, a.score)
	case a.weight != b.weight:
		return cmp.Compare(b.weight, a.weight)
	case a.available() != b.available():
		return cmp.Compare(b.available(), a.available())
	}
	return cmp.Compare(a.index, b.index)
}

// staticWeights are parallel to the clusters; nil if all weigh the same.
func (a *attempt) staticWeights() []int64 {
	b := a.binding
	if b.Placement.Strategy != StaticWeight || !b.Workload || len(b.Placement.Weights) == 0 {
		return nil
	}
	weights := make([]int64, len(a.snapshot.clusters))
	for i := range b.Placement.Weights {
		rule := &b.Placement.Weights[i]
		for j := range a.snapshot.matching(&rule.Affinity) {
			weights[j] = max(weights[j], rule.Weight)
		}
	}
	return weights
}

// leaveOutUnweighted removes clusters without a weight. When no candidate has one, all weigh the same.
func (a *attempt) leaveOutUnweighted(candidates []candidate, weighted bool) []candidate {
	if !weighted {
		return candidates
	}
	if !slices.ContainsFunc(candidates, func(c candidate) bool { return c.weight > 0 }) {
		for i := range candidates {
			candidates[i].weight = 1
		}
		return candidates
	}
	return slices.DeleteFunc(candidates, func(c candidate) bool {
		if c.weight > 0 {
			return false
		}
		a.codes[c.index] = NoWeight
		return true
	})
}

// setLimits bounds the shares of the candidates.
func (a *attempt) setLimits(candidates []candidate) {
	b := a.binding
	if len(b.Placement.Limits) == 0 || !b.Workload || b.Placement.Strategy == Duplicated {
		return
	}
	for i := range candidates {
		c := &candidates[i]
		for j := range b.Placement.Limits {
			limit := &b.Placement.Limits[j]
			if !limit.Matches(&a.snapshot.clusters[c.index]) {
				continue
			}
			c.least = max(c.least, int64(limit.Min))
			if limit.Max != nil {
				c.most = min(c.most, int64(*limit.Max))
			}
		}
		c.least = min(c.least, c.most)
	}
}
