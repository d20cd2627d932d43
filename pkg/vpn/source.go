package vpn

import "net/netip"

// SourceOf is what counts as one source of packets and connections: an IPv4 address, or the /64 that every IPv6 host
// may choose its address from.
func SourceOf(client netip.AddrPort) netip.Prefix {
	address := client.Addr().Unmap().WithZone("")
	bits := 64
	if address.Is4() {
		bits = 32
	}
	prefix, _ := address.Prefix(bits) // fails for invalid addresses only, which then are one source
	return prefix
}
