// Package device runs one point-to-point WireGuard device, in this process (wireguard-go) or in the kernel. Both ends
// of the tunnel have exactly one peer.
package device

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// expiry is the age at which WireGuard itself gives up a session (REJECT_AFTER_TIME).
const expiry = 180 * time.Second

// Config is the whole configuration of a device.
type Config struct {
	// PrivateKey is the device's own key.
	PrivateKey wgtypes.Key
	// ListenPort is the UDP port; 0 lets the system choose one.
	ListenPort int
	// Peer is the other end.
	Peer Peer
}

// Peer is the other end of the tunnel.
type Peer struct {
	// PublicKey identifies the peer.
	PublicKey wgtypes.Key
	// Endpoint is where the peer is; invalid when the peer is the one who dials.
	Endpoint netip.AddrPort
	// AllowedIPs are the networks behind the peer.
	AllowedIPs []netip.Prefix
	// Keepalive is the interval of persistent keepalives; 0 sends none.
	Keepalive time.Duration
}

// Device is a running WireGuard device. What it knows about its peer is what one end of the tunnel knows about the
// other.
type Device interface {
	transport.End
	// Reset forgets the peer's sessions and configures it anew. A peer with an endpoint and keepalives starts a
	// handshake at once.
	Reset(Peer) error
}

// uapi renders the configuration in the text protocol of wireguard-go. wgctrl speaks it through a socket only, which
// a device inside this process does not need.
func (c Config) uapi() string {
	var b strings.Builder
	fmt.Fprintf(&b, "private_key=%s\nlisten_port=%d\n", hexKey(c.PrivateKey), c.ListenPort)
	c.Peer.writeUAPI(&b)
	return b.String()
}

func (p Peer) uapi() string {
	var b strings.Builder
	p.writeUAPI(&b)
	return b.String()
}

func (p Peer) writeUAPI(b *strings.Builder) {
	fmt.Fprintf(b, "replace_peers=true\npublic_key=%s\nreplace_allowed_ips=true\n", hexKey(p.PublicKey))
	for _, prefix := range p.AllowedIPs {
		fmt.Fprintf(b, "allowed_ip=%s\n", prefix)
	}
	if p.Endpoint.IsValid() {
		fmt.Fprintf(b, "endpoint=%s\n", p.Endpoint)
	}
	fmt.Fprintf(b, "persistent_keepalive_interval=%d\n", int(p.Keepalive/time.Second))
}

// parseStats reads the answer to a UAPI get of a device with one peer.
func parseStats(uapi string) (transport.Stats, error) {
	stats := transport.Stats{HandshakeExpiry: expiry}
	var seconds, nanoseconds int64
	for line := range strings.Lines(uapi) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		var err error
		switch name {
		case "last_handshake_time_sec":
			seconds, err = strconv.ParseInt(value, 10, 64)
		case "last_handshake_time_nsec":
			nanoseconds, err = strconv.ParseInt(value, 10, 64)
		case "rx_bytes":
			stats.ReceivedBytes, err = strconv.ParseUint(value, 10, 64)
		case "tx_bytes":
			stats.SentBytes, err = strconv.ParseUint(value, 10, 64)
		}
		if err != nil {
			return transport.Stats{}, fmt.Errorf("WireGuard device reports %s=%q: %w", name, value, err)
		}
	}
	if seconds != 0 || nanoseconds != 0 {
		stats.LastHandshake = time.Unix(seconds, nanoseconds)
	}
	return stats, nil
}

func hexKey(key wgtypes.Key) string { return hex.EncodeToString(key[:]) }
