// Package outside is how a fleet connects to addresses that its users gave: of members, of proxies on the way to them, and of webhooks. In
// a seed it does so through the seed's egress proxy (pkg/egress/dialer), anywhere else directly.
package outside

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dial connects to host:port.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Direct connects without a proxy. It refuses addresses that no cluster has, and services for metadata of clouds do, when names have been
// resolved.
func Direct(ctx context.Context, network, address string) (net.Conn, error) {
	return direct.DialContext(ctx, network, address)
}

var direct = net.Dialer{
	Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
	Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address) },
}

// metadataServices have addresses that are not link-local.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
}

// translated are IPv4 addresses as IPv6 ones (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

func checkAddress(address string) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip := parsed.Addr().Unmap().WithZone("")
	if translated.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	isMetadata := false
	for _, service := range metadataServices {
		isMetadata = isMetadata || ip == service
	}
	if isMetadata || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return fmt.Errorf("address %s is none of a cluster: it is link-local, multicast, unspecified, or of a metadata service", ip)
	}
	return nil
}
