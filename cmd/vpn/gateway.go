package main

import (
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/vpn/gateway"
)

func newGateway(log func() logr.Logger) *cobra.Command {
	config := gateway.Config{Streams: gateway.DefaultLimits}
	tunnels := newGatewayTunnels()
	var path string
	command := &cobra.Command{
		Use:   "gateway",
		Short: "Run the one address of a seed",
		Long: `gateway hands TLS connections to Services by server name, as the TLSRoutes of the seed say (any namespace, one Service
backend in the route's own namespace), without terminating them. A second port takes the host from the authority TLV of a
PROXY protocol v2 header instead. WireGuard packets go to the Services labelled ` + vpnv1alpha1.LabelTunnel + `=true, told apart
by the public key in their annotation ` + vpnv1alpha1.AnnotationPublicKey + `.

TLSRoutes have only the host names that the annotation ` + vpnv1alpha1.AnnotationHosts + ` of their Namespace lists, and WireGuard
Services only the key in its annotation ` + vpnv1alpha1.AnnotationPublicKey + `; those of --operator-namespace may have all.

It needs get, list and watch for tlsroutes, services and namespaces, and waits for the TLSRoute CRD when it is not there yet.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			config.Log, config.Tunnels = log(), tunnels.Limits
			if config.Cluster, err = kubeconfig.OfProcess(path, "the seed"); err != nil {
				return err
			}
			config.Cluster.UserAgent = "trellis-gateway"
			return gateway.Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.TLSAddress, "tls-address", ":443", "TCP address for TLS connections")
	flags.StringVar(&config.ProxyAddress, "proxy-address", ":8443",
		"TCP address for connections with a PROXY protocol v2 header")
	tunnels.addFlags(flags, &config)
	flags.StringVar(&config.HealthAddress, "health-address", ":8080", "TCP address of /healthz, /readyz and /metrics")
	streams := &config.Streams
	flags.IntVar(&streams.Connections, "max-connections", streams.Connections, "TCP connections of each port at a time")
	flags.IntVar(&streams.Handshakes, "max-handshakes", streams.Handshakes,
		"TCP connections of each port that did not say yet which host they want")
	flags.IntVar(&streams.PerSource, "max-connections-per-source", 0,
		"TCP connections of one client address at a port; 0: as many as remain free")
	flags.IntVar(&streams.PerRoute, "max-connections-per-route", 0,
		"TCP connections to the hosts of one TLSRoute at a port; 0: as many as remain free")
	flags.StringVar(&config.OperatorNamespace, "operator-namespace", "garden",
		"namespace whose TLSRoutes may have all host names")
	flags.StringVar(&path, "kubeconfig", os.Getenv("KUBECONFIG"),
		"kubeconfig of the seed's API (default: $KUBECONFIG, then the pod's service account)")
	return command
}
