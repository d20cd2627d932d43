package landscape

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
)

// Loopback addresses are 127.x.y.1 with x and y from these ranges, away from what other software likes to use.
const (
	firstX, countX = 32, 64
	firstY, countY = 1, 250
)

// gatewayAddresses is how many addresses, from the landscape's on, lead to its gateway: clients take clusters at
// different addresses for different ones, as kubectl does when it keeps what it learnt of an API.
const gatewayAddresses = 64

// hostPorts are the ports that a landscape serves on its loopback address.
var hostPorts = []uint16{apiPort, gatewayPort, registryPort}

// bastionRange are the addresses that bastions get in the nodes' network, and bastionPort is where the host reaches
// them: the first one at the landscape's loopback address, each other one at the next. Their own port, 22, may be taken
// by the host's SSH server for all addresses.
var bastionRange = netip.MustParsePrefix("172.18.0.208/28")

const (
	bastionPort = 22022
	sshPort     = 22
)

// bastionAddresses are those of bastionRange.
func bastionAddresses() []netip.Addr {
	var addresses []netip.Addr
	for address := bastionRange.Addr(); bastionRange.Contains(address); address = address.Next() {
		addresses = append(addresses, address)
	}
	return addresses
}

// allocate chooses the loopback address of a landscape: the one it had, or else the first free one from a place that
// depends on the name, so that the same name mostly gets the same address.
func allocate(name string, before netip.Addr, taken map[netip.Addr]bool,
	usable func(netip.Addr) bool) (netip.Addr, error) {
	if before.IsValid() && !taken[before] && usable(before) {
		return before, nil
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	start := hash.Sum32() % (countX * countY)
	for i := range uint32(countX * countY) {
		n := (start + i) % (countX * countY)
		address := netip.AddrFrom4([4]byte{127, byte(firstX + n/countY), byte(firstY + n%countY), 1})
		if !taken[address] && usable(address) {
			return address, nil
		}
	}
	return netip.Addr{}, errors.New("no loopback address is free: something on this machine listens on the ports " +
		"443, 5000, 6443 and 22022 of all of them")
}

func taken(others []state) map[netip.Addr]bool {
	addresses := map[netip.Addr]bool{}
	for _, other := range others {
		addresses[other.Loopback] = true
	}
	return addresses
}

// bindable says whether nobody listens on a landscape's ports of the address.
func bindable(address netip.Addr) bool {
	for _, port := range append([]uint16{bastionPort}, hostPorts...) {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
		if err != nil {
			return false
		}
		listener.Close()
	}
	return true
}
