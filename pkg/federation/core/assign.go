package core

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
)

// allotment is a cluster's share of the replicas.
type allotment struct {
	index    int32
	replicas int32
}

// assign divides the replicas over the selected clusters.
func (a *attempt) assign(selected []candidate) ([]allotment, *Failure) {
	switch b := a.binding; {
	case !b.Workload || b.Replicas == 0:
		return a.same(selected, 0), nil
	case b.Placement.Strategy == Duplicated:
		return a.same(selected, b.Replicas), nil
	case b.Placement.Strategy == StaticWeight:
		return a.byStaticWeight(selected)
	}
	return a.byTier(selected)
}

func (a *attempt) same(selected []candidate, replicas int32) []allotment {
	shares := make([]allotment, len(selected))
	for i := range selected {
		shares[i] = allotment{selected[i].index, replicas}
	}
	return shares
}

// byStaticWeight starts from zero each time: the result depends on weights alone, not on what was before.
func (a *attempt) byStaticWeight(selected []candidate) ([]allotment, *Failure) {
	d := a.division(selected)
	for i := range selected {
		d.parts[i].weight = selected[i].weight
		d.bound(i, selected[i].least, selected[i].most)
	}
	if rest := d.give(int64(a.binding.Replicas)); rest > 0 {
		return nil, a.limited(rest)
	}
	return d.allotments(), nil
}

func (a *attempt) limited(rest int64) *Failure {
	wanted := int64(a.binding.Replicas)
	return noRoom("%s: the clusters that were chosen may have %d of %d %s", limitsPath, wanted-rest, wanted,
		a.binding.counted())
}

// limitsPath is where users write Placement.Limits.
const limitsPath = "spec.placement.replicaScheduling.limits"

// byTier fills the clusters of the main affinity first, then those of the overflow tiers, one after the other.
func (a *attempt) byTier(selected []candidate) ([]allotment, *Failure) {
	tiers := splitTiers(selected)
	if len(tiers) == 1 {
		return a.byRoom(selected, int64(a.binding.Replicas))
	}
	rest := int64(a.binding.Replicas)
	var targets []allotment
	for _, tier := range tiers {
		share := min(rest, sumHolds(tier))
		divided, failure := a.byRoom(tier, share)
		if failure != nil {
			return nil, failure
		}
		targets = append(targets, divided...)
		rest -= share
	}
	if rest > 0 {
		wanted := int64(a.binding.Replicas)
		return nil, noRoom("the clusters of the affinity and of its overflow tiers have room for %d of %d %s",
			wanted-rest, wanted, a.binding.counted())
	}
	return targets, nil
}

func splitTiers(selected []candidate) [][]candidate {
	if !slices.ContainsFunc(selected, func(c candidate) bool { return c.tier > 0 }) {
		return [][]candidate{selected}
	}
	var tiers [][]candidate
	for tier := int8(0); ; tier++ {
		var members []candidate
		more := false
		for _, c := range selected {
			if c.tier == tier {
				members = append(members, c)
			}
			more = more || c.tier > tier
		}
		if len(members) > 0 {
			tiers = append(tiers, members)
		}
		if !more {
			return tiers
		}
	}
}

// byRoom divides by what fits. What runs already stays where it is when replicas are added; when they are taken
// away, every cluster gives in proportion to what it has, or, if the division is even, those with the most.
func (a *attempt) byRoom(selected []candidate, wanted int64) ([]allotment, *Failure) {
	var assigned int64
	for i := range selected {
		assigned += selected[i].previous
	}
	switch {
	case a.binding.Fresh:
		return a.divide(wanted, wanted, selected, fresh)
	case assigned > wanted:
		return a.divide(wanted, wanted, selected, shrink)
	case assigned < wanted:
		return a.divide(wanted-assigned, wanted, selected, grow)
	}
	return a.keep(selected), nil
}

func (a *attempt) keep(selected []candidate) []allotment {
	shares := make([]allotment, len(selected))
	for i := range selected {
		shares[i] = allotment{selected[i].index, int32(selected[i].previous)}
	}
	return shares
}

// mode is what a division by room starts from.
type mode int

const (
	// fresh forgets what was, but for a choice among equals: what is balanced stays.
	fresh mode = iota
	// shrink takes replicas away.
	shrink
	// grow adds replicas to what clusters have.
	grow
)

// size is how many of the replicas that are to be divided a cluster can have.
func (m mode) size(c *candidate) int64 {
	switch m {
	case shrink:
		return c.previous
	case grow:
		return max(0, min(c.estimate, c.most-c.previous))
	}
	return min(c.available(), c.most)
}

// weight is what the division is in proportion to.
func (m mode) weight(c *candidate) int64 {
	switch m {
	case shrink:
		return c.previous
	case grow:
		return c.estimate
	}
	return c.available()
}

// least is what a cluster is given before the others get more.
func (m mode) least(c *candidate) int64 {
	if m == grow {
		return min(max(0, c.least-c.previous), m.size(c))
	}
	return min(c.least, m.size(c))
}

func (a *attempt) divide(replicas, wanted int64, selected []candidate, m mode) ([]allotment, *Failure) {
	used, unused := selected, []candidate(nil)
	if a.binding.Placement.Strategy == Aggregated {
		used, unused = fewest(selected, replicas, m)
	}
	var room int64
	for i := range used {
		room += m.size(&used[i])
	}
	if room < replicas {
		return nil, noRoom("the clusters that fit have room for %d of %d %s", wanted-replicas+room, wanted,
			a.binding.counted())
	}
	d := a.division(used)
	for i := range used {
		c := &used[i]
		d.parts[i].weight = m.weight(c)
		d.bound(i, m.least(c), m.size(c))
		if m == fresh {
			d.parts[i].before = int32(min(c.previous, math.MaxInt32))
		}
		if a.binding.Placement.Strategy == Even {
			d.parts[i].weight = 1
			if m == grow {
				d.begin(i, c.previous)
			}
		}
	}
	d.give(replicas)
	targets := d.allotments()
	if m != grow {
		return targets, nil
	}
	if a.binding.Placement.Strategy != Even {
		for i := range used {
			targets[i].replicas += int32(used[i].previous)
		}
	}
	return append(targets, a.keep(unused)...), nil
}

// fewest is the shortest run of clusters that has enough room, beginning with those that have replicas already unless
// what was is forgotten, of these last the ones of a term that is left, then those that must have some, then the
// heaviest, of equals those with more replicas. The others are returned too.
func fewest(selected []candidate, replicas int64, m mode) (used, unused []candidate) {
	sorted := slices.Clone(selected)
	slices.SortFunc(sorted, func(a, b candidate) int {
		return cmp.Or(
			compareBool(m != fresh && b.previous > 0, m != fresh && a.previous > 0),
			compareBool(a.left, b.left),
			compareBool(b.least > 0, a.least > 0),
			cmp.Compare(m.weight(&b), m.weight(&a)),
			cmp.Compare(b.previous, a.previous),
			cmp.Compare(a.index, b.index))
	})
	var sum int64
	for i := range sorted {
		sum += m.size(&sorted[i])
		if sum >= replicas {
			return sorted[:i+1], sorted[i+1:]
		}
	}
	return sorted, nil
}

// division hands out replicas within bounds.
type division struct {
	// parts have the clusters' places in the snapshot as their ranks.
	parts []part
	// least are lower bounds; nil if there are none.
	least []int64
	// closed parts get nothing; nil if there are none.
	closed     []bool
	descending bool
}

func (a *attempt) division(clusters []candidate) *division {
	d := &division{parts: make([]part, len(clusters)), descending: namesDescending(a.binding.UID)}
	for i := range clusters {
		d.parts[i].rank = clusters[i].index
	}
	return d
}

// bound says what a part is to get first and at most.
func (d *division) bound(i int, least, most int64) {
	if least > 0 {
		if d.least == nil {
			d.least = make([]int64, len(d.parts))
		}
		d.least[i] = min(least, most)
	}
	switch {
	case most <= 0:
		if d.closed == nil {
			d.closed = make([]bool, len(d.parts))
		}
		d.closed[i] = true
	case most < math.MaxInt32:
		d.parts[i].most = most
	}
}

// begin says what a part has already; its bounds are of what it gets.
func (d *division) begin(i int, seats int64) {
	d.parts[i].seats = seats
	if d.parts[i].most > 0 {
		d.parts[i].most += seats
	}
	if d.least != nil && d.least[i] > 0 {
		d.least[i] += seats
	}
}

// give hands out replicas and returns how many found no place. The order is the same for any number, so that a larger
// one never takes anything away: first up to the lower bounds, then all.
func (d *division) give(replicas int64) int64 {
	if d.least != nil {
		replicas = d.giveLeast(replicas)
	}
	return d.apportion(replicas, func(int) bool { return true })
}

func (d *division) giveLeast(replicas int64) int64 {
	most := make([]int64, len(d.parts))
	for i := range d.parts {
		most[i] = d.parts[i].most
		d.parts[i].most = d.least[i]
	}
	rest := d.apportion(replicas, func(i int) bool { return d.least[i] > d.parts[i].seats })
	for i := range d.parts {
		d.parts[i].most = most[i]
	}
	return rest
}

// apportion gives replicas to the parts that take part and are not closed.
func (d *division) apportion(replicas int64, takesPart func(int) bool) int64 {
	if d.closed == nil && d.least == nil {
		return apportion(replicas, d.parts, d.descending)
	}
	var open []part
	var indices []int
	for i := range d.parts {
		if takesPart(i) && (d.closed == nil || !d.closed[i]) {
			open, indices = append(open, d.parts[i]), append(indices, i)
		}
	}
	rest := apportion(replicas, open, d.descending)
	for j, i := range indices {
		d.parts[i].seats = open[j].seats
	}
	return rest
}

func (d *division) allotments() []allotment {
	result := make([]allotment, len(d.parts))
	for i := range d.parts {
		result[i] = allotment{d.parts[i].rank, int32(d.parts[i].seats)}
	}
	return result
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

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
