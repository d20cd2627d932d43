package shootclient

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
)

const (
	forwardingFile = "/proc/sys/net/ipv4/ip_forward"
	tunFile        = "/dev/net/tun"
)

// prepareNamespace removes an interface that an earlier run left and lets the kernel forward.
func prepareNamespace(interfaceName string) error {
	if err := wireguard.DeleteLink(interfaceName); err != nil {
		return fmt.Errorf("%w (is NET_ADMIN granted?)", err)
	}
	return enableForwarding(forwardingFile)
}

func enableForwarding(file string) error {
	if content, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(content)) == "1" {
		return nil
	}
	if err := os.WriteFile(file, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enabling IP forwarding: %w; run the container privileged or set the sysctl net.ipv4.ip_forward=1 on the pod", err)
	}
	return nil
}

// openDevice creates the WireGuard interface.
func openDevice(config Config, endpoint netip.AddrPort) (wireguard.Device, error) {
	wg := wireguard.Config{PrivateKey: config.PrivateKey, Peer: config.peer(endpoint)}
	if config.Mode != ModeUserspace {
		device, err := wireguard.NewKernel(config.Interface, config.MTU, wg)
		if err == nil {
			config.Log.Info("Using the kernel's WireGuard", "interface", config.Interface)
			return device, nil
		}
		if config.Mode == ModeKernel || !errors.Is(err, wireguard.ErrNoKernelSupport) {
			return nil, err
		}
	}
	config.Log.Info("Using wireguard-go on a TUN device", "interface", config.Interface)
	return openUserspace(config, wg)
}

func openUserspace(config Config, wg wireguard.Config) (wireguard.Device, error) {
	if err := ensureTunFile(tunFile); err != nil {
		return nil, err
	}
	tunDevice, err := tun.CreateTUN(config.Interface, config.MTU)
	if err != nil {
		return nil, fmt.Errorf("creating TUN device %s: %w (needs NET_ADMIN and %s)", config.Interface, err, tunFile)
	}
	return wireguard.NewUserspace(config.Log.WithName("wireguard"), tunDevice, wg)
}

// ensureTunFile creates the device node where the container's /dev lacks it.
func ensureTunFile(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
		return fmt.Errorf("creating %s: %w; mount it into the container", path, err)
	}
	return nil
}

// configureLink gives the interface its address, which brings the route to the seed, and starts it.
func configureLink(config Config) error {
	link, err := netlink.LinkByName(config.Interface)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", config.Interface, err)
	}
	ipNet := wireguard.IPNet(config.Address)
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: &ipNet}); err != nil {
		return fmt.Errorf("setting address %s on %s: %w", config.Address, config.Interface, err)
	}
	if err := netlink.LinkSetMTU(link, config.MTU); err != nil {
		return fmt.Errorf("setting MTU %d on %s: %w", config.MTU, config.Interface, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting interface %s: %w", config.Interface, err)
	}
	return nil
}
