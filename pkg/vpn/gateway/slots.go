package gateway

import (
	"container/list"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Limits bound what strangers can make one TCP listener hold. Each listener has its own.
//
// Within them nobody is given more than what remains free: one source, or one host, gets at most half of the
// connections, two get a third each, and so on. A source alone, such as the address that all clients behind one
// translator share, is not held back before that, and whoever comes next always finds room. PerSource and PerRoute are
// for operators who know their clients better.
type Limits struct {
	// Connections is the number of connections that lead to a Service.
	Connections int
	// Handshakes is the number of connections that did not say yet which host they want, or are being refused. The
	// oldest makes room for the newest: of the same source if that holds more than remains free, otherwise of all.
	Handshakes int
	// PerSource bounds the connections of one source address, which is a /64 for IPv6; 0 leaves it at its share.
	PerSource int
	// PerRoute bounds the connections to the hosts of one TLSRoute; 0 leaves it at its share.
	PerRoute int
}

// DefaultLimits fit a seed of some thousand nodes.
var DefaultLimits = Limits{Connections: 6144, Handshakes: 512}

const (
	// listeners is how many TCP listeners a gateway has.
	listeners = 2
	// connectionMemory is what a connection to a Service takes while it is idle: half of it in the process, for two
	// goroutines and what leads to them, and half in the kernel, for two sockets. TestMemoryOfConnections measures the
	// first.
	connectionMemory = 36 << 10
	// handshakeMemory is what a connection takes that sends all but the end of the longest hello: a quarter of it in
	// the process. The rest is what the kernel takes from a client before the process reads it (the default of
	// tcp_rmem).
	handshakeMemory = 160 << 10
)

// Memory is what both listeners together hold at most, in bytes.
func (l Limits) Memory() int {
	return listeners * (l.Connections*connectionMemory + l.Handshakes*handshakeMemory)
}

// Files is how many file descriptors both listeners together hold at most.
func (l Limits) Files() int { return listeners * (2*l.Connections + l.Handshakes) }

// within returns limits that need no more than so many file descriptors.
func (l Limits) within(files int) Limits {
	if need := l.Files(); need > files {
		l.Connections = max(1, l.Connections*files/need)
		l.Handshakes = max(1, l.Handshakes*files/need)
	}
	return l
}

// errFull says that a connection has no room; the text says whose share is used up.
var errFull = errors.New("too many connections")

// share counts what holders have. Those without anything take no memory.
type share[K comparable] map[K]int

func (s share[K]) release(holder K) {
	if s[holder]--; s[holder] <= 0 {
		delete(s, holder)
	}
}

// mayHold says whether a holder may have one more when so many are free. limit 0 means none.
func (s share[K]) mayHold(holder K, free, limit int) bool {
	return s[holder] < free && (limit == 0 || s[holder] < limit)
}

// slots are the places of one listener. Its methods may be called concurrently.
type slots struct {
	limits Limits

	mu sync.Mutex
	// used is the number of connections, which sources and routes share.
	used    int
	sources share[netip.Prefix]
	routes  share[string]
	// waiting holds *handshake, oldest first; waitingOf the same for each source.
	waiting   list.List
	waitingOf map[netip.Prefix]*list.List
	evicted   uint64
}

// handshake is the place of a connection that did not say yet what it wants.
type handshake struct {
	source netip.Prefix
	// end ends the connection at once.
	end func()
	// all and own are its places in the two lists; nil when it left them.
	all, own *list.Element
}

func newSlots(limits Limits) *slots {
	return &slots{
		limits: limits, sources: share[netip.Prefix]{}, routes: share[string]{},
		waitingOf: map[netip.Prefix]*list.List{},
	}
}

// enter gives a new connection a place among the handshakes, if need be that of an older one, which it ends.
func (s *slots) enter(source netip.Prefix, end func()) *handshake {
	h := &handshake{source: source, end: end}
	s.mu.Lock()
	victim := s.victim(source)
	if victim != nil {
		s.remove(victim)
		s.evicted++
	}
	own := s.waitingOf[source]
	if own == nil {
		own = list.New()
		s.waitingOf[source] = own
	}
	h.all, h.own = s.waiting.PushBack(h), own.PushBack(h)
	s.mu.Unlock()
	if victim != nil {
		victim.end()
	}
	return h
}

// victim is the handshake that has to make room for a new one of the source; nil when there is room.
func (s *slots) victim(source netip.Prefix) *handshake {
	free := s.limits.Handshakes - s.waiting.Len()
	if own := s.waitingOf[source]; own != nil && own.Len() >= free {
		return own.Front().Value.(*handshake)
	}
	if free > 0 {
		return nil
	}
	return s.waiting.Front().Value.(*handshake)
}

// leave gives up the place of a handshake. It may be called again.
func (s *slots) leave(h *handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(h)
}

func (s *slots) remove(h *handshake) {
	if h.all == nil {
		return
	}
	s.waiting.Remove(h.all)
	own := s.waitingOf[h.source]
	own.Remove(h.own)
	if own.Len() == 0 {
		delete(s.waitingOf, h.source)
	}
	h.all, h.own = nil, nil
}

// connect turns a handshake into a connection to a route. The caller has to call release when that ends. It fails with
// errFull, and the handshake keeps its place.
func (s *slots) connect(h *handshake, route string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.limits.Connections - s.used
	switch {
	case !s.sources.mayHold(h.source, free, s.limits.PerSource):
		return nil, fmt.Errorf("%w: %d of source %s, %d free", errFull, s.sources[h.source], h.source, free)
	case !s.routes.mayHold(route, free, s.limits.PerRoute):
		return nil, fmt.Errorf("%w: %d to TLSRoute %s, %d free", errFull, s.routes[route], route, free)
	}
	s.remove(h)
	s.used++
	s.sources[h.source]++
	s.routes[route]++
	return func() { s.disconnect(h.source, route) }, nil
}

func (s *slots) disconnect(source netip.Prefix, route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.sources.release(source)
	s.routes.release(route)
}

// usage returns how many connections and handshakes there are, and how many handshakes had to make room.
func (s *slots) usage() (connections, handshakes int, evicted uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.waiting.Len(), s.evicted
}
