package node

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
)

// uplink and its peer are a pair of links that leads nowhere: one end in the bridge gives it a carrier.
const (
	uplink     = "uplink0"
	uplinkPeer = "nowhere0"
)

// networkSettings of the node's own network namespace.
var networkSettings = map[string]string{
	"ipv4/ip_forward":                "1",
	"ipv4/conf/all/rp_filter":        "0",
	"ipv4/conf/default/rp_filter":    "0",
	"ipv4/conf/all/route_localnet":   "1",
	"ipv6/conf/all/forwarding":       "1",
	"ipv6/conf/default/accept_dad":   "0",
	"bridge/bridge-nf-call-iptables": "1",
}

// buildNetwork gives the node its address on a bridge, and a default route to a neighbour that does not exist: programs
// that ask for the machine's address find it, and packets for the outside are dropped.
func buildNetwork(spec Spec) error {
	address, err := netlink.ParseAddr(spec.Address)
	if err != nil {
		return fmt.Errorf("address %q: %w", spec.Address, err)
	}
	gateway := net.ParseIP(spec.Gateway)
	if gateway == nil {
		return fmt.Errorf("gateway %q is not an IP address", spec.Gateway)
	}
	if err := linkUp("lo"); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: spec.Bridge}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge %s: %w", spec.Bridge, err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: uplink, MasterIndex: bridge.Index}, PeerName: uplinkPeer}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("link %s: %w", uplink, err)
	}
	for _, name := range []string{uplinkPeer, uplink, spec.Bridge} {
		if err := linkUp(name); err != nil {
			return err
		}
	}
	if err := netlink.AddrAdd(bridge, address); err != nil {
		return fmt.Errorf("address %s: %w", spec.Address, err)
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Gw: gateway}); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	return setNetwork(filepath.Join(spec.root(), "proc/sys/net"))
}

func linkUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

// setNetwork applies networkSettings through a proc file system of the node. A setting that the kernel lacks (no IPv6,
// no bridge filter) is not needed either.
func setNetwork(settings string) error {
	for name, value := range networkSettings {
		path := filepath.Join(settings, name)
		if !exists(path) {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}
