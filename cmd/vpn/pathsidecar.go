package main

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

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
	command.AddCommand(newPathSidecarCheck())
	return command
}

func newPathSidecarCheck() *cobra.Command {
	var socket string
	command := &cobra.Command{
		Use:   "check",
		Short: "Fail unless the sidecar of this pod answers",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return paths.Check(command.Context(), socket) },
	}
	command.Flags().StringVar(&socket, "socket", "", "file of the socket that the sidecar listens on")
	require(command, "socket")
	return command
}
