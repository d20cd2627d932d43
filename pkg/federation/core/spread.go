package core

import (
	"cmp"
	"slices"
	"strings"
)

// selectClusters chooses among the candidates, which are in their order of preference, so that the spread constraints
// hold.
func selectClusters(candidates []candidate, b Binding, why reasons) ([]candidate, *Failure) {
	byCluster, byRegion := constraint(b, FieldCluster), constraint(b, FieldRegion)
	var selected []candidate
	var failure *Failure
	switch {
	case len(b.Placement.Spread) == 0:
		return candidates, nil
	case byRegion != nil:
		selected, failure = selectByRegion(candidates, b, *byRegion, byCluster)
	case byCluster != nil:
		selected, failure = selectByCluster(candidates, *byCluster, wantedRoom(b))
	default:
		failure = noFit("%s: only cluster and region can bound the number of groups; add one with spreadByField: cluster", b.Placement.Spread[0].Path)
	}
	if failure != nil {
		return nil, failure
	}
	if len(selected) == 0 {
		return nil, noFit("%s.maxGroups: 0 allows no cluster", b.Placement.Spread[0].Path)
	}
	message := "not among the clusters that " + b.Placement.Spread[0].Path + " allows"
	for _, c := range candidates {
		why.add(c.Name, SpreadLimit, message)
	}
	return selected, nil
}

func constraint(b Binding, field Field) *SpreadConstraint {
	for i := range b.Placement.Spread {
		if b.Placement.Spread[i].Field == field {
			return &b.Placement.Spread[i]
		}
	}
	return nil
}

// wantedRoom is what the selection must have room for; nothing unless room decides.
func wantedRoom(b Binding) int64 {
	if !b.Workload || !b.Placement.Strategy.dynamic() {
		return 0
	}
	return int64(b.Replicas)
}

func (c SpreadConstraint) maxOf(n int) int {
	if c.Max == nil {
		return n
	}
	return min(n, *c.Max)
}

// selectByCluster takes the first ones and then, from the last to the first of them, exchanges those that have less
// room than one that was left out, until there is enough.
func selectByCluster(candidates []candidate, c SpreadConstraint, replicas int64) ([]candidate, *Failure) {
	if len(candidates) < c.Min {
		return nil, noFit("%s.minGroups: %d clusters are wanted and %d fit", c.Path, c.Min, len(candidates))
	}
	need := c.maxOf(len(candidates))
	selected, rest := slices.Clone(candidates[:need]), slices.Clone(candidates[need:])
	for i := need - 1; i >= 0 && sumAvailable(selected) < replicas; i-- {
		best := mostAvailable(rest)
		if best >= 0 && rest[best].available() > selected[i].available() {
			selected[i], rest[best] = rest[best], selected[i]
		}
	}
	if room := sumAvailable(selected); room < replicas && need > 0 {
		return nil, noRoom("%s: %d clusters have room for %d of %d replicas", c.Path, need, room, replicas)
	}
	return selected, nil
}

func sumAvailable(candidates []candidate) int64 {
	var sum int64
	for _, c := range candidates {
		sum += c.available()
	}
	return sum
}

func mostAvailable(candidates []candidate) int {
	best := -1
	for i, c := range candidates {
		if best < 0 || c.available() > candidates[best].available() {
			best = i
		}
	}
	return best
}

// group is the clusters of one region.
type group struct {
	name     string
	score    int64
	clusters []candidate
}

func (g group) value() int { return len(g.clusters) }

// selectByRegion chooses regions, then one cluster of each, then the best of what is left in these regions.
func selectByRegion(candidates []candidate, b Binding, region SpreadConstraint, cluster *SpreadConstraint) ([]candidate, *Failure) {
	if cluster == nil {
		cluster = &SpreadConstraint{Path: region.Path, Max: new(int)}
	}
	groups := groupByRegion(candidates)
	for i := range groups {
		groups[i].score = groupScore(groups[i].clusters, b, region.Min, cluster.Min)
	}
	return selectFromRegions(groups, region, *cluster)
}

func selectFromRegions(groups []group, region, cluster SpreadConstraint) ([]candidate, *Failure) {
	if len(groups) < region.Min {
		return nil, noFit("%s.minGroups: %d regions are wanted and %d have clusters that fit", region.Path, region.Min, len(groups))
	}
	chosen := selectGroups(groups, region.Min, region.maxOf(len(groups)), cluster.Min)
	if len(chosen) == 0 {
		return nil, noFit("%s: no choice of regions has the %d clusters that are wanted", region.Path, cluster.Min)
	}
	var selected, rest []candidate
	for _, g := range chosen {
		selected = append(selected, g.clusters[0])
		rest = append(rest, g.clusters[1:]...)
	}
	slices.SortStableFunc(rest, compareCandidates)
	more := cluster.maxOf(len(selected)+len(rest)) - len(selected)
	return append(selected, rest[:max(0, more)]...), nil
}

// groupByRegion keeps the order of the candidates within a region; regions are in the order of their names.
func groupByRegion(candidates []candidate) []group {
	byName := map[string][]candidate{}
	for _, c := range candidates {
		byName[c.Region] = append(byName[c.Region], c)
	}
	groups := make([]group, 0, len(byName))
	for name, clusters := range byName {
		groups = append(groups, group{name: name, clusters: clusters})
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return groups
}

// scoreUnit puts room above locality when groups are compared.
const scoreUnit = 1000

// groupScore rates the clusters of a region. When room doesn't decide: by how many of them could take all replicas.
// When it does: by how much of the region's part of the replicas fits into as many clusters as must be used.
func groupScore(clusters []candidate, b Binding, minGroups, minClusters int) int64 {
	if b.Placement.Strategy.dynamic() && b.Workload {
		return dividedScore(clusters, int64(b.Replicas), minGroups, minClusters)
	}
	var count, sum int64
	for _, c := range clusters {
		if c.available() >= int64(b.Replicas) {
			count++
			sum += c.score
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
	for _, c := range clusters {
		walked++
		available += c.available()
		score += c.score
		if walked >= enough && available >= target {
			return target*scoreUnit + score/walked
		}
	}
	return available*scoreUnit + score/max(1, walked)
}

// mostSubsets bounds the search when there are very many regions. The search is in a fixed order, so the result stays
// the same from run to run.
const mostSubsets = 1 << 16

// selectGroups finds the best subset of between least and most groups whose clusters are enough.
func selectGroups(groups []group, least, most, clusters int) []group {
	search := subsetSearch{groups: slices.Clone(groups), least: least, most: most, clusters: clusters}
	slices.SortFunc(search.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.value(), b.value()), cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	search.extend(0, nil, 0)
	return best(search.found)
}

type subsetSearch struct {
	groups                []group
	least, most, clusters int
	found                 [][]group
}

// extend goes depth first. A subset that suffices is recorded and not extended further.
func (s *subsetSearch) extend(from int, subset []group, sum int) {
	if sum >= s.clusters && len(subset) >= max(1, s.least) && len(subset) <= s.most {
		s.found = append(s.found, slices.Clone(subset))
		return
	}
	if len(subset) >= s.most {
		return
	}
	for i := from; i < len(s.groups) && len(s.found) < mostSubsets; i++ {
		s.extend(i+1, append(subset, s.groups[i]), sum+s.groups[i].value())
		if len(s.groups) == s.least {
			return
		}
	}
}

// best prefers higher scores, then more clusters, then what was found first; and of what it prefers, a shorter
// beginning that suffices too.
func best(subsets [][]group) []group {
	if len(subsets) == 0 {
		return nil
	}
	for _, subset := range subsets {
		slices.SortFunc(subset, func(a, b group) int {
			return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
		})
	}
	slices.SortStableFunc(subsets, func(a, b []group) int {
		aScore, aValue := totals(a)
		bScore, bValue := totals(b)
		return cmp.Or(cmp.Compare(bScore, aScore), cmp.Compare(bValue, aValue))
	})
	result := subsets[0]
	for _, other := range subsets[1:] {
		if len(other) < len(result) && startsWith(result, other) {
			result = other
		}
	}
	return result
}

func totals(groups []group) (score int64, value int) {
	for _, g := range groups {
		score += g.score
		value += g.value()
	}
	return score, value
}

func startsWith(groups, prefix []group) bool {
	return slices.EqualFunc(groups[:len(prefix)], prefix, func(a, b group) bool { return a.name == b.name })
}
