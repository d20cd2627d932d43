package device

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn/netif"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// ErrNoKernelSupport says that this kernel has no WireGuard.
var ErrNoKernelSupport = errors.New("the kernel has no WireGuard")

// kernel is a WireGuard interface of the kernel.
type kernel struct {
	name   string
	client *wgctrl.Client
}

// NewKernel creates the interface in the current network namespace. The error is ErrNoKernelSupport when the kernel
// cannot do it.
func NewKernel(name string, mtu int, config Config) (Device, error) {
	link := &netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: mtu}}
	if err := netlink.LinkAdd(link); errors.Is(err, unix.EOPNOTSUPP) {
		return nil, ErrNoKernelSupport
	} else if err != nil {
		return nil, fmt.Errorf("creating WireGuard interface %s: %w", name, err)
	}
	k := &kernel{name: name}
	if err := k.configure(config); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *kernel) configure(config Config) error {
	client, err := wgctrl.New()
	if err != nil {
		return fmt.Errorf("opening WireGuard's netlink family: %w", err)
	}
	k.client = client
	wg := wgtypes.Config{
		PrivateKey: &config.PrivateKey, ReplacePeers: true, Peers: []wgtypes.PeerConfig{config.Peer.kernel()},
	}
	if config.ListenPort != 0 {
		wg.ListenPort = &config.ListenPort
	}
	if err := client.ConfigureDevice(k.name, wg); err != nil {
		return fmt.Errorf("configuring WireGuard interface %s: %w", k.name, err)
	}
	return nil
}

func (k *kernel) Reset(peer Peer) error {
	config := wgtypes.Config{ReplacePeers: true, Peers: []wgtypes.PeerConfig{peer.kernel()}}
	if err := k.client.ConfigureDevice(k.name, config); err != nil {
		return fmt.Errorf("configuring the peer of WireGuard interface %s: %w", k.name, err)
	}
	return nil
}

func (k *kernel) Stats() (transport.Stats, error) {
	dev, err := k.client.Device(k.name)
	if err != nil {
		return transport.Stats{}, fmt.Errorf("reading WireGuard interface %s: %w", k.name, err)
	}
	stats := transport.Stats{HandshakeExpiry: expiry}
	for _, peer := range dev.Peers {
		stats.LastHandshake = peer.LastHandshakeTime
		stats.ReceivedBytes += uint64(peer.ReceiveBytes)
		stats.SentBytes += uint64(peer.TransmitBytes)
	}
	return stats, nil
}

func (k *kernel) Close() error {
	if k.client != nil {
		_ = k.client.Close()
	}
	return netif.Delete(k.name)
}

func (p Peer) kernel() wgtypes.PeerConfig {
	config := wgtypes.PeerConfig{PublicKey: p.PublicKey, ReplaceAllowedIPs: true, AllowedIPs: ipNets(p.AllowedIPs)}
	if p.Endpoint.IsValid() {
		config.Endpoint = net.UDPAddrFromAddrPort(p.Endpoint)
	}
	if p.Keepalive > 0 {
		keepalive := p.Keepalive.Truncate(time.Second)
		config.PersistentKeepaliveInterval = &keepalive
	}
	return config
}

func ipNets(prefixes []netip.Prefix) []net.IPNet {
	nets := make([]net.IPNet, 0, len(prefixes))
	for _, prefix := range prefixes {
		nets = append(nets, netif.IPNet(prefix))
	}
	return nets
}
