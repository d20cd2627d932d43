package core

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Share is a cluster's weight and the replicas it has.
type Share struct {
	Cluster string
	Weight  int64
	// Seats counts what the cluster has. Apportion adds to it.
	Seats int64
	// Max bounds Seats; 0 means no bound.
	Max int64
}

// Apportion gives out seats by the method of Webster (Sainte-Laguë): one by one, each to the share with the largest
// weight/(2·seats+1) that is not full. Ties go to the one with fewer seats, then to the first name, or the last if
// descending. Seats that shares have already count. A growing number of seats never takes one away from anybody.
// It returns the seats that are left when all shares are full.
func Apportion(seats int64, shares []Share, descending bool) int64 {
	byName := make([]int32, len(shares))
	for i := range byName {
		byName[i] = int32(i)
	}
	slices.SortStableFunc(byName, func(a, b int32) int { return strings.Compare(shares[a].Cluster, shares[b].Cluster) })
	parts := make([]part, len(shares))
	for rank, i := range byName {
		parts[i] = part{weight: shares[i].Weight, seats: shares[i].Seats, most: shares[i].Max, rank: int32(rank)}
	}
	rest := apportion(seats, parts, descending)
	for i := range shares {
		shares[i].Seats = parts[i].seats
	}
	return rest
}

// part is a Share in a form that is quick to compare.
type part struct {
	weight, seats int64
	// most bounds seats; 0 means no bound.
	most int64
	// rank is the place of the name among all.
	rank int32
}

// full parts get no more seats.
func (p *part) full() bool { return p.most > 0 && p.seats >= p.most }

func apportion(seats int64, parts []part, descending bool) int64 {
	seats -= headStart(seats, parts)
	q := queue{parts: parts, order: make([]int32, 0, len(parts)), descending: descending}
	for i := range parts {
		if !parts[i].full() {
			q.order = append(q.order, int32(i))
		}
	}
	for i := len(q.order)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	for ; seats > 0 && len(q.order) > 0; seats-- {
		first := &parts[q.order[0]]
		first.seats++
		if first.full() {
			last := len(q.order) - 1
			q.order[0] = q.order[last]
			q.order = q.order[:last]
		}
		q.sink(0)
	}
	return seats
}

// queue is a binary heap that has the part first that the next seat goes to. A seat only moves its part back, so sinking is all
// that is needed; container/heap would call it through an interface. Numbers instead of pointers keep the garbage
// collector out.
type queue struct {
	parts      []part
	order      []int32
	descending bool
}

// sink moves the part at i behind those that come before it.
func (q *queue) sink(i int) {
	for {
		first := 2*i + 1
		if first >= len(q.order) {
			return
		}
		if second := first + 1; second < len(q.order) && q.before(second, first) {
			first = second
		}
		if !q.before(first, i) {
			return
		}
		q.order[i], q.order[first] = q.order[first], q.order[i]
		i = first
	}
}

// before compares the quotients exactly, by multiplying out.
func (q *queue) before(i, j int) bool {
	a, b := &q.parts[q.order[i]], &q.parts[q.order[j]]
	aHi, aLo := bits.Mul64(uint64(a.weight), uint64(2*b.seats+1))
	bHi, bLo := bits.Mul64(uint64(b.weight), uint64(2*a.seats+1))
	switch {
	case aHi != bHi:
		return aHi > bHi
	case aLo != bLo:
		return aLo > bLo
	case a.seats != b.seats:
		return a.seats < b.seats
	}
	return (a.rank < b.rank) != q.descending
}

// headStart hands out, at once, seats that parts are going to get anyway, so that large numbers don't take a step per
// seat, and returns how many it gave.
//
// All seats whose quotient is at least q come before all others. So for any q whose seats are not more than there are,
// these are sure; a part has ⌊(weight/q+1)/2⌋ of them, within what it has and its bound. One per part is counted too many
// and one held back, more than the rounding of floating point can be wrong by as long as there are fewer than 2⁵⁰ seats;
// the exact comparison hands out the rest.
func headStart(seats int64, parts []part) int64 {
	n := int64(len(parts))
	if seats <= 6*n || seats >= 1<<50 {
		return 0
	}
	var total float64
	for i := range parts {
		total += float64(parts[i].weight)
	}
	if total == 0 {
		return 0
	}
	low := sureInverse(seats, parts, total)
	var given int64
	for i := range parts {
		sure := parts[i].upTo(low, -1)
		given += sure - parts[i].seats
		parts[i].seats = sure
	}
	return given
}

// sureInverse is the inverse of a quotient that is sure to give no more seats than there are, and not many fewer.
func sureInverse(seats int64, parts []part, total float64) float64 {
	n := int64(len(parts))
	low, high := 0.0, math.Inf(1)
	for inverse, tries := float64(2*(seats-n))/total, 0; tries < 64; tries++ {
		given := sureSeats(parts, inverse)
		if given > seats {
			high = inverse
		} else {
			low = inverse
			if seats-given <= 6*n {
				break
			}
		}
		if math.IsInf(high, 1) {
			inverse *= 2
		} else {
			inverse = low + (high-low)/2
		}
	}
	return low
}

func sureSeats(parts []part, inverse float64) int64 {
	var sum int64
	for i := range parts {
		sum += parts[i].upTo(inverse, 1) - parts[i].seats
		if sum >= 1<<51 {
			break
		}
	}
	return sum
}

// upTo is the number of seats that a part has when all with a quotient of at least 1/inverse are given, with a correction.
func (p *part) upTo(inverse float64, correction float64) int64 {
	seats := math.Floor((float64(p.weight)*inverse+1)/2) + correction
	most := float64(int64(1) << 51)
	if p.most > 0 {
		most = float64(p.most)
	}
	return max(p.seats, int64(min(seats, most)))
}
