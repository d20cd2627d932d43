package main

import (
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/vpn/apiserverproxy"
)

func newAPIServerProxy(log func() logr.Logger) *cobra.Command {
	var config apiserverproxy.Config
	var listen string
	command := &cobra.Command{
		Use:   "apiserver-proxy",
		Short: "Give the pods of a node their API server",
		Long: `apiserver-proxy runs on every node of a shoot in the host's network. It adds the address that kube-apiserver advertises to
the loopback interface, so that the Service "kubernetes" leads there, and forwards connections to the gateway of the seed
with a PROXY protocol v2 header that names the API server. It needs NET_ADMIN.`,
		Example: `  vpn apiserver-proxy --listen 240.0.0.1:443 --gateway api.member1.demo.example.org:8443 --authority api.member1.demo.example.org`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			config.Log = log()
			if config.Listen, err = netip.ParseAddrPort(listen); err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			return apiserverproxy.Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "240.0.0.1:443", "address that kube-apiserver advertises, and its port")
	flags.StringVar(&config.Gateway, "gateway", "", "host:port of the gateway's PROXY protocol port")
	flags.StringVar(&config.Authority, "authority", "", "host name of the API server at the gateway")
	flags.StringVar(&config.HealthAddress, "health-address", "",
		"TCP address of /healthz, /readyz and /metrics; empty for none")
	require(command, "gateway", "authority")
	return command
}
