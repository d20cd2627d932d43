package device

import (
	"fmt"

	"github.com/go-logr/logr"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// userspace is a wireguard-go device.
type userspace struct {
	device *device.Device
}

// NewUserspace starts wireguard-go on a tun device, which it owns from then on, also when it fails.
func NewUserspace(log logr.Logger, tunDevice tun.Device, config Config) (Device, error) {
	dev := device.NewDevice(tunDevice, conn.NewDefaultBind(), deviceLogger(log))
	if err := dev.IpcSet(config.uapi()); err != nil {
		dev.Close()
		return nil, fmt.Errorf("configuring WireGuard device: %w", err)
	}
	if err := dev.Up(); err != nil {
		dev.Close()
		return nil, fmt.Errorf("opening WireGuard's UDP port %d: %w", config.ListenPort, err)
	}
	return &userspace{device: dev}, nil
}

func (u *userspace) Reset(peer Peer) error {
	if err := u.device.IpcSet(peer.uapi()); err != nil {
		return fmt.Errorf("configuring WireGuard peer: %w", err)
	}
	return nil
}

func (u *userspace) Stats() (transport.Stats, error) {
	state, err := u.device.IpcGet()
	if err != nil {
		return transport.Stats{}, fmt.Errorf("reading WireGuard device: %w", err)
	}
	return parseStats(state)
}

func (u *userspace) Close() error {
	u.device.Close()
	return nil
}

func deviceLogger(log logr.Logger) *device.Logger {
	return &device.Logger{
		Verbosef: func(format string, args ...any) {
			if verbose := log.V(4); verbose.Enabled() {
				verbose.Info(fmt.Sprintf(format, args...))
			}
		},
		// What wireguard-go calls errors are mostly packets that it could not send or decrypt; the tunnel's state is
		// reported by the probes.
		Errorf: func(format string, args ...any) {
			if verbose := log.V(2); verbose.Enabled() {
				verbose.Info(fmt.Sprintf(format, args...))
			}
		},
	}
}
