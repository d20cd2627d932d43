package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
)

// Rules decide about addresses of the world outside. Without any, addresses that the public internet routes may be
// reached, no others.
type Rules struct {
	// Denied are networks that are not to be reached although they may be public: those of the seed and the garden.
	Denied []netip.Prefix
	// Allowed are exceptions of the operator.
	Allowed []Allowance
}

// Allowance is a network that may be reached.
type Allowance struct {
	Network netip.Prefix
	// Port is the only one; 0 for all.
	Port uint16
}

// ParseAllowance reads "10.9.0.0/16", "10.9.0.7/32:443" or "[fd00::7/128]:443".
func ParseAllowance(text string) (Allowance, error) {
	network, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		network, port = text, "0"
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return Allowance{}, fmt.Errorf("%q is neither a network nor one with a port, as 10.9.0.0/16 or "+
			"10.9.0.7/32:443 are: %w", text, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Allowance{}, fmt.Errorf("%q has no port between 1 and 65535: %w", text, err)
	}
	return Allowance{Network: prefix.Masked(), Port: uint16(number)}, nil
}

// metadata are the services by which clouds tell machines about themselves, in part with credentials. Each is a network
// of its own, so that an exception opens it only by its name.
var metadata = prefixes(
	"169.254.169.254/32", "fd00:ec2::254/128", "fd20:ce::254/128",
	// Of Alibaba, Azure and Oracle.
	"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
)

// MetadataServices are the addresses of services for metadata of clouds.
func MetadataServices() []netip.Prefix { return slices.Clone(metadata) }

// special are the networks that are nobody's public address. In IPv6, what lies outside of 2000::/3 is special as well.
var special = append(prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
	"240.0.0.0/4",
	// Teredo, benchmarks, ORCHID, documentation and 6to4: ways into IPv4, or nowhere.
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	"::/3", "4000::/2", "8000::/1",
), metadata...)

// SpecialNetworks are the networks that are nobody's public address, and services for metadata.
func SpecialNetworks() []netip.Prefix { return slices.Clone(special) }

// nat64 holds IPv4 addresses in its last four bytes, which are decided about in its place.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// Decide returns the first of the addresses that may be dialled at a port, or why none may. The longest network that
// holds an address decides; of two that are equally long, the operator's exception.
func (r Rules) Decide(addresses []netip.Addr, port uint16) (netip.Addr, error) {
	if port == 0 {
		return netip.Addr{}, &Refusal{Reason: "no port is named"}
	}
	refusal := &Refusal{Reason: "the name has no address"}
	for i, address := range addresses {
		network := r.refusedBy(judged(address), port)
		if network == "" {
			return address.Unmap(), nil
		}
		if i == 0 {
			refusal = &Refusal{
				Reason: fmt.Sprintf("%s is in %s, which may not be reached from here; an operator of the seed can "+
					"allow it", address, network),
			}
		}
	}
	return netip.Addr{}, refusal
}

// Control of a net.Dialer that connects to nothing but what the rules allow.
func (r Rules) Control(_, address string, _ syscall.RawConn) error {
	asked, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	_, err = r.Decide([]netip.Addr{asked.Addr()}, asked.Port())
	return err
}

// judged is the address that is decided about: what leads to an IPv4 address counts as that.
func judged(address netip.Addr) netip.Addr {
	address = address.Unmap()
	if address.Zone() == "" && nat64.Contains(address) {
		bytes := address.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return address
}

// refusedBy names the network for which an address is refused; empty if it may be reached.
func (r Rules) refusedBy(address netip.Addr, port uint16) string {
	if !address.IsValid() || address.Zone() != "" {
		return "a network of one link"
	}
	denied, allowed := netip.Prefix{}, -1
	for _, list := range [][]netip.Prefix{special, r.Denied} {
		for _, network := range list {
			if network.Contains(address) && (!denied.IsValid() || network.Bits() > denied.Bits()) {
				denied = network
			}
		}
	}
	for _, exception := range r.Allowed {
		if exception.Network.Contains(address) && (exception.Port == 0 || exception.Port == port) {
			allowed = max(allowed, exception.Network.Bits())
		}
	}
	if !denied.IsValid() || allowed >= denied.Bits() {
		return ""
	}
	return denied.String()
}

// Refusal is an answer of the rules, not a failure.
type Refusal struct {
	// Reason says which address is refused, and for what.
	Reason string
}

func (r *Refusal) Error() string { return "egress: " + r.Reason }
