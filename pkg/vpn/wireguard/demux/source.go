package demux

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn"
)

const (
	// sourceCount is how many sources are told apart. More share, by a hash that strangers cannot foresee.
	sourceCount = 4096
	// serversPerSource is how many servers of a source are remembered.
	serversPerSource = 4
)

// source is what is known of the addresses of one source, whatever their ports. It takes the same memory however many
// there are.
type source struct {
	// servers are some that initiations of the source were for, next is the one to be replaced.
	servers [serversPerSource]*server
	next    int
	// junk is how many hashes may be spent on initiations that are for nobody.
	junk bucket
}

// remember notes a server that an initiation was for.
func (s *source) remember(server *server) {
	s.servers[s.next] = server
	s.next = (s.next + 1) % serversPerSource
}

// sources holds all sources that sent an initiation.
type sources struct {
	seed  maphash.Seed
	known [sourceCount]*source
}

func (s *sources) of(client netip.AddrPort) *source {
	known := &s.known[maphash.Comparable(s.seed, vpn.SourceOf(client))%sourceCount]
	if *known == nil {
		*known = &source{}
	}
	return *known
}

// bucket is an amount that grows with time, up to that of a second. It begins full.
type bucket struct {
	left     float64
	refilled time.Time
}

// has fills the bucket at a rate of perSecond and tells whether n are in it; at rate 0 there always are. It holds a
// second's worth, or n if that is more, which then takes longer to come.
func (b *bucket) has(now time.Time, perSecond, n int) bool {
	if perSecond <= 0 {
		return true
	}
	full := float64(max(perSecond, n))
	if b.refilled.IsZero() {
		b.left = full
	} else {
		b.left = min(full, b.left+now.Sub(b.refilled).Seconds()*float64(perSecond))
	}
	b.refilled = now
	return b.left >= float64(n)
}

// take takes n.
func (b *bucket) take(n int) { b.left -= float64(n) }
