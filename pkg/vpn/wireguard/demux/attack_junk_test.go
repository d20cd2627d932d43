package demux

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// junkRate is how many packets a stranger sends in a second.
const junkRate = 50_000

func thousandServers() []transport.Server {
	var servers []transport.Server
	for n := range 1000 {
		s := testServer(1)
		s.Name = fmt.Sprintf("shoot--demo--%d/vpn-seed-server", n)
		s.PublicKey[1], s.PublicKey[2] = byte(n), byte(n>>8)
		servers = append(servers, s)
	}
	return servers
}

// flood sends a second of packets, each from another of the stranger's ports. between runs after each thousandth.
func (f *fixture) flood(from netip.Addr, packet func(n int) []byte, between func(now time.Time)) {
	for n := range junkRate {
		now := start.Add(time.Duration(n) * time.Second / junkRate)
		f.FromClient(now, netip.AddrPortFrom(from, uint16(n)), packet(n))
		if between != nil && n%1000 == 999 {
			between(now)
		}
	}
}

// strangerTo is an address that shares the memory of sources with none of the first clients: which ones share it is
// chance, and those pay for each other.
func (f *fixture) strangerTo(t *testing.T, clients int) netip.Addr {
	t.Helper()
	for n := range 100 {
		stranger := netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})
		source, shared := f.sources.of(netip.AddrPortFrom(stranger, 1)), false
		for i := range clients {
			shared = shared || f.sources.of(client(i)) == source
		}
		if !shared {
			return stranger
		}
	}
	t.Fatal("every address shares the memory of a client")
	return netip.Addr{}
}

// A stranger who sends initiations for nobody takes none of the hashes that others need: each of them finds its server
// meanwhile, and what the junk costs does not grow with the servers.
func TestAttackJunkInitiations(t *testing.T) {
	servers := thousandServers()
	f := newFixture(DefaultLimits, servers...)
	junk := initiation(testServer(9), 7)
	honest := 0
	stranger := f.strangerTo(t, junkRate/1000)
	f.flood(stranger, func(int) []byte { return junk }, func(now time.Time) {
		f.establish(t, now, client(honest), servers[900+honest], uint32(honest))
		honest++
	})
	source := f.sources.of(netip.AddrPortFrom(stranger, 1))
	if source.junk.left > 2000 {
		t.Errorf("%.0f hashes are left for the stranger: the test floods too little", source.junk.left)
	}
	requireNoDebt(t, &source.junk)
	requireNoDebt(t, &f.hashes)
}

// Who connected before comes back through another port also while packets with forged sources take all hashes.
func TestAttackJunkFromForgedSources(t *testing.T) {
	servers := thousandServers()
	f := newFixture(DefaultLimits, servers...)
	f.End(f.establish(t, start, client(1), servers[900], 42))
	junk := initiation(testServer(9), 7)
	for n := range junkRate {
		f.FromClient(start, netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(n >> 16), byte(n >> 8), byte(n)}), 1),
			junk)
	}
	if f.hashes.left >= 1000 {
		t.Fatalf("%.0f hashes are left: the test floods too little", f.hashes.left)
	}
	requireNoDebt(t, &f.hashes)
	f.establish(t, start, netip.AddrPortFrom(client(1).Addr(), 5), servers[900], 43)
}

// requireNoDebt is that no more hashes were computed than there were.
func requireNoDebt(t *testing.T, hashes *bucket) {
	t.Helper()
	if hashes.left < 0 {
		t.Errorf("%.0f hashes more were computed than are allowed", -hashes.left)
	}
}

// Who has the keys of one shoot, and floods its server with good initiations and good indexes, takes sessions of that
// shoot only.
func TestAttackFloodWithTheKeyOfOneShoot(t *testing.T) {
	own, other := testServer(1), testServer(2)
	for name, packet := range map[string]func(int) []byte{
		"initiations": func(int) []byte { return initiation(own, 7) },
		"data":        func(int) []byte { return data(42) },
		"both": func(n int) []byte {
			if n%2 == 0 {
				return initiation(own, uint32(n))
			}
			return data(42)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(DefaultLimits, own, other)
			f.establish(t, start, client(1), own, 42)
			waiting, _ := f.FromClient(start, client(2), initiation(other, 7))
			f.flood(netip.MustParseAddr("198.51.100.1"), packet, func(now time.Time) {
				f.requireConsistent(t, DefaultLimits)
				if waiting.closed {
					t.Fatal("a handshake with another shoot's server ended")
				}
			})
			if begun := len(f.closed) + len(f.sessions); begun > 3*DefaultLimits.NewPerServer {
				t.Errorf("%d sessions began within a second", begun)
			}
			f.establish(t, start.Add(time.Second), client(3), other, 43)
		})
	}
}

// A server that has all the sessions it may have, each of them in use once, takes a new client in place of one that is
// silent.
func TestAttackConfirmedSessionsOfOneShoot(t *testing.T) {
	limits := DefaultLimits
	limits.NewPerServer = 0
	own := testServer(1)
	f := newFixture(limits, own)
	good := f.establish(t, start, client(1), own, 1)
	for n := range uint32(10 * limits.PerServer) {
		now := start.Add(time.Duration(n+1) * time.Millisecond)
		f.establish(t, now, netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), uint16(n+1)), own, n+100)
		if got, _ := f.FromClient(now, client(1), data(1)); got != good {
			t.Fatal("the session of a client that sends had to make room")
		}
	}
	f.requireConsistent(t, limits)
}

// Packets that are nothing, or for nobody, leave nothing behind.
func TestAttackJunkLeavesNothing(t *testing.T) {
	f := newFixture(DefaultLimits, testServer(1))
	f.flood(netip.MustParseAddr("198.51.100.1"), func(n int) []byte {
		packet := make([]byte, []int{0, 1, 31, 32, 64, 92, 148, 1400}[n%8])
		if len(packet) >= 8 {
			packet[0] = byte(n / 8 % 6)
			binary.LittleEndian.PutUint32(packet[4:], uint32(n))
		}
		return packet
	}, nil)
	f.requireEmpty(t)
}
