package core

import (
	"math"
	"math/bits"
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

// full shares get no more seats.
func (s *Share) full() bool { return s.Max > 0 && s.Seats >= s.Max }

// Apportion gives out seats by the method of Webster (Sainte-Laguë): one by one, each to the share with the largest
// weight/(2·seats+1) that is not full. Ties go to the one with fewer seats, then to the first name, or the last if
// descending. Seats that shares have already count. A growing number of seats never takes one away from anybody.
// It returns the seats that are left when all shares are full.
func Apportion(seats int64, shares []Share, descending bool) int64 {
	seats -= headStart(seats, shares)
	q := queue{shares: make([]*Share, 0, len(shares)), descending: descending}
	for i := range shares {
		if !shares[i].full() {
			q.shares = append(q.shares, &shares[i])
		}
	}
	for i := len(q.shares)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	for ; seats > 0 && len(q.shares) > 0; seats-- {
		first := q.shares[0]
		first.Seats++
		if first.full() {
			last := len(q.shares) - 1
			q.shares[0] = q.shares[last]
			q.shares = q.shares[:last]
		}
		q.sink(0)
	}
	return seats
}

// queue is a binary heap that has the share first that the next seat goes to. A seat only moves its share back, so sinking is
// all that is needed; container/heap would call it through an interface.
type queue struct {
	shares     []*Share
	descending bool
}

// sink moves the share at i behind those that come before it.
func (q *queue) sink(i int) {
	for {
		first := 2*i + 1
		if first >= len(q.shares) {
			return
		}
		if second := first + 1; second < len(q.shares) && comesBefore(q.shares[second], q.shares[first], q.descending) {
			first = second
		}
		if !comesBefore(q.shares[first], q.shares[i], q.descending) {
			return
		}
		q.shares[i], q.shares[first] = q.shares[first], q.shares[i]
		i = first
	}
}

// comesBefore compares the quotients exactly, by multiplying out.
func comesBefore(a, b *Share, descending bool) bool {
	aHi, aLo := bits.Mul64(uint64(a.Weight), uint64(2*b.Seats+1))
	bHi, bLo := bits.Mul64(uint64(b.Weight), uint64(2*a.Seats+1))
	switch {
	case aHi != bHi:
		return aHi > bHi
	case aLo != bLo:
		return aLo > bLo
	case a.Seats != b.Seats:
		return a.Seats < b.Seats
	}
	return (strings.Compare(a.Cluster, b.Cluster) < 0) != descending
}

// headStart hands out, at once, seats that shares are going to get anyway, so that large numbers don't take a step per
// seat, and returns how many it gave.
//
// All seats whose quotient is at least q come before all others. So for any q whose seats are not more than there are,
// these are sure; a share has ⌊(weight/q+1)/2⌋ of them, within what it has and its bound. One per share is counted too many
// and one held back, more than the rounding of floating point can be wrong by as long as there are fewer than 2⁵⁰ seats;
// the exact comparison hands out the rest.
func headStart(seats int64, shares []Share) int64 {
	n := int64(len(shares))
	if seats <= 6*n || seats >= 1<<50 {
		return 0
	}
	var total float64
	for i := range shares {
		total += float64(shares[i].Weight)
	}
	if total == 0 {
		return 0
	}
	// The inverse of q lies between low, which is sure to give no more than there is, and high.
	low, high := 0.0, math.Inf(1)
	for inverse, tries := float64(2*(seats-n))/total, 0; tries < 64; tries++ {
		given := sureSeats(shares, inverse)
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
	var given int64
	for i := range shares {
		sure := shares[i].upTo(low, -1)
		given += sure - shares[i].Seats
		shares[i].Seats = sure
	}
	return given
}

func sureSeats(shares []Share, inverse float64) int64 {
	var sum int64
	for i := range shares {
		sum += shares[i].upTo(inverse, 1) - shares[i].Seats
		if sum >= 1<<51 {
			break
		}
	}
	return sum
}

// upTo is the number of seats that a share has when all with a quotient of at least 1/inverse are given, with a correction.
func (s *Share) upTo(inverse float64, correction float64) int64 {
	seats := math.Floor((float64(s.Weight)*inverse+1)/2) + correction
	most := float64(int64(1) << 51)
	if s.Max > 0 {
		most = float64(s.Max)
	}
	return max(s.Seats, int64(min(seats, most)))
}
