package core

import (
	"math/big"
	"math/bits"
	"strings"
)

// Share is a cluster's weight and the replicas it has.
type Share struct {
	Cluster string
	Weight  int64
	Seats   int64
}

// Apportion gives out seats by the method of Webster (Sainte-Laguë): one by one, each to the share with the largest
// weight/(2·seats+1). Ties go to the one with fewer seats, then to the first name, or the last if descending. Seats
// that shares have already count. A growing number of seats never takes one away from anybody.
func Apportion(seats int64, shares []Share, descending bool) {
	if len(shares) == 0 {
		return
	}
	seats -= headStart(seats, shares)
	q := queue{shares: make([]*Share, len(shares)), descending: descending}
	for i := range shares {
		q.shares[i] = &shares[i]
	}
	for i := len(shares)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	for ; seats > 0; seats-- {
		q.shares[0].Seats++
		q.sink(0)
	}
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

// headStart hands out, at once, seats that every share is going to get anyway, so that large numbers don't take a
// step per seat. With n shares of total weight W and N seats, the quotients above W/(2N−n) belong to at most N seats,
// hence all of these are given; one per share is held back for the exact comparison. Returns how many it gave.
func headStart(seats int64, shares []Share) int64 {
	n := int64(len(shares))
	var total uint64
	for _, s := range shares {
		if s.Seats != 0 {
			return 0
		}
		sum, carry := bits.Add64(total, uint64(s.Weight), 0)
		if carry != 0 {
			return headStartBig(seats, shares)
		}
		total = sum
	}
	if seats <= n || total == 0 {
		return 0
	}
	var given int64
	for i := range shares {
		// A weight is at most the total, so the quotient is at most 2·seats−n.
		hi, lo := bits.Mul64(uint64(shares[i].Weight), uint64(2*seats-n))
		quotient, _ := bits.Div64(hi, lo, total)
		shares[i].Seats = max(0, int64((quotient+1)/2)-1)
		given += shares[i].Seats
	}
	return given
}

// headStartBig is headStart for weights whose sum needs more than 64 bits.
func headStartBig(seats int64, shares []Share) int64 {
	n := int64(len(shares))
	total := new(big.Int)
	for _, s := range shares {
		total.Add(total, big.NewInt(s.Weight))
	}
	if seats <= n {
		return 0
	}
	var given int64
	for i := range shares {
		quotient := new(big.Int).Mul(big.NewInt(shares[i].Weight), big.NewInt(2*seats-n))
		sure := (quotient.Div(quotient, total).Int64()+1)/2 - 1
		shares[i].Seats = max(0, sure)
		given += shares[i].Seats
	}
	return given
}
