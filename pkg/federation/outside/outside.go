// Package outside is how a fleet connects to addresses that its users gave: of members, of proxies on the way to them,
// and of webhooks. In a seed it does so through the seed's egress proxy (pkg/egress/dialer), anywhere else directly.
package outside

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/trellis-garden/trellis/pkg/egress"
)

// Dial connects to host:port.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Direct connects without a proxy. It refuses addresses that no cluster has, and services for metadata of clouds do,
// when names have been resolved.
func Direct(ctx context.Context, network, address string) (net.Conn, error) {
	return direct.DialContext(ctx, network, address)
}

var direct = net.Dialer{
	Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
	Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address) },
}

var metadataServices = egress.MetadataServices()

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
	isMetadata := slices.ContainsFunc(metadataServices, func(service netip.Prefix) bool { return service.Contains(ip) })
	if isMetadata || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return fmt.Errorf("address %s is none of a cluster: it is link-local, multicast, unspecified, or of a "+
			"metadata service", ip)
	}
	return nil
}
