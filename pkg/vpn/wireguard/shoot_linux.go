package wireguard

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/device"
)

const tunFile = "/dev/net/tun"

// Mode chooses the implementation of WireGuard in a shoot.
type Mode string

const (
	// ModeAuto takes the kernel's where it has one.
	ModeAuto Mode = "auto"
	// ModeKernel insists on the kernel's.
	ModeKernel Mode = "kernel"
	// ModeUserspace runs wireguard-go on a TUN device.
	ModeUserspace Mode = "userspace"
)

// ParseMode returns the mode of a name.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case ModeAuto, ModeKernel, ModeUserspace:
		return mode, nil
	}
	return "", fmt.Errorf("%q is none of auto, kernel, userspace", text)
}

// Shoot configures the shoot's end.
type Shoot struct {
	// PrivateKey is the shoot's key; PeerPublicKey the seed's.
	PrivateKey, PeerPublicKey Key
	// SeedAddress is the seed's address inside the tunnel.
	SeedAddress netip.Addr
	// Keepalive is the interval of WireGuard's persistent keepalives.
	Keepalive time.Duration
	// Mode chooses the implementation of WireGuard.
	Mode Mode
	// Log receives what happens.
	Log logr.Logger
}

// Open implements transport.ShootOpener.
func (s Shoot) Open(interfaceName string, mtu int, gateway netip.AddrPort) (transport.ShootEnd, error) {
	dev, err := s.openDevice(interfaceName, mtu, device.Config{PrivateKey: s.PrivateKey, Peer: s.peer(gateway)})
	if err != nil {
		return nil, err
	}
	return shootEnd{Device: dev, config: s}, nil
}

func (s Shoot) peer(gateway netip.AddrPort) device.Peer {
	return device.Peer{
		PublicKey:  s.PeerPublicKey,
		Endpoint:   gateway,
		AllowedIPs: []netip.Prefix{netip.PrefixFrom(s.SeedAddress, s.SeedAddress.BitLen())},
		Keepalive:  s.Keepalive,
	}
}

// shootEnd is a device whose peer is the seed.
type shootEnd struct {
	device.Device
	config Shoot
}

func (s shootEnd) Reset(gateway netip.AddrPort) error { return s.Device.Reset(s.config.peer(gateway)) }

func (s Shoot) openDevice(interfaceName string, mtu int, config device.Config) (device.Device, error) {
	if s.Mode != ModeUserspace {
		dev, err := device.NewKernel(interfaceName, mtu, config)
		if err == nil {
			s.Log.Info("Using the kernel's WireGuard", "interface", interfaceName)
			return dev, nil
		}
		if s.Mode == ModeKernel || !errors.Is(err, device.ErrNoKernelSupport) {
			return nil, err
		}
	}
	s.Log.Info("Using wireguard-go on a TUN device", "interface", interfaceName)
	return s.openUserspace(interfaceName, mtu, config)
}

func (s Shoot) openUserspace(interfaceName string, mtu int, config device.Config) (device.Device, error) {
	if err := ensureTunFile(tunFile); err != nil {
		return nil, err
	}
	tunDevice, err := tun.CreateTUN(interfaceName, mtu)
	if err != nil {
		return nil, fmt.Errorf("creating TUN device %s: %w (needs NET_ADMIN and %s)", interfaceName, err, tunFile)
	}
	return device.NewUserspace(s.Log.WithName("wireguard"), tunDevice, config)
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
