package main

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/sidecar"
	"github.com/trellis-garden/trellis/pkg/vpn/paths"
)

func newPathSidecar(log func() logr.Logger) *cobra.Command {
	var options paths.Options
	command := &cobra.Command{
		Use:   "path-sidecar",
		Short: "Lead a kube-apiserver into its shoot by the path that lives",
		Long: `path-sidecar is an HTTP CONNECT proxy without TLS on a socket of a kube-apiserver's pod. For each
connection it asks one of several vpn-seed-servers, each of which has a tunnel of its own: one through which
the shoot answers. One that does not answer is left within five seconds, and its connections end; one that
comes back is taken when the other fails.`,
		Example: `  vpn path-sidecar --socket /run/vpn/paths.sock --proxies vpn-seed-server:9443,vpn-seed-server-1:9443 \
    --tls-cert-file /etc/vpn/tls.crt --tls-key-file /etc/vpn/tls.key --ca-file /etc/vpn/bundle.crt`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return paths.Run(command.Context(), options, log()) },
	}
	options.AddFlags(command.Flags())
	require(command, "socket", "proxies", "tls-cert-file", "tls-key-file", "ca-file")
	check := newSidecarCheck(paths.Check, "socket", "", "file of the socket that the sidecar listens on")
	require(check, "socket")
	command.AddCommand(check)
	return command
}

func newEgressSidecar(log func() logr.Logger) *cobra.Command {
	var options sidecar.Options
	command := &cobra.Command{
		Use:   "egress-sidecar",
		Short: "Ask the egress proxy of a seed for a process in the same pod",
		Long: `egress-sidecar is an HTTP CONNECT proxy without TLS on the loopback interface of a pod. For each request
it asks the egress proxy of the seed, with the certificate of the pod's control plane, and answers what that
answers. kube-apiserver's admission plugin ImagePolicyWebhook, which knows no egress selector, leaves the
seed this way.`,
		Example: `  vpn egress-sidecar --proxy egress.garden.svc:9444 \
    --tls-cert-file /etc/egress/tls.crt --tls-key-file /etc/egress/tls.key --ca-file /etc/egress/ca.crt`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return sidecar.Run(command.Context(), options, log()) },
	}
	options.AddFlags(command.Flags())
	require(command, "proxy", "tls-cert-file", "tls-key-file", "ca-file")
	command.AddCommand(newSidecarCheck(sidecar.Check, "listen", egress.SidecarAddress,
		"TCP address that the sidecar listens on"))
	return command
}

// newSidecarCheck asks a sidecar that listens where a flag says.
func newSidecarCheck(check func(ctx context.Context, at string) error, flag, usual, usage string) *cobra.Command {
	command := &cobra.Command{Use: "check", Short: "Fail unless the sidecar of this pod answers", Args: cobra.NoArgs}
	at := command.Flags().String(flag, usual, usage)
	command.RunE = func(command *cobra.Command, _ []string) error { return check(command.Context(), *at) }
	return command
}
