package core

import "slices"

// selectBySeveral chooses clusters so that several kinds of groups are bounded at once, such as regions and providers.
// First it looks for clusters that together reach all lower bounds, preferring those that add to most of them; then it
// adds the best others that exceed no upper bound. The search for the former is exact until it has taken a fixed number
// of steps, after which it gives up.
func (a *attempt) selectBySeveral(candidates []candidate, c constraints) ([]candidate, *Failure) {
	search := &cover{attempt: a, candidates: candidates, most: len(candidates), steps: mostCoverSteps}
	least := 0
	if c.cluster != nil {
		search.most, least = c.cluster.maxOf(len(candidates)), c.cluster.Min
		if len(candidates) < least {
			return nil, noFit("%s.minGroups: %d clusters are wanted and %d fit", c.cluster.Path, least, len(candidates))
		}
	}
	for _, by := range c.groups {
		l := level{
			by: by, groups: make([]string, len(candidates)), has: map[string]int{}, most: by.maxOf(len(candidates)),
		}
		distinct := map[string]bool{}
		for i := range candidates {
			l.groups[i] = by.groupOf(&a.snapshot.clusters[candidates[i].index])
			distinct[l.groups[i]] = true
		}
		if len(distinct) < by.Min {
			return nil, noFit("%s.minGroups: %d %s are wanted and %d have clusters that fit", by.Path, by.Min,
				by.noun(), len(distinct))
		}
		search.levels = append(search.levels, l)
	}
	if !search.reachLowerBounds() {
		return nil, noFit("%s: no choice of clusters was found that satisfies it and the other spread constraints",
			c.groups[0].Path)
	}
	search.addOthers()
	if len(search.chosen) < least {
		return nil, noFit("%s.minGroups: %d clusters are wanted and %d satisfy the other spread constraints",
			c.cluster.Path, least, len(search.chosen))
	}
	selected := search.selected()
	if room, wanted := sumHolds(selected), a.wantedRoom(); room < wanted {
		return nil, noRoom("%s: the clusters that satisfy it have room for %d of %d %s", c.groups[0].Path, room, wanted,
			a.binding.counted())
	}
	return selected, nil
}

const mostCoverSteps = 10_000

// cover is the search for clusters that reach all lower bounds.
type cover struct {
	*attempt
	candidates []candidate
	levels     []level
	most       int
	steps      int
	chosen     []int
}

// level is one kind of groups.
type level struct {
	by *SpreadConstraint
	// groups are parallel to the candidates.
	groups []string
	// has counts the chosen clusters by group.
	has  map[string]int
	most int
}

func (l *level) adds(i int) bool   { return l.has[l.groups[i]] == 0 }
func (l *level) wants() bool       { return len(l.has) < l.by.Min }
func (l *level) allows(i int) bool { return !l.adds(i) || len(l.has) < l.most }

func (c *cover) satisfied() bool {
	return !slices.ContainsFunc(c.levels, func(l level) bool { return l.wants() })
}

// gain is the number of lower bounds that a cluster brings nearer; 0 if it must not be taken.
func (c *cover) gain(i int) int {
	gain := 0
	for j := range c.levels {
		l := &c.levels[j]
		if !l.allows(i) {
			return 0
		}
		if l.wants() && l.adds(i) {
			gain++
		}
	}
	return gain
}

func (c *cover) reachLowerBounds() bool {
	if c.satisfied() {
		return true
	}
	if len(c.chosen) >= c.most {
		return false
	}
	for gain := len(c.levels); gain > 0; gain-- {
		for i := range c.candidates {
			if c.steps == 0 {
				return false
			}
			if c.gain(i) != gain {
				continue
			}
			c.steps--
			c.take(i)
			if c.reachLowerBounds() {
				return true
			}
			c.giveBack(i)
		}
	}
	return false
}

func (c *cover) take(i int) {
	c.chosen = append(c.chosen, i)
	for j := range c.levels {
		c.levels[j].has[c.levels[j].groups[i]]++
	}
}

func (c *cover) giveBack(i int) {
	c.chosen = c.chosen[:len(c.chosen)-1]
	for j := range c.levels {
		l := &c.levels[j]
		if l.has[l.groups[i]]--; l.has[l.groups[i]] == 0 {
			delete(l.has, l.groups[i])
		}
	}
}

func (c *cover) addOthers() {
	for i := range c.candidates {
		if len(c.chosen) >= c.most {
			return
		}
		allowed := !slices.ContainsFunc(c.levels, func(l level) bool { return !l.allows(i) })
		if allowed && !slices.Contains(c.chosen, i) {
			c.take(i)
		}
	}
}

func (c *cover) selected() []candidate {
	slices.Sort(c.chosen)
	selected := make([]candidate, len(c.chosen))
	for j, i := range c.chosen {
		selected[j] = c.candidates[i]
	}
	return selected
}
