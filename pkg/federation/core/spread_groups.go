package core

import (
	"slices"
	"strings"
)

// group is the clusters of one region, zone, provider or value of a label.
type group struct {
	name  string
	score int64
	// clusters in the order of preference.
	clusters []candidate
	chosen   bool
}

func (g *group) value() int { return len(g.clusters) }

// selectByGroup chooses groups, then one cluster of each, then the best of what is left in these groups.
func (a *attempt) selectByGroup(candidates []candidate, by SpreadConstraint,
	cluster *SpreadConstraint) ([]candidate, *Failure) {
	if cluster == nil {
		cluster = &SpreadConstraint{Path: by.Path, Max: new(int)}
	}
	groups := a.groupBy(candidates, &by)
	for i := range groups {
		groups[i].score = a.groupScore(groups[i].clusters, by.Min, cluster.Min)
	}
	a.groups = groups
	return a.selectFromGroups(by, cluster)
}

func (a *attempt) selectFromGroups(by SpreadConstraint, cluster *SpreadConstraint) ([]candidate, *Failure) {
	groups := a.groups
	if len(groups) < by.Min {
		return nil, noFit("%s.minGroups: %d %s are wanted and %d have clusters that fit", by.Path, by.Min, by.noun(),
			len(groups))
	}
	chosen := selectGroups(groups, by.Min, by.maxOf(len(groups)), cluster.Min)
	if len(chosen) == 0 {
		return nil, noFit("%s: no choice of %s has the %d clusters that are wanted", by.Path, by.noun(), cluster.Min)
	}
	return a.fromGroups(chosen, cluster), nil
}

func (a *attempt) fromGroups(chosen []group, cluster *SpreadConstraint) []candidate {
	names := make(map[string]bool, len(chosen))
	var selected, rest []candidate
	for i := range chosen {
		names[chosen[i].name] = true
		selected = append(selected, chosen[i].clusters[0])
		rest = append(rest, chosen[i].clusters[1:]...)
	}
	for i := range a.groups {
		a.groups[i].chosen = names[a.groups[i].name]
	}
	sortByPreference(rest)
	more := cluster.maxOf(len(selected)+len(rest)) - len(selected)
	return append(selected, rest[:max(0, more)]...)
}

// groupBy keeps the order of the candidates within a group; groups are in the order of their names.
func (a *attempt) groupBy(candidates []candidate, by *SpreadConstraint) []group {
	position := map[string]int{}
	var groups []group
	for i := range candidates {
		name := by.groupOf(&a.snapshot.clusters[candidates[i].index])
		at, known := position[name]
		if !known {
			at = len(groups)
			position[name] = at
			groups = append(groups, group{name: name})
		}
		groups[at].clusters = append(groups[at].clusters, candidates[i])
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return groups
}

// scoreUnit puts room above locality when groups are compared.
const scoreUnit = 1000

// groupScore rates the clusters of a group. When room doesn't decide: by how many of them could take all replicas.
// When it does: by how much of the group's part of the replicas fits into as many clusters as must be used.
func (a *attempt) groupScore(clusters []candidate, minGroups, minClusters int) int64 {
	replicas := int64(a.binding.Replicas)
	if a.binding.Placement.Strategy.Dynamic() {
		return dividedScore(clusters, replicas, minGroups, minClusters)
	}
	var count, sum int64
	for i := range clusters {
		if clusters[i].available() >= replicas {
			count++
			sum += clusters[i].score
		}
	}
	if count == 0 {
		return 0
	}
	return count*scoreUnit + sum/count
}

func dividedScore(clusters []candidate, replicas int64, minGroups, minClusters int) int64 {
	minGroups = max(1, minGroups)
	target := (replicas + int64(minGroups) - 1) / int64(minGroups)
	enough := int64(max(minClusters, minGroups))
	var walked, available, score int64
	for i := range clusters {
		walked++
		available += clusters[i].available()
		score += clusters[i].score
		if walked >= enough && available >= target {
			break
		}
	}
	// A group that has fewer clusters than must be used may have room for its part even so.
	return min(available, target)*scoreUnit + score/max(1, walked)
}
