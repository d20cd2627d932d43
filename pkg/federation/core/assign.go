package core

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
)

// assign divides the replicas over the selected clusters.
func assign(selected []candidate, b Binding) ([]Target, *Failure) {
	switch {
	case !b.Workload || b.Replicas == 0:
		return same(selected, 0), nil
	case b.Placement.Strategy == Duplicated:
		return same(selected, b.Replicas), nil
	case b.Placement.Strategy == StaticWeight:
		return byStaticWeight(selected, b), nil
	}
	return byRoom(selected, b)
}

func same(selected []candidate, replicas int32) []Target {
	targets := make([]Target, len(selected))
	for i, c := range selected {
		targets[i] = Target{Cluster: c.Name, Replicas: replicas}
	}
	return targets
}

// byStaticWeight starts from zero each time: the result depends on weights alone, not on what was before.
func byStaticWeight(selected []candidate, b Binding) []Target {
	shares := make([]Share, len(selected))
	for i, c := range selected {
		shares[i] = Share{Cluster: c.Name, Weight: c.weight}
	}
	Apportion(int64(b.Replicas), shares, namesDescending(b.UID))
	return toTargets(shares)
}

// byRoom divides by what fits. What runs already stays where it is when replicas are added; when they are taken
// away, every cluster gives in proportion to what it has.
func byRoom(selected []candidate, b Binding) ([]Target, *Failure) {
	var assigned int64
	for _, c := range selected {
		assigned += c.previous
	}
	wanted := int64(b.Replicas)
	switch {
	case b.Fresh:
		return divide(wanted, selected, candidate.available, false, b)
	case assigned > wanted:
		return divide(wanted, selected, func(c candidate) int64 { return c.previous }, false, b)
	case assigned < wanted:
		return divide(wanted-assigned, selected, func(c candidate) int64 { return c.estimate }, true, b)
	}
	return keep(selected), nil
}

func keep(selected []candidate) []Target {
	targets := make([]Target, len(selected))
	for i, c := range selected {
		targets[i] = Target{Cluster: c.Name, Replicas: int32(c.previous)}
	}
	return targets
}

// divide apportions replicas by weight; with add, on top of what clusters have.
func divide(replicas int64, selected []candidate, weight func(candidate) int64, add bool, b Binding) ([]Target, *Failure) {
	used, unused := selected, []candidate(nil)
	if b.Placement.Strategy == Aggregated {
		used, unused = fewest(selected, replicas, weight)
	}
	var room int64
	shares := make([]Share, len(used))
	for i, c := range used {
		shares[i] = Share{Cluster: c.Name, Weight: weight(c)}
		room += shares[i].Weight
	}
	if room < replicas {
		return nil, noRoom("the clusters that fit have room for %d of %d replicas that are still to be placed", room, replicas)
	}
	Apportion(replicas, shares, namesDescending(b.UID))
	targets := toTargets(shares)
	if !add {
		// They get nothing, and have a reason for it.
		return append(targets, same(unused, 0)...), nil
	}
	for i, c := range used {
		targets[i].Replicas += int32(c.previous)
	}
	return append(targets, keep(unused)...), nil
}

// fewest is the shortest run of clusters that has enough room, beginning with those that have replicas already, then with
// the heaviest. The others are returned too.
func fewest(selected []candidate, replicas int64, weight func(candidate) int64) (used, unused []candidate) {
	sorted := slices.Clone(selected)
	slices.SortFunc(sorted, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(boolToInt(b.previous > 0), boolToInt(a.previous > 0)),
			cmp.Compare(weight(b), weight(a)),
			strings.Compare(a.Name, b.Name))
	})
	var sum int64
	for i, c := range sorted {
		sum += weight(c)
		if sum >= replicas {
			return sorted[:i+1], sorted[i+1:]
		}
	}
	return sorted, nil
}

func toTargets(shares []Share) []Target {
	targets := make([]Target, len(shares))
	for i, s := range shares {
		targets[i] = Target{Cluster: s.Cluster, Replicas: int32(s.Seats)}
	}
	return targets
}

// namesDescending decides ties by the parity of a hash of the object's UID, so that the odd replica of different
// objects doesn't always land on the same cluster.
func namesDescending(uid string) bool {
	if uid == "" {
		return false
	}
	h := fnv.New32a()
	h.Write([]byte(uid))
	return h.Sum32()%2 == 1
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
