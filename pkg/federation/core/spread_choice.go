package core

import (
	"cmp"
	"slices"
	"strings"
)

// selectGroups finds the best subset of between least and most groups that together have enough clusters; nil if there
// is none.
//
// The published algorithm is a depth-first search over the groups in the order of fewer clusters, higher score, name.
// It records a subset as soon as that suffices and doesn't extend it further; of what it recorded, the highest sum of
// scores wins, then the most clusters, then what was found first. When there are just as many groups as are wanted at
// least, it looks at nothing but all of them. The number of subsets grows exponentially.
//
// Here the same subset is found without enumeration. Whether a beginning of a subset suffices depends on how many
// groups and clusters it has, so the best way to go on from a position depends on nothing else: a table over (position,
// groups, clusters) holds the best end. Going forward through it, and taking a group whenever that still attains the
// best, gives the subset that the search finds first.
func selectGroups(groups []group, least, most, clusters int) []group {
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.value(), b.value()), cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	c := &choice{
		groups: sorted, least: max(1, least), most: min(most, len(groups)), wanted: max(0, clusters),
		all: len(groups) == least,
	}
	chosen := c.best()
	if len(chosen) == 0 {
		return nil
	}
	slices.SortFunc(chosen, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	return c.shortest(chosen)
}

// choice of groups.
type choice struct {
	groups []group
	// least and most bound the number of groups, wanted is the number of clusters they must have at least.
	least, most, wanted int
	// all means that only the whole is looked at.
	all bool
}

// total is what subsets are compared by.
type total struct {
	score int64
	value int
}

func (t total) plus(g *group) total { return total{t.score + g.score, t.value + g.value()} }

func (t total) betterThan(other total) bool {
	return t.score > other.score || t.score == other.score && t.value > other.value
}

// impossible is worse than any subset.
var impossible = total{score: -1}

func (c *choice) suffices(count, value int) bool { return count >= c.least && value >= c.wanted }

// mostStates bounds the table to about 16 MB. Dozens of regions with thousands of clusters are far below; thousands of
// groups of which hundreds must be chosen are not, and then groups are taken one by one.
const mostStates = 1 << 24

func (c *choice) best() []group {
	if c.all {
		return c.whole()
	}
	if c.most < c.least {
		return nil
	}
	table := newTable(c)
	if table.states() > mostStates {
		return c.greedy()
	}
	if table.fill() == impossible {
		return nil
	}
	return table.walk()
}

// greedy takes the groups with the highest scores; if as many as are allowed don't suffice, those with the most
// clusters.
func (c *choice) greedy() []group {
	byScore := func(a, b group) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.value(), a.value()), strings.Compare(a.name, b.name))
	}
	byValue := func(a, b group) int { return cmp.Or(cmp.Compare(b.value(), a.value()), byScore(a, b)) }
	for _, order := range []func(a, b group) int{byScore, byValue} {
		sorted := slices.SortedFunc(slices.Values(c.groups), order)
		var value int
		for i := range sorted[:c.most] {
			value += sorted[i].value()
			if c.suffices(i+1, value) {
				return sorted[:i+1]
			}
		}
	}
	return nil
}

// whole follows the search's first branch: the first groups that suffice, of all.
func (c *choice) whole() []group {
	var value int
	for i := range c.groups {
		value += c.groups[i].value()
		if i+1 <= c.most && c.suffices(i+1, value) {
			return slices.Clone(c.groups[:i+1])
		}
	}
	return nil
}

// shortest is the shortest beginning of the chosen groups, by score, that the search records too; most often all of
// them.
func (c *choice) shortest(chosen []group) []group {
	for n := c.least; n < len(chosen); n++ {
		if c.records(chosen[:n]) {
			return chosen[:n]
		}
	}
	return chosen
}

// records tells whether the search records a subset: it suffices, and doesn't without the group that comes last, which
// is the one with the most clusters.
func (c *choice) records(subset []group) bool {
	var sum, largest int
	for i := range subset {
		sum += subset[i].value()
		largest = max(largest, subset[i].value())
	}
	return c.suffices(len(subset), sum) && !c.suffices(len(subset)-1, sum-largest)
}

// choiceTable says for every position, number of groups and number of clusters whether the best way on takes the group
// at the position. Clusters beyond the wanted number don't matter, nor do groups beyond the least number if there is no
// bound on them.
type choiceTable struct {
	*choice
	// counts is the number of different numbers of groups, sums that of clusters.
	counts, sums int
	// bounded means that the number of groups is.
	bounded bool
	// takes is by position, count and sum.
	takes []bool
	// best holds, by count and sum, the best total from the position that was filled last.
	best []total
	// before is the number of clusters of the first groups.
	before []int
}

func newTable(c *choice) *choiceTable {
	t := &choiceTable{choice: c, counts: c.most + 1, sums: c.wanted + 1, bounded: c.most < len(c.groups)}
	if !t.bounded {
		t.counts = c.least + 1
	}
	t.before = make([]int, len(c.groups)+1)
	for i := range c.groups {
		t.before[i+1] = t.before[i] + c.groups[i].value()
	}
	return t
}

func (t *choiceTable) states() int { return len(t.groups) * t.counts * t.sums }

func (t *choiceTable) at(count, sum int) int {
	return min(count, t.counts-1)*t.sums + min(sum, t.sums-1)
}

// fill works backwards in place: it goes from the last group to the first and returns the best total of all. Taking a
// group leads to a larger count or sum, whose entry still is that of the groups behind when it is read.
func (t *choiceTable) fill() total {
	t.takes = make([]bool, t.states())
	t.best = make([]total, t.counts*t.sums)
	for i := range t.best {
		t.best[i] = impossible
	}
	for i := len(t.groups) - 1; i >= 0; i-- {
		takes := t.takes[i*t.counts*t.sums:][:t.counts*t.sums]
		for count := 0; count < t.counts && count <= i; count++ {
			low, high := t.reach(i, count)
			for sum := min(low, t.sums-1); sum <= min(high, t.sums-1); sum++ {
				position := count*t.sums + sum
				taken := t.take(i, count, sum)
				if taken != impossible && !t.best[position].betterThan(taken) {
					t.best[position], takes[position] = taken, true
				}
			}
		}
	}
	return t.best[0]
}

// reach bounds the number of clusters of count groups among the first i, which are in the order of their numbers: at
// least that of the first ones, at most that of the last ones. Where the count stands for larger ones too, at most that
// of all.
func (t *choiceTable) reach(i, count int) (low, high int) {
	if !t.bounded && count == t.least {
		return t.before[count], t.before[i]
	}
	return t.before[count], t.before[i] - t.before[i-count]
}

// take is the best total with the group at a position.
func (t *choiceTable) take(i, count, sum int) total {
	g := &t.groups[i]
	if t.bounded && count >= t.most {
		return impossible
	}
	if t.suffices(count+1, sum+g.value()) {
		return total{}.plus(g)
	}
	rest := t.best[t.at(count+1, sum+g.value())]
	if rest == impossible {
		return impossible
	}
	return rest.plus(g)
}

func (t *choiceTable) walk() []group {
	var chosen []group
	count, sum := 0, 0
	for i := range t.groups {
		if !t.takes[i*t.counts*t.sums+t.at(count, sum)] {
			continue
		}
		chosen = append(chosen, t.groups[i])
		count++
		sum += t.groups[i].value()
		if t.suffices(count, sum) {
			break
		}
	}
	return chosen
}
