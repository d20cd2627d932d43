// Package netif sets up network interfaces of the current network namespace.
package netif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Delete removes an interface if it is there.
func Delete(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("removing network interface %s: %w", name, err)
	}
	return nil
}

// SetUp gives an interface its address, which brings the route to the network of that address, and its MTU, and
// starts it.
func SetUp(name string, address netip.Prefix, mtu int) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	ipNet := IPNet(address)
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: &ipNet}); err != nil {
		return fmt.Errorf("setting address %s on %s: %w", address, name, err)
	}
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("setting MTU %d on %s: %w", mtu, name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting interface %s: %w", name, err)
	}
	return nil
}

// IPNet converts a prefix for libraries that know only package net.
func IPNet(prefix netip.Prefix) net.IPNet {
	return net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
