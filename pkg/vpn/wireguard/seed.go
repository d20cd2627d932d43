// Package wireguard is WireGuard as the transport of tunnels: the seed's end in this process (device on netstack),
// the shoot's end in the kernel or in this process (device), and the demultiplexer of the gateway (demux). It
// implements the interfaces of package transport; only what chooses a transport imports it.
package wireguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn/splice"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/device"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/netstack"
)

// SeedConfig configures the seed's end.
type SeedConfig struct {
	// PrivateKey is the seed's key; PeerPublicKey the shoot's.
	PrivateKey, PeerPublicKey Key
	// ListenPort is the UDP port.
	ListenPort int
	// Addresses are the seed's own addresses inside the tunnel.
	Addresses []netip.Addr
	// AllowedIPs are the networks behind the tunnel: the shoot's end and its nodes, pods and services.
	AllowedIPs []netip.Prefix
	// MTU of the tunnel.
	MTU int
	// Log receives what happens.
	Log logr.Logger
}

// seedEnd is wireguard-go on a network stack. It needs no privilege.
type seedEnd struct {
	device.Device
	stack *netstack.Stack
}

// OpenSeed opens the seed's end, which waits for the shoot's.
func OpenSeed(config SeedConfig) (transport.SeedEnd, error) {
	if len(config.Addresses) == 0 {
		return nil, errors.New("the seed needs an address inside the tunnel")
	}
	stack, tunDevice, err := netstack.New(config.Addresses, config.MTU)
	if err != nil {
		return nil, fmt.Errorf("creating network stack: %w", err)
	}
	dev, err := device.NewUserspace(config.Log, tunDevice, device.Config{
		PrivateKey: config.PrivateKey,
		ListenPort: config.ListenPort,
		Peer:       device.Peer{PublicKey: config.PeerPublicKey, AllowedIPs: config.AllowedIPs},
	})
	if err != nil {
		return nil, err
	}
	config.Log.Info("Listening", "port", config.ListenPort)
	return seedEnd{Device: dev, stack: stack}, nil
}

func (s seedEnd) DialTCP(ctx context.Context, address netip.AddrPort) (splice.Conn, error) {
	conn, err := s.stack.DialTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (s seedEnd) ListenUDP(address netip.AddrPort) (net.PacketConn, error) {
	conn, err := s.stack.ListenUDP(address)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (s seedEnd) Resolver(server netip.AddrPort) *net.Resolver { return s.stack.Resolver(server) }

func (s seedEnd) Ping(ctx context.Context, address netip.Addr) error {
	return s.stack.Ping(ctx, address)
}
