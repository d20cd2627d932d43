package federation

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	kuberand "k8s.io/apimachinery/pkg/util/rand"
)

// ownAddress may be behind a Service, which loopback addresses may not. It is there for these tests alone, and leads nowhere else.
func ownAddress(t *testing.T) string {
	t.Helper()
	address, err := makeAddress()
	if err != nil {
		t.Fatalf("this test makes a network interface, for which it must run as root: %v", err)
	}
	return address
}

// makeAddress takes one of the range for benchmarks of networks (RFC 2544), on a bridge without ports.
var makeAddress = sync.OnceValues(func() (string, error) {
	address := net.IPv4(198, 18, byte(rand.N(256)), byte(1+rand.N(254)))
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "fleet-" + kuberand.String(8)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return "", fmt.Errorf("adding bridge %s: %w", bridge.Name, err)
	}
	servers.stops = append(servers.stops, func() { _ = netlink.LinkDel(bridge) })
	if err := netlink.LinkSetUp(bridge); err != nil {
		return "", fmt.Errorf("setting bridge %s up: %w", bridge.Name, err)
	}
	if err := netlink.AddrAdd(bridge, &netlink.Addr{IPNet: &net.IPNet{IP: address, Mask: net.CIDRMask(32, 32)}}); err != nil {
		return "", fmt.Errorf("giving bridge %s address %s: %w", bridge.Name, address, err)
	}
	return address.String(), nil
})
