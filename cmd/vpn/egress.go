package main

import (
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/proxy"
)

func newEgress(log func() logr.Logger) *cobra.Command {
	var config proxy.Config
	var denied, allowed []string
	command := &cobra.Command{
		Use:   "egress",
		Short: "Decide where kube-apiservers of a seed connect to",
		Long: `egress is the HTTP CONNECT proxy of a seed, with mutual TLS: the egress selectors of its kube-apiservers point there. The common
name of a client's certificate is the namespace of its control plane.

On --cluster-address clusters without workers ask for addresses of theirs: only what an extension serves for them (Service ` + vpnv1alpha1.ServedAPIs + ` of
the control plane's namespace) is reached. On --outside-address all ask for addresses that users gave: public ones are reached, no private,
local or reserved ones, none of --denied-networks, and what --allowed-networks adds. The longest network that holds an address decides.`,
		Example: `  vpn egress --denied-networks 10.1.0.0/16,10.2.0.0/16 --allowed-networks 10.9.0.7/32:443 \
    --tls-cert-file /etc/egress/tls/tls.crt --tls-key-file /etc/egress/tls/tls.key --client-ca-file /etc/egress/ca/bundle.crt`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			config.Log = log()
			if config.Rules.Denied, err = parseAll(denied, netip.ParsePrefix); err != nil {
				return fmt.Errorf("--denied-networks: %w", err)
			}
			if config.Rules.Allowed, err = parseAll(allowed, egress.ParseAllowance); err != nil {
				return fmt.Errorf("--allowed-networks: %w", err)
			}
			return proxy.New(config).Run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.ClusterAddress, "cluster-address", fmt.Sprintf(":%d", egress.ClusterPort),
		"TCP address for what kube-apiservers ask of their clusters")
	flags.StringVar(&config.OutsideAddress, "outside-address", fmt.Sprintf(":%d", egress.OutsidePort),
		"TCP address for what kube-apiservers ask of the world outside")
	flags.StringSliceVar(&denied, "denied-networks", nil, "networks of the seed and the garden")
	flags.StringSliceVar(&allowed, "allowed-networks", nil,
		"networks that may be reached although they are private or denied, each with :<port> if only that may be")
	flags.StringVar(&config.TLS.Cert, "tls-cert-file", "", "certificate of the proxy (PEM); read again when it changes")
	flags.StringVar(&config.TLS.Key, "tls-key-file", "", "key of the certificate (PEM)")
	flags.StringVar(&config.TLS.CA, "client-ca-file", "", "CA of the client certificates that the proxy requires (PEM)")
	flags.StringVar(&config.HealthAddress, "health-address", ":8080", "TCP address of /healthz, /readyz and /metrics")
	require(command, "tls-cert-file", "tls-key-file", "client-ca-file")
	return command
}
