package shootclient

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// brokenTunnel is up only after some resets.
type brokenTunnel struct {
	needed int
	resets []netip.AddrPort
}

func (b *brokenTunnel) Stats() (transport.Stats, error) { return transport.Stats{}, nil }
func (b *brokenTunnel) Close() error                    { return nil }

func (b *brokenTunnel) Reset(gateway netip.AddrPort) error {
	b.resets = append(b.resets, gateway)
	return nil
}

// Given a tunnel that is silent, it is reset until the seed answers, and then no more.
func TestKeeperResetsASilentTunnel(t *testing.T) {
	tunnel := &brokenTunnel{needed: 3}
	ctx, cancel := context.WithCancel(t.Context())
	answers := 0
	keeper := &Keeper{
		Endpoint: "127.0.0.1:51820", Tunnel: tunnel, Log: logr.Discard(),
		Timing: Timing{
			Probe: time.Millisecond, ProbeDown: time.Millisecond,
			MinReset: time.Millisecond, MaxReset: time.Millisecond, Failures: 1,
		},
	}
	keeper.Probe = func(context.Context, uint64) bool {
		if len(tunnel.resets) < tunnel.needed {
			if keeper.Ready() == nil {
				t.Error("a silent tunnel counts as up")
			}
			return false
		}
		if answers++; answers == 3 {
			cancel()
		}
		return true
	}
	if err := keeper.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Ready(); err != nil {
		t.Error(err)
	}
	if len(tunnel.resets) != tunnel.needed || tunnel.resets[0] != netip.MustParseAddrPort("127.0.0.1:51820") {
		t.Errorf("resets through %v, want %d through the gateway", tunnel.resets, tunnel.needed)
	}
}
