package node

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// buildNetwork gives the node its address on a bridge, routes to other nodes, and a default route to a neighbour that
// does not exist: programs that ask for the machine's address find it, and packets for the outside are dropped.
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
	// Without an address of its own a bridge takes that of one of its ports, and another one when nodes come and go.
	bridge := &netlink.Bridge{
		LinkAttrs: netlink.LinkAttrs{Name: spec.Bridge, HardwareAddr: hardwareAddress(spec.Hostname)},
	}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge %s: %w", spec.Bridge, err)
	}
	connect := connectToNowhere
	if spec.Switch != "" {
		connect = connectToSwitch
	}
	if err := connect(spec, bridge); err != nil {
		return fmt.Errorf("link %s: %w", uplink, err)
	}
	for _, name := range []string{uplink, spec.Bridge} {
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
	if err := addRoutes(spec.Routes, bridge.Index); err != nil {
		return err
	}
	return setNetwork(filepath.Join(spec.root(), "proc/sys/net"))
}

// hardwareAddress is a locally administered address that follows from a node's name.
func hardwareAddress(hostname string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(hostname))
	return append(net.HardwareAddr{0x02}, sum[:5]...)
}

// connectToNowhere makes the uplink of a node that has the bridge.
func connectToNowhere(_ Spec, bridge netlink.Link) error {
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: uplink, MasterIndex: bridge.Attrs().Index}, PeerName: uplinkPeer,
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	return linkUp(uplinkPeer)
}

// connectToSwitch makes the uplink of another node: its other end is a port of the first node's bridge. It goes when
// one of the two networks does.
func connectToSwitch(spec Spec, bridge netlink.Link) error {
	processes, running := Running(spec.Switch)
	if !running {
		return fmt.Errorf("the node of %s, whose bridge it leads to, does not run; start that one first", spec.Switch)
	}
	own, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	err = inside(processes.Init.PID, map[string]int{"net": unix.CLONE_NEWNET}, func() error {
		return makePort(spec, int(own.Fd()))
	})
	if err != nil {
		return fmt.Errorf("port of the bridge in the network of %s: %w", spec.Switch, err)
	}
	link, err := netlink.LinkByName(uplink)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, bridge)
}

// makePort makes a port of the bridge in the present network, and its other end in the network of a node. The port of
// a node of this name that ended just now may still be there.
func makePort(spec Spec, network int) error {
	if old, err := netlink.LinkByName(spec.Hostname); err == nil {
		if err := netlink.LinkDel(old); err != nil {
			return fmt.Errorf("removing that of the node before: %w", err)
		}
	}
	bridge, err := netlink.LinkByName(spec.Bridge)
	if err != nil {
		return err
	}
	port := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: spec.Hostname, MasterIndex: bridge.Attrs().Index},
		PeerName:  uplink, PeerNamespace: netlink.NsFd(network),
	}
	if err := netlink.LinkAdd(port); err != nil {
		return err
	}
	return linkUp(spec.Hostname)
}

func addRoutes(routes []Route, link int) error {
	for _, route := range routes {
		_, network, err := net.ParseCIDR(route.Network)
		if err != nil {
			return fmt.Errorf("route: %w", err)
		}
		via := net.ParseIP(route.Via)
		if via == nil {
			return fmt.Errorf("route to %s: via %q is not an IP address", route.Network, route.Via)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link, Dst: network, Gw: via}); err != nil {
			return fmt.Errorf("route to %s: %w", route.Network, err)
		}
	}
	return nil
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
