// Package shootclient is the shoot's end of the tunnel. It dials the seed's gateway, so that nothing in the shoot needs
// an inbound port, forwards what comes out of the tunnel to nodes, pods and services under its own address, and refuses
// connections that the shoot would open into the seed.
package shootclient

import (
	"context"
	"errors"
	"net/netip"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/netif"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Config configures a Client.
type Config struct {
	// Endpoint is the gateway's host:port; a host name is resolved again when handshakes fail.
	Endpoint string
	// Tunnel makes the tunnel.
	Tunnel transport.ShootOpener
	// Interface is the name of the network interface to create.
	Interface string
	// Address is the shoot's own address inside the tunnel with the length of the tunnel's network.
	Address netip.Prefix
	// SeedAddress is the seed's address inside the tunnel, which is probed.
	SeedAddress netip.Addr
	// MTU of the tunnel.
	MTU int
	// HealthAddress is where /healthz, /readyz and /tunnel are served.
	HealthAddress string
	// Log receives what happens.
	Log logr.Logger
}

// Run opens the tunnel and keeps it up until ctx is done; then it takes back everything that it set. It needs NET_ADMIN
// in its network namespace. Remains of an earlier run that was killed are replaced.
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
	tunnel, err := config.Tunnel.Open(config.Interface, config.MTU, endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tunnel.Close()) }()
	if err := netif.SetUp(config.Interface, config.Address, config.MTU); err != nil {
		return err
	}
	return serve(ctx, config, tunnel)
}

func serve(ctx context.Context, config Config, tunnel transport.ShootEnd) error {
	keeper := &Keeper{
		Endpoint: config.Endpoint,
		Tunnel:   tunnel,
		Probe:    func(ctx context.Context, number uint64) bool { return probe(ctx, config.SeedAddress, number) },
		Timing:   DefaultTiming,
		Log:      config.Log,
	}
	endpoints := health.Server{Ready: keeper.Ready, Tunnel: tunnel.Stats}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return keeper.Run(ctx) })
	if config.HealthAddress != "" {
		group.Go(func() error { return endpoints.Run(ctx, config.HealthAddress) })
	}
	return group.Wait()
}

func ignoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
