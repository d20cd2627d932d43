package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/seedserver"
)

func newSeedServer(log func() logr.Logger) *cobra.Command {
	var config seedserver.Config
	var tunnel seedTunnel
	var clusterDNS string
	var addresses, allowedIPs []string
	command := &cobra.Command{
		Use:   "seed-server",
		Short: "Run the seed's end of a shoot's tunnel",
		Long: `seed-server runs WireGuard on a network stack inside the process, so it needs no privilege, and an HTTP CONNECT proxy
with mutual TLS into it: kube-apiserver's egress selector for "cluster" points there. Only addresses in --allowed-ips can
be reached. Where a connection fails, the answer says whether the seed, the tunnel or the shoot is at fault.

/readyz says that the listeners are open, /tunnel (200 or 503) how old the last handshake with the shoot is. GET ` +
			vpn.AnswersPath + ` at the proxy asks the shoot, and says (200 or 503) whether it has answered.`,
		Example: `  vpn seed-server --private-key-file /etc/vpn/private-key --peer-public-key-file /etc/vpn/peer-public-key \
    --allowed-ips 10.180.0.0/24,10.3.0.0/16,10.4.0.0/16 --cluster-dns 10.4.0.10 \
    --tls-cert-file /etc/vpn/tls/tls.crt --tls-key-file /etc/vpn/tls/tls.key --client-ca-file /etc/vpn/ca/bundle.crt`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			limitMemory()
			config.Log = log()
			tunnel.Log = config.Log
			if err := tunnel.readKeys(); err != nil {
				return err
			}
			if tunnel.Addresses, err = parseAll(addresses, netip.ParseAddr); err != nil {
				return fmt.Errorf("--address: %w", err)
			}
			if config.AllowedIPs, err = parseAll(allowedIPs, netip.ParsePrefix); err != nil {
				return fmt.Errorf("--allowed-ips: %w", err)
			}
			if config.ClusterDNS, err = parseOptional(clusterDNS, netip.ParseAddr); err != nil {
				return fmt.Errorf("--cluster-dns: %w", err)
			}
			config.AllowedIPs = append(config.AllowedIPs, netip.PrefixFrom(vpn.ShootAddress, vpn.ShootAddress.BitLen()))
			return serveSeed(command.Context(), config, tunnel)
		},
	}
	flags := command.Flags()
	tunnel.addFlags(flags)
	flags.StringSliceVar(&addresses, "address", []string{vpn.SeedAddress.String()}, "own addresses inside the tunnel")
	flags.StringSliceVar(&allowedIPs, "allowed-ips", nil,
		"networks of the shoot that may be reached: nodes, pods, services")
	flags.StringVar(&clusterDNS, "cluster-dns", "",
		"address of the shoot's DNS server, for CONNECT to names; without it names are refused")
	flags.StringVar(&config.ClusterDomain, "cluster-domain", "cluster.local",
		"domain appended to names that end in .svc")
	flags.StringVar(&config.ProxyAddress, "proxy-address", fmt.Sprintf(":%d", vpn.HTTPConnectPort),
		"TCP address of the HTTP CONNECT proxy")
	flags.StringVar(&config.TLS.Cert, "tls-cert-file", "", "certificate of the proxy (PEM); read again when it changes")
	flags.StringVar(&config.TLS.Key, "tls-key-file", "", "key of the certificate (PEM)")
	flags.StringVar(&config.TLS.CA, "client-ca-file", "", "CA of the client certificates that the proxy requires (PEM)")
	flags.StringVar(&config.HealthAddress, "health-address", ":8080",
		"TCP address of /healthz, /readyz, /tunnel and /metrics")
	require(command, "private-key-file", "peer-public-key-file", "allowed-ips", "tls-cert-file", "tls-key-file",
		"client-ca-file")
	return command
}

func serveSeed(ctx context.Context, config seedserver.Config, tunnel seedTunnel) error {
	tunnel.AllowedIPs = config.AllowedIPs
	end, err := tunnel.open()
	if err != nil {
		return err
	}
	defer end.Close()
	config.EchoAddress, config.ShootAddress = tunnel.Addresses[0], vpn.ShootAddress
	return seedserver.New(config, end).Run(ctx)
}
