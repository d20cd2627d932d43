package core

import (
	"slices"
	"strings"
)

// selectClusters chooses among the candidates so that the spread constraints hold.
func (a *attempt) selectClusters(candidates []candidate) ([]candidate, *Failure) {
	constraints := a.binding.Placement.Spread
	if len(constraints) == 0 {
		return candidates, nil
	}
	sortByPreference(candidates)
	selected, failure := a.spread(candidates, splitConstraints(constraints))
	if failure != nil {
		return nil, failure
	}
	if len(selected) == 0 {
		return nil, noFit("%s.maxGroups: 0 allows no cluster", constraints[0].Path)
	}
	a.markUnselected(candidates, selected)
	return selected, nil
}

func (a *attempt) markUnselected(candidates, selected []candidate) {
	for i := range candidates {
		a.codes[candidates[i].index] = SpreadLimit
	}
	for i := range selected {
		a.codes[selected[i].index] = Fits
	}
}

// constraints are those that bound the number of clusters, and those that bound the number of groups.
type constraints struct {
	cluster *SpreadConstraint
	groups  []*SpreadConstraint
}

func splitConstraints(all []SpreadConstraint) constraints {
	var result constraints
	for i := range all {
		if all[i].Field == FieldCluster {
			result.cluster = &all[i]
		} else {
			result.groups = append(result.groups, &all[i])
		}
	}
	return result
}

func (a *attempt) spread(candidates []candidate, c constraints) ([]candidate, *Failure) {
	switch len(c.groups) {
	case 0:
		return a.selectByCluster(candidates, *c.cluster)
	case 1:
		return a.selectByGroup(candidates, *c.groups[0], c.cluster)
	}
	return a.selectBySeveral(candidates, c)
}

// wantedRoom is what the selection must have room for; nothing unless room decides.
func (a *attempt) wantedRoom() int64 {
	if !a.binding.Workload || !a.binding.Placement.Strategy.Dynamic() {
		return 0
	}
	return int64(a.binding.Replicas)
}

func (c *SpreadConstraint) maxOf(n int) int {
	if c.Max == nil {
		return n
	}
	return min(n, *c.Max)
}

// noun names what the constraint counts.
func (c *SpreadConstraint) noun() string {
	if c.Field == FieldLabel {
		return "values of label " + c.Label
	}
	return string(c.Field) + "s"
}

// hasGroup tells whether a cluster belongs to a group of the constraint.
func (c *SpreadConstraint) hasGroup(cluster *Cluster) bool { return c.groupOf(cluster) != "" }

// groupOf is the group that a cluster belongs to; empty if to none. Clusters in several zones form a group with those
// in exactly the same.
func (c *SpreadConstraint) groupOf(cluster *Cluster) string {
	switch c.Field {
	case FieldCluster:
		return cluster.Name
	case FieldRegion:
		return cluster.Region
	case FieldProvider:
		return cluster.Provider
	case FieldLabel:
		return cluster.Labels[c.Label]
	case FieldZone:
		if len(cluster.Zones) < 2 {
			return strings.Join(cluster.Zones, "")
		}
		zones := slices.Clone(cluster.Zones)
		slices.Sort(zones)
		return strings.Join(slices.Compact(zones), ",")
	}
	return ""
}

// selectByCluster takes the first ones and then, from the last to the first of them, exchanges those that have less
// room than one that was left out, until there is enough.
func (a *attempt) selectByCluster(candidates []candidate, c SpreadConstraint) ([]candidate, *Failure) {
	if len(candidates) < c.Min {
		return nil, noFit("%s.minGroups: %d clusters are wanted and %d fit", c.Path, c.Min, len(candidates))
	}
	need, replicas := c.maxOf(len(candidates)), a.wantedRoom()
	selected := slices.Clone(candidates[:need])
	room := sumHolds(selected)
	if room < replicas && need > 0 {
		room = exchange(selected, candidates[need:], room, replicas)
	}
	if room < replicas && need > 0 {
		return nil, noRoom("%s: %d clusters have room for %d of %d %s", c.Path, need, room, replicas,
			a.binding.counted())
	}
	return selected, nil
}

// exchange returns the room of the selection afterwards.
func exchange(selected, left []candidate, room, replicas int64) int64 {
	rest := newRoomiest(left)
	for i := len(selected) - 1; i >= 0 && room < replicas && len(rest.clusters) > 0; i-- {
		if best := rest.first(); best.holds() > selected[i].holds() {
			room += best.holds() - selected[i].holds()
			selected[i] = rest.replaceFirst(selected[i])
		}
	}
	return room
}

// holds is how many replicas a cluster may have.
func (c *candidate) holds() int64 { return min(c.available(), max(c.most, c.previous)) }

func sumHolds(candidates []candidate) int64 {
	var sum int64
	for i := range candidates {
		sum += candidates[i].holds()
	}
	return sum
}

// roomiest is a heap with the cluster first that holds most; of several, the one that was preferred.
type roomiest struct {
	clusters []candidate
	rank     []int
}

func newRoomiest(candidates []candidate) *roomiest {
	r := &roomiest{clusters: slices.Clone(candidates), rank: make([]int, len(candidates))}
	for i := range r.rank {
		r.rank[i] = i
	}
	for i := len(r.rank)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
	return r
}

func (r *roomiest) first() *candidate { return &r.clusters[r.rank[0]] }

// replaceFirst puts another in the place of the first.
func (r *roomiest) replaceFirst(other candidate) candidate {
	first := *r.first()
	r.clusters[r.rank[0]] = other
	r.sink(0)
	return first
}

func (r *roomiest) before(i, j int) bool {
	a, b := r.clusters[r.rank[i]].holds(), r.clusters[r.rank[j]].holds()
	return a > b || a == b && r.rank[i] < r.rank[j]
}

func (r *roomiest) sink(i int) {
	for {
		first := 2*i + 1
		if first >= len(r.rank) {
			return
		}
		if second := first + 1; second < len(r.rank) && r.before(second, first) {
			first = second
		}
		if !r.before(first, i) {
			return
		}
		r.rank[i], r.rank[first] = r.rank[first], r.rank[i]
		i = first
	}
}
