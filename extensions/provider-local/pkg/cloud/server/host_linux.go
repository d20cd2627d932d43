package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// LinuxHost is the network namespace the process runs in: that of the node.
type LinuxHost struct {
	Services Services
}

// EnsureBridge implements Host.
func (LinuxHost) EnsureBridge(name string, gateway netip.Prefix) error {
	link, err := ensureBridgeLink(name)
	if err != nil {
		return err
	}
	wanted := &netlink.Addr{
		IPNet: &net.IPNet{IP: gateway.Addr().AsSlice(), Mask: net.CIDRMask(gateway.Bits(), gateway.Addr().BitLen())},
	}
	if err := netlink.AddrReplace(link, wanted); err != nil {
		return fmt.Errorf("bridge %s: setting address %s: %w", name, gateway, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bridge %s: setting it up: %w", name, err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enabling forwarding: %w", err)
	}
	return nil
}

func ensureBridgeLink(name string) (netlink.Link, error) {
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = name
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("bridge %s: create: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", name, err)
	}
	if link.Type() != "bridge" {
		return nil, fmt.Errorf("device %s is a %s, not a bridge; remove it", name, link.Type())
	}
	// Without an address of its own a bridge takes that of one of its ports, and another one when machines come and go:
	// the machines' connections would stall until they learn of it.
	if address := bridgeAddress(name); !bytes.Equal(link.Attrs().HardwareAddr, address) {
		if err := netlink.LinkSetHardwareAddr(link, address); err != nil {
			return nil, fmt.Errorf("bridge %s: setting hardware address: %w", name, err)
		}
	}
	return link, nil
}

// bridgeAddress is a locally administered address that follows from the name.
func bridgeAddress(name string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(name))
	return append(net.HardwareAddr{0x02}, sum[:5]...)
}

// RemoveBridge implements Host.
func (LinuxHost) RemoveBridge(name string) error {
	link, err := netlink.LinkByName(name)
	var notFound netlink.LinkNotFoundError
	if errors.As(err, &notFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("bridge %s: remove: %w", name, err)
	}
	return nil
}

// ApplyFirewall implements Host.
func (h LinuxHost) ApplyFirewall(ctx context.Context, networks []api.Network) error {
	rules := renderFirewall(networks, h.Services)
	if err := run(ctx, rules, "iptables-restore", "--noflush", "--wait"); err != nil {
		return err
	}
	for _, jump := range jumps {
		if run(ctx, "", "iptables", "-w", "-t", jump.table, "-C", jump.from, "-j", jump.to) == nil {
			continue
		}
		if err := run(ctx, "", "iptables", "-w", "-t", jump.table, "-I", jump.from, "1", "-j", jump.to); err != nil {
			return err
		}
	}
	return nil
}

// ListenBastion implements Host. The address is that of the loopback interface, so that it is the node's on all its
// links, whose own addresses stay as they are.
func (LinuxHost) ListenBastion(ctx context.Context, address netip.Addr) (net.Listener, error) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("loopback interface: %w", err)
	}
	if err := netlink.AddrReplace(loopback, hostAddress(address)); err != nil {
		return nil, fmt.Errorf("address %s: %w", address, err)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(address, sshPort).String())
}

// RemoveAddress implements Host.
func (LinuxHost) RemoveAddress(address netip.Addr) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	err = netlink.AddrDel(loopback, hostAddress(address))
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("address %s: %w", address, err)
	}
	return nil
}

func hostAddress(address netip.Addr) *netlink.Addr {
	bits := address.BitLen()
	return &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, bits)}}
}

// DialMachine implements Host.
func (LinuxHost) DialMachine(ctx context.Context, bridge string, machine netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, bastionMark),
				unix.BindToDevice(int(fd), bridge))
		})
		return errors.Join(err, failed)
	}}
	return dialer.DialContext(ctx, "tcp", machine.String())
}

func run(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
