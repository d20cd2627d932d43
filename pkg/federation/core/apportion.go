package core

import (
	"cmp"
	"container/heap"
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
	order := &queue{shares: make([]*Share, len(shares)), descending: descending}
	for i := range shares {
		order.shares[i] = &shares[i]
	}
	heap.Init(order)
	for ; seats > 0; seats-- {
		order.shares[0].Seats++
		heap.Fix(order, 0)
	}
}

// queue has the share first that the next seat goes to.
type queue struct {
	shares     []*Share
	descending bool
}

// Len implements heap.Interface.
func (q *queue) Len() int { return len(q.shares) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool { return comesBefore(q.shares[i], q.shares[j], q.descending) }

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) { q.shares[i], q.shares[j] = q.shares[j], q.shares[i] }

// Push implements heap.Interface; shares are only reordered.
func (q *queue) Push(any) {}

// Pop implements heap.Interface; shares are only reordered.
func (q *queue) Pop() any { return nil }

// comesBefore compares the quotients exactly, by multiplying out.
func comesBefore(a, b *Share, descending bool) bool {
	aHi, aLo := bits.Mul64(uint64(a.Weight), uint64(2*b.Seats+1))
	bHi, bLo := bits.Mul64(uint64(b.Weight), uint64(2*a.Seats+1))
	if order := cmp.Or(cmp.Compare(bHi, aHi), cmp.Compare(bLo, aLo), cmp.Compare(a.Seats, b.Seats)); order != 0 {
		return order < 0
	}
	return (strings.Compare(a.Cluster, b.Cluster) < 0) != descending
}

// headStart hands out, at once, seats that every share is going to get anyway, so that large numbers don't take a
// step per seat. With n shares of total weight W and N seats, the quotients above W/(2N−n) belong to at most N seats,
// hence all of these are given; one per share is held back for the exact comparison. Returns how many it gave.
func headStart(seats int64, shares []Share) int64 {
	n := int64(len(shares))
	total := new(big.Int)
	for _, s := range shares {
		if s.Seats != 0 {
			return 0
		}
		total.Add(total, big.NewInt(s.Weight))
	}
	if seats <= n || total.Sign() == 0 {
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
