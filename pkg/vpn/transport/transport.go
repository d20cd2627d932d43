// Package transport is the seam between the parts of the VPN and what carries a tunnel between them. WireGuard (package
// wireguard) is the one transport there is; cmd/vpn chooses it.
//
// seedserver dials through a SeedEnd. shootclient opens a ShootEnd and keeps it up. The relay of the gateway between
// them asks a Demultiplexer which server a packet is for. None of them reads what the tunnel carries.
package transport

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

// Stats is what one end of a tunnel knows about the other.
type Stats struct {
	// LastHandshake is zero when there was none.
	LastHandshake time.Time
	// HandshakeExpiry is the age at which a handshake is worth nothing any more.
	HandshakeExpiry time.Duration
	// ReceivedBytes and SentBytes count encrypted bytes.
	ReceivedBytes, SentBytes uint64
}

// Up says whether the last handshake is recent enough for traffic to flow.
func (s Stats) Up(now time.Time) bool { return now.Sub(s.LastHandshake) < s.HandshakeExpiry }

// End is what both ends of a tunnel have.
type End interface {
	// Stats returns what is known about the other end.
	Stats() (Stats, error)
	// Close ends the tunnel.
	Close() error
}

// SeedEnd is the seed's end of a tunnel: a network stack in this process, through which the networks of the shoot are
// reached. Closing it ends all of its connections.
type SeedEnd interface {
	End
	// DialTCP connects to an address behind the tunnel.
	DialTCP(ctx context.Context, address netip.AddrPort) (splice.Conn, error)
	// ListenUDP opens a UDP socket on an own address inside the tunnel.
	ListenUDP(address netip.AddrPort) (net.PacketConn, error)
	// Resolver asks the DNS server at an address behind the tunnel.
	Resolver(server netip.AddrPort) *net.Resolver
	// Ping asks an address behind the tunnel for an answer, and returns nil when that has come.
	Ping(ctx context.Context, address netip.Addr) error
}

// ShootEnd is the shoot's end of a tunnel: a network interface.
type ShootEnd interface {
	End
	// Reset forgets what was agreed with the seed, and starts a new handshake at once through a gateway.
	Reset(gateway netip.AddrPort) error
}

// ShootOpener makes the shoot's end of a tunnel.
type ShootOpener interface {
	// Open makes the network interface, in the current network namespace, for a tunnel through a gateway. The interface
	// has no address yet and is down.
	Open(interfaceName string, mtu int, gateway netip.AddrPort) (ShootEnd, error)
}
