package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/trellis-garden/trellis/pkg/vpn"
)

func source(text string) netip.Prefix {
	return vpn.SourceOf(netip.AddrPortFrom(netip.MustParseAddr(text), 4711))
}

// connected opens connections until one is refused.
func connected(s *slots, from netip.Prefix, route string) (n int) {
	for {
		place := s.enter(from, func() {})
		if _, err := s.connect(place, route); err != nil {
			s.leave(place)
			return n
		}
		n++
	}
}

func TestNobodyIsGivenMoreThanRemainsFree(t *testing.T) {
	s := newSlots(Limits{Connections: 1000, Handshakes: 10})
	if n := connected(s, source("192.0.2.1"), "a"); n != 500 {
		t.Errorf("the first source got %d of 1000", n)
	}
	if n := connected(s, source("192.0.2.2"), "a"); n != 0 {
		t.Errorf("a route that has half of all got %d more", n)
	}
	if n := connected(s, source("192.0.2.2"), "b"); n != 250 {
		t.Errorf("the second source got %d of the 500 that were left", n)
	}
	if n := connected(s, source("192.0.2.3"), "c"); n != 125 {
		t.Errorf("the third source got %d of the 250 that were left", n)
	}
}

func TestFixedLimits(t *testing.T) {
	s := newSlots(Limits{Connections: 1000, Handshakes: 10, PerSource: 3, PerRoute: 5})
	if n := connected(s, source("192.0.2.1"), "a"); n != 3 {
		t.Errorf("a source got %d, limit 3", n)
	}
	if n := connected(s, source("192.0.2.2"), "a"); n != 2 {
		t.Errorf("a route with 3 of 5 got %d more", n)
	}
}

func TestEndedConnectionsLeaveNothing(t *testing.T) {
	s := newSlots(DefaultLimits)
	place := s.enter(source("192.0.2.1"), func() {})
	release, err := s.connect(place, "a")
	if err != nil {
		t.Fatal(err)
	}
	s.leave(place)
	release()
	if s.used != 0 || len(s.sources)+len(s.routes)+len(s.waitingOf)+s.waiting.Len() != 0 {
		t.Errorf("left over: %+v", s)
	}
}

func TestRefusedConnectionsKeepTheirHandshake(t *testing.T) {
	s := newSlots(Limits{Connections: 0, Handshakes: 2})
	place := s.enter(source("192.0.2.1"), func() {})
	if _, err := s.connect(place, "a"); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if _, handshakes, _ := s.usage(); handshakes != 1 {
		t.Errorf("%d handshakes", handshakes)
	}
}

// enterAll enters n handshakes and returns how many of all that entered so ended.
func enterAll(s *slots, from netip.Prefix, n int, ended *int) {
	for range n {
		s.enter(from, func() { *ended++ })
	}
}

func TestHandshakesOfOneSourceMakeRoomForThemselves(t *testing.T) {
	s := newSlots(Limits{Connections: 10, Handshakes: 100})
	var honest, stranger int
	enterAll(s, source("192.0.2.1"), 1, &honest)
	enterAll(s, source("192.0.2.2"), 10_000, &stranger)
	enterAll(s, source("192.0.2.3"), 20, &honest)
	if honest != 0 {
		t.Error("an honest handshake had to make room for a stranger's")
	}
	if _, handshakes, evicted := s.usage(); handshakes != 10_021-stranger || handshakes > 100 ||
		evicted != uint64(stranger) {
		t.Errorf("%d handshakes after %d of a stranger ended, %d counted", handshakes, stranger, evicted)
	}
}

func TestHandshakesOfManySourcesEndOldestFirst(t *testing.T) {
	s := newSlots(Limits{Connections: 10, Handshakes: 100})
	var order []int
	for n := range 300 {
		s.enter(source(fmt.Sprintf("192.0.%d.%d", n/200, n%200)), func() { order = append(order, n) })
	}
	for i, n := range order {
		if i != n {
			t.Fatalf("handshake %d ended as number %d", n, i)
		}
	}
	if len(order) != 200 {
		t.Errorf("%d ended, want 200", len(order))
	}
}

func TestLimitsWithinFiles(t *testing.T) {
	limits := Limits{Connections: 1000, Handshakes: 100}
	if limits.Files() != 4200 {
		t.Errorf("%d files", limits.Files())
	}
	if got := limits.within(5000); got != limits {
		t.Errorf("with enough files: %+v", got)
	}
	if got := limits.within(420); got.Files() > 420 || got.Connections != 100 || got.Handshakes != 10 {
		t.Errorf("with a tenth: %+v", got)
	}
}
