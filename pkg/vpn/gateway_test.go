package vpn_test

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn/relay"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// testGateway is the UDP half of a gateway.
type testGateway struct {
	address string
	stop    func()
	relay   *relay.Relay
	shoots  []*testShoot
}

func newTestGateway(t testing.TB) *testGateway {
	t.Helper()
	g := &testGateway{address: "127.0.0.1:0"}
	g.start(t)
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *testGateway) start(t testing.TB) {
	t.Helper()
	r, err := relay.Listen(context.Background(), logr.Discard(), g.address, demux.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	g.relay, g.address = r, r.Addr().String()
	g.stop = running(t, r.Run)
	g.serve(g.shoots...)
}

func (g *testGateway) serve(shoots ...*testShoot) {
	g.shoots = shoots
	var servers []transport.Server
	for _, shoot := range shoots {
		servers = append(servers, transport.Server{
			Name:      shoot.name,
			PublicKey: shoot.seedKey.PublicKey(),
			Backend:   netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(shoot.port)),
		})
	}
	g.relay.SetServers(servers)
}

func (g *testGateway) restart(t testing.TB) {
	g.stop()
	g.start(t)
}

// testTranslator forwards UDP packets of one client to a target from an own port, which it can change.
type testTranslator struct {
	address string
	target  net.Addr
	inside  net.PacketConn
	outside atomic.Pointer[net.UDPConn]
	client  atomic.Pointer[net.Addr]
}

func newTestTranslator(t testing.TB, target string) *testTranslator {
	t.Helper()
	inside, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &testTranslator{
		address: inside.LocalAddr().String(), target: net.UDPAddrFromAddrPort(netip.MustParseAddrPort(target)),
		inside: inside,
	}
	tr.forget(t)
	t.Cleanup(func() { _, _ = inside.Close(), tr.outside.Load().Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := inside.ReadFrom(buf)
			if err != nil {
				return
			}
			tr.client.Store(&from)
			_, _ = tr.outside.Load().WriteTo(buf[:n], tr.target)
		}
	}()
	return tr
}

// forget replaces the port that the target sees; packets to the old one are lost.
func (tr *testTranslator) forget(t testing.TB) {
	t.Helper()
	outside, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if old := tr.outside.Swap(outside); old != nil {
		_ = old.Close()
	}
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, _, err := outside.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = tr.inside.WriteTo(buf[:n], *tr.client.Load())
		}
	}()
}
