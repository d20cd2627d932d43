package core

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// marks are what a binding says of single clusters.
type marks uint8

const (
	isPrevious marks = 1 << iota
	isEvicted
	isNear
	isApart
)

// noTier is that of clusters that the affinity term doesn't match.
const noTier = -1

// candidates are the clusters that may take the object, in the order of names.
func (a *attempt) candidates() []candidate {
	s, b := &a.snapshot, a.binding
	marked, previous := a.marks()
	tiers := a.tiers()
	weights := a.staticWeights()
	result := make([]candidate, 0, len(s.clusters))
	var served servedCache
	for i := range s.clusters {
		c := &s.clusters[i]
		var mark marks
		if marked != nil {
			mark = marked[i]
		}
		tier := int8(0)
		if tiers != nil {
			tier = tiers[i]
		}
		left := tier == noTier && mark&isPrevious != 0 && a.keepsLeft()
		if left {
			tier = 0
		}
		code := a.reject(c, mark, tier, &served)
		a.codes[i] = code
		if code != Fits {
			continue
		}
		result = append(result, candidate{index: int32(i), tier: tier, left: left, weight: 1, most: unlimited})
		added := &result[len(result)-1]
		if weights != nil {
			added.weight = weights[i]
		}
		if mark&isPrevious != 0 {
			added.score, added.previous = localityScore, int64(previous[i])
		}
	}
	result = a.leaveOutUnweighted(result, weights != nil)
	a.setLimits(result)
	if a.needsEstimates() {
		n := needsOf(b)
		for i := range result {
			if !result[i].left {
				result[i].estimate = a.estimate(&s.clusters[result[i].index], &n)
			}
		}
	}
	return result
}

// keepsLeft tells whether clusters that the affinity term doesn't match keep what they have. Weights and spread
// constraints, which look at all clusters together, are for those of the term only.
func (a *attempt) keepsLeft() bool {
	b := a.binding
	return b.BetweenTerms && !b.Fresh && b.Workload && b.Placement.Strategy.Dynamic() && len(b.Placement.Spread) == 0
}

// marks are nil if the binding names no cluster. previous is parallel to the clusters.
func (a *attempt) marks() (marked []marks, previous []int32) {
	s, b := &a.snapshot, a.binding
	if len(b.Previous)+len(b.Evicted)+len(b.Near)+len(b.Apart) == 0 {
		return nil, nil
	}
	marked, previous = make([]marks, len(s.clusters)), make([]int32, len(s.clusters))
	for _, t := range b.Previous {
		if i, found := s.index[t.Cluster]; found {
			marked[i] |= isPrevious
			previous[i] = t.Replicas
		}
	}
	set := func(names []string, mark marks) {
		for _, name := range names {
			if i, found := s.index[name]; found {
				marked[i] |= mark
			}
		}
	}
	set(b.Evicted, isEvicted)
	set(b.Near, isNear)
	set(b.Apart, isApart)
	return marked, previous
}

// tiers tell for every cluster whether the affinity (0), an overflow tier (1, 2, …) or nothing matches it. Nil means
// that all clusters match.
func (a *attempt) tiers() []int8 {
	if a.term.MatchesAll() && len(a.term.Overflow) == 0 {
		return nil
	}
	tiers := make([]int8, len(a.snapshot.clusters))
	for i := range tiers {
		tiers[i] = noTier
	}
	if a.binding.Workload {
		for t := len(a.term.Overflow) - 1; t >= 0; t-- {
			for i := range a.snapshot.matching(&a.term.Overflow[t]) {
				tiers[i] = int8(t + 1)
			}
		}
	}
	for i := range a.snapshot.matching(&a.term.Affinity) {
		tiers[i] = 0
	}
	return tiers
}

// matching goes through the positions of the clusters that match. One may come twice if it is named twice.
func (s *Snapshot) matching(a *Affinity) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(a.Names) > 0 {
			for _, name := range a.Names {
				i, found := s.index[name]
				if found && a.admits(&s.clusters[i]) && !yield(i) {
					return
				}
			}
			return
		}
		for i := range s.clusters {
			if a.admits(&s.clusters[i]) && !yield(i) {
				return
			}
		}
	}
}

// servedCache remembers the answer for the set of kinds that was looked at last: most clusters share one.
type servedCache struct {
	apis   *APIs
	answer bool
}

func (a *attempt) serves(c *Cluster, cache *servedCache) bool {
	if cache.apis == nil || cache.apis != c.APIs {
		cache.apis, cache.answer = c.APIs, c.APIs.serves(a.binding.Kind)
	}
	return cache.answer
}

// reject gives the first reason against a cluster. A cluster that has the object already keeps it when its API or
// taints change. What nothing is known of yet has the last reason: those before it would stand whatever comes to be
// known.
func (a *attempt) reject(c *Cluster, mark marks, tier int8, served *servedCache) ReasonCode {
	switch {
	case c.Deleting:
		return ClusterDeleting
	case tier == noTier:
		return AffinityMismatch
	case mark&isEvicted != 0:
		return BeingEvicted
	case len(a.binding.Near) > 0 && mark&isNear == 0:
		return AwayFromGroup
	case mark&isApart != 0:
		return GroupIsHere
	}
	isNew, known := mark&isPrevious == 0, c.AwaitedUntil.IsZero()
	if isNew {
		if known && !a.serves(c, served) {
			return APINotServed
		}
		if len(c.Taints) > 0 && untolerated(c.Taints, a.binding.Placement.Tolerations) != nil {
			return TaintNotTolerated
		}
	}
	for i := range a.binding.Placement.Spread {
		if constraint := &a.binding.Placement.Spread[i]; !constraint.hasGroup(c) {
			return PropertyMissing
		}
	}
	if isNew && !known {
		return NotKnownYet
	}
	return Fits
}

// MatchesAll tells whether the affinity says nothing.
func (a *Affinity) MatchesAll() bool {
	return len(a.Names) == 0 && len(a.Exclude) == 0 && a.Labels == nil && len(a.Fields) == 0
}

// Matches tells whether a cluster satisfies the affinity.
func (a *Affinity) Matches(c *Cluster) bool {
	return (len(a.Names) == 0 || slices.Contains(a.Names, c.Name)) && a.admits(c)
}

// admits is Matches but for the names.
func (a *Affinity) admits(c *Cluster) bool {
	if len(a.Exclude) > 0 && slices.Contains(a.Exclude, c.Name) {
		return false
	}
	if a.Labels != nil && !a.Labels.Matches(c.Labels) {
		return false
	}
	for i := range a.Fields {
		if !a.Fields[i].matches(c) {
			return false
		}
	}
	return true
}

// matches: In wants any of the cluster's values among Values, NotIn wants none of them there.
func (r *FieldRequirement) matches(c *Cluster) bool {
	return r.Not != containsAny(c, r.Field, r.Values)
}

func containsAny(c *Cluster, field Field, values []string) bool {
	switch field {
	case FieldZone:
		return slices.ContainsFunc(c.Zones, func(zone string) bool { return slices.Contains(values, zone) })
	case FieldCluster:
		return slices.Contains(values, c.Name)
	case FieldRegion:
		return c.Region != "" && slices.Contains(values, c.Region)
	case FieldProvider:
		return c.Provider != "" && slices.Contains(values, c.Provider)
	}
	return false
}

// untolerated finds the first taint that keeps objects away.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) *corev1.Taint {
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return Tolerates(t, *taint) }) {
			return taint
		}
	}
	return nil
}

// Tolerates compares as Kubernetes does: an empty key with Exists tolerates every taint, an empty effect all effects.
func Tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	if t.Operator == corev1.TolerationOpExists {
		return true
	}
	return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}
