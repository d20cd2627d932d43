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
	// before is how many seats it had; of equals, those that have fewer now come first.
	before int32
}

// full parts get no more seats.
func (p *part) full() bool { return p.most > 0 && p.seats >= p.most }

func apportion(seats int64, parts []part, descending bool) int64 {
	seats -= headStart(seats, parts)
	if seats == 0 {
		return 0
	}
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

// queue is a binary heap that has the part first that the next seat goes to. A seat only moves its part back, so
// sinking is all that is needed; container/heap would call it through an interface. Numbers instead of pointers keep
// the garbage collector out.
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
	if missed := a.seats < int64(a.before); missed != (b.seats < int64(b.before)) {
		return missed
	}
	return (a.rank < b.rank) != q.descending
}

// headStart hands out, at once, seats that parts are going to get anyway, so that there is not a step per seat, and
// returns how many it gave.
//
// All seats whose quotient is at least 1/x come before all others. So for any x whose seats are not more than there
// are, these are sure; a part has ⌊(weight·x+1)/2⌋ of them, within what it has and its bound. The search for an x that
// leaves only a few seats begins with the one that would be right without rounding, prior seats and bounds. The
// comparison hands out the rest.
func headStart(seats int64, parts []part) int64 {
	few := int64(len(parts)/16 + 4)
	if seats <= few || seats >= 1<<50 {
		return 0
	}
	var total float64
	for i := range parts {
		total += float64(parts[i].weight)
	}
	if total == 0 {
		return 0
	}
	sure, given := sureInverse(seats, few, parts, 2*float64(seats)/total)
	if given == 0 {
		return 0
	}
	for i := range parts {
		parts[i].seats = parts[i].upTo(sure)
	}
	return given
}

// mostTries bounds the search. After goodTries it is content with a few seats for each part: where many are alike there
// may be no x that leaves fewer.
const (
	goodTries = 8
	mostTries = 64
)

// sureInverse is an x that gives no more seats than there are and leaves a few, if that is found, and the number that
// it gives.
func sureInverse(seats, few int64, parts []part, x float64) (sure inverse, given int64) {
	low, high := 0.0, math.Inf(1)
	for try := range mostTries {
		at, ok := inverseOf(x)
		if !ok {
			break
		}
		sum := sureSeats(parts, at)
		if sum > seats {
			high = x
		} else {
			low, sure, given = x, at, sum
		}
		if left := seats - given; left <= few || try >= goodTries && left <= 6*int64(len(parts)) {
			break
		}
		if math.IsInf(high, 1) {
			x *= 2
		} else {
			x = low + (high-low)/2
		}
	}
	return sure, given
}

// inverse is mantissa/2^shift, exactly.
type inverse struct {
	mantissa uint64
	shift    uint
}

// inverseOf is false for what is too large or too small to reckon with.
func inverseOf(x float64) (inverse, bool) {
	const precision = 53
	fraction, exponent := math.Frexp(x)
	shift := precision - exponent
	if shift < 1 || shift > 127 || math.IsInf(x, 0) {
		return inverse{}, false
	}
	return inverse{uint64(math.Ldexp(fraction, precision)), uint(shift)}, true
}

// sureSeats counts what parts get in addition when all seats with a quotient of at least 1/x are given.
func sureSeats(parts []part, x inverse) int64 {
	var sum int64
	for i := range parts {
		sum += parts[i].upTo(x) - parts[i].seats
		if sum >= 1<<51 {
			break
		}
	}
	return sum
}

// upTo is the number of seats that a part has when all with a quotient of at least 1/x are given.
func (p *part) upTo(x inverse) int64 {
	hi, lo := bits.Mul64(uint64(p.weight), x.mantissa)
	product := hi<<(64-x.shift) | lo>>x.shift
	if x.shift >= 64 {
		product = hi >> (x.shift - 64)
	} else if hi>>x.shift != 0 {
		product = 1 << 52
	}
	seats := int64((min(product, 1<<52) + 1) / 2)
	if p.most > 0 {
		seats = min(seats, p.most)
	}
	return max(p.seats, seats)
}
