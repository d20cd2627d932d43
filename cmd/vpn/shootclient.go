package main

import (
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/shootclient"
)

func newShootClient(log func() logr.Logger) *cobra.Command {
	var config shootclient.Config
	var tunnel shootTunnel
	var address, seedAddress string
	command := &cobra.Command{
		Use:   "shoot-client",
		Short: "Run the shoot's end of its tunnel",
		Long: `shoot-client dials the gateway of the shoot's seed and forwards what comes out of the tunnel to nodes, pods and services,
masqueraded as this pod. It uses the kernel's WireGuard, or wireguard-go on a TUN device where the kernel has none. It needs
NET_ADMIN and /proc/sys/net/ipv4/ip_forward to be 1 or writable (a privileged container has all of that), and nf_tables in the
kernel; no other program is needed. Connections from the shoot into the tunnel are dropped.

The seed's end is probed every few seconds; when it does not answer, the endpoint is resolved again and a new handshake
starts. /readyz says whether the last probe was answered.`,
		Example: `  vpn shoot-client --endpoint gateway.example.org:51820 \
    --private-key-file /etc/vpn/private-key --peer-public-key-file /etc/vpn/peer-public-key`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			limitMemory()
			config.Log = log()
			if config.Address, err = netip.ParsePrefix(address); err != nil {
				return fmt.Errorf("--address: %w", err)
			}
			if config.SeedAddress, err = netip.ParseAddr(seedAddress); err != nil {
				return fmt.Errorf("--seed-address: %w", err)
			}
			tunnel.Log, tunnel.SeedAddress = config.Log, config.SeedAddress
			if config.Tunnel, err = tunnel.opener(); err != nil {
				return err
			}
			return shootclient.Run(command.Context(), config)
		},
	}
	defaultAddress := netip.PrefixFrom(vpn.ShootAddress, vpn.TunnelNetwork.Bits())
	flags := command.Flags()
	flags.StringVar(&config.Endpoint, "endpoint", "", "host:port of the gateway's port for tunnels")
	tunnel.addFlags(flags)
	flags.StringVar(&config.Interface, "interface", "wg-seed", "name of the network interface to create")
	flags.StringVar(&address, "address", defaultAddress.String(),
		"own address inside the tunnel, with the length of its network")
	flags.StringVar(&seedAddress, "seed-address", vpn.SeedAddress.String(), "the seed's address inside the tunnel")
	flags.IntVar(&config.MTU, "mtu", vpn.DefaultMTU, "MTU inside the tunnel; the same at both ends")
	flags.StringVar(&config.HealthAddress, "health-address", ":8080",
		"TCP address of /healthz, /readyz and /tunnel; empty for none")
	require(command, "endpoint", "private-key-file", "peer-public-key-file")
	return command
}
