package members

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dialer connects to members and their proxies. It refuses addresses that no cluster has, and services for metadata of clouds do, when
// names have been resolved.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address) }}
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
		return fmt.Errorf("address %q of a member: %w", address, err)
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
		return fmt.Errorf("address %s is none of a cluster: it is link-local, multicast, unspecified, or of a metadata service; check spec.apiEndpoint and spec.proxyURL", ip)
	}
	return nil
}
