// Package shootclient is the shoot's end of the tunnel. It dials the seed's gateway, so that nothing in the shoot needs an
// inbound port, forwards what comes out of the tunnel to nodes, pods and services under its own address, and refuses
// connections that the shoot would open into the seed.
package shootclient

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
)

// Mode chooses the implementation of WireGuard.
type Mode string

const (
	// ModeAuto takes the kernel's where it has one.
	ModeAuto Mode = "auto"
	// ModeKernel insists on the kernel's.
	ModeKernel Mode = "kernel"
	// ModeUserspace runs wireguard-go on a TUN device.
	ModeUserspace Mode = "userspace"
)

// Config configures a Client.
type Config struct {
	// Endpoint is the gateway's host:port; a host name is resolved again when handshakes fail.
	Endpoint string
	// PrivateKey is the shoot's key; PeerPublicKey the seed's.
	PrivateKey, PeerPublicKey wgtypes.Key
	// Interface is the name of the network interface to create.
	Interface string
	// Address is the shoot's own address inside the tunnel with the length of the tunnel's network.
	Address netip.Prefix
	// SeedAddress is the seed's address inside the tunnel, which is probed.
	SeedAddress netip.Addr
	// MTU of the tunnel.
	MTU int
	// Keepalive is the interval of WireGuard's persistent keepalives.
	Keepalive time.Duration
	// Mode chooses the implementation of WireGuard.
	Mode Mode
	// HealthAddress is where /healthz, /readyz and /tunnel are served.
	HealthAddress string
	// Log receives what happens.
	Log logr.Logger
}

// Run opens the tunnel and keeps it up until ctx is done; then it takes back everything that it set. It needs NET_ADMIN in
// its network namespace. Remains of an earlier run that was killed are replaced.
func Run(ctx context.Context, config Config) (err error) {
	if err := prepareNamespace(config.Interface); err != nil {
		return err
	}
	rules := firewall{tunnel: config.Interface}
	if err := rules.install(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rules.remove()) }()

	endpoint, err := waitForEndpoint(ctx, config)
	if err != nil {
		return ignoreCancel(ctx, err)
	}
	device, err := openDevice(config, endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if err := configureLink(config); err != nil {
		return err
	}
	return serve(ctx, config, device)
}

func serve(ctx context.Context, config Config, device wireguard.Device) error {
	k := &keeper{config: config, device: device}
	endpoints := health.Server{Ready: k.readiness, Tunnel: device.Stats}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.run(ctx) })
	if config.HealthAddress != "" {
		group.Go(func() error { return endpoints.Run(ctx, config.HealthAddress) })
	}
	return group.Wait()
}

func (c Config) peer(endpoint netip.AddrPort) wireguard.Peer {
	return wireguard.Peer{
		PublicKey:  c.PeerPublicKey,
		Endpoint:   endpoint,
		AllowedIPs: []netip.Prefix{netip.PrefixFrom(c.SeedAddress, c.SeedAddress.BitLen())},
		Keepalive:  c.Keepalive,
	}
}

// keeper keeps the tunnel up: it probes the seed and starts anew when there is no answer, because a WireGuard client only
// notices a restarted server after minutes.
type keeper struct {
	config Config
	device wireguard.Device
	state  monitor
	up     atomic.Bool
}

func (k *keeper) readiness() error {
	if !k.up.Load() {
		return fmt.Errorf("the seed does not answer through the tunnel at %s", k.config.Endpoint)
	}
	return nil
}

func (k *keeper) run(ctx context.Context) error {
	target := netip.AddrPortFrom(k.config.SeedAddress, vpn.EchoPort)
	for sequence := uint64(1); ; sequence++ {
		answered := probe(ctx, target, sequence)
		if ctx.Err() != nil {
			return nil
		}
		step := k.state.observe(answered, time.Now())
		k.report(step)
		if step.reset {
			k.reset(ctx)
		}
		if !sleep(ctx, step.wait) {
			return nil
		}
	}
}

func (k *keeper) report(s step) {
	if k.up.Swap(s.up) == s.up {
		return
	}
	if s.up {
		k.config.Log.Info("Tunnel is up", "endpoint", k.config.Endpoint)
	} else {
		k.config.Log.Info("Tunnel is down: the seed does not answer", "endpoint", k.config.Endpoint)
	}
}

func (k *keeper) reset(ctx context.Context) {
	log := k.config.Log.WithValues("endpoint", k.config.Endpoint)
	endpoint, err := resolveEndpoint(ctx, k.config.Endpoint)
	if err != nil {
		log.Info("Cannot resolve the gateway", "reason", err.Error())
		return
	}
	log.V(1).Info("Starting a new handshake", "address", endpoint)
	if err := k.device.Reset(k.config.peer(endpoint)); err != nil {
		log.Error(err, "Cannot start a new handshake")
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func ignoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
