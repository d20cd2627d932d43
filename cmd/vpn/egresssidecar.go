package main

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/sidecar"
)

func newEgressSidecar(log func() logr.Logger) *cobra.Command {
	var options sidecar.Options
	command := &cobra.Command{
		Use:   "egress-sidecar",
		Short: "Ask the egress proxy of a seed for a process in the same pod",
		Long: `egress-sidecar is an HTTP CONNECT proxy without TLS on the loopback interface of a pod. For each request it asks the egress proxy of the
seed, with the certificate of the pod's control plane, and answers what that answers. kube-apiserver's admission plugin ImagePolicyWebhook, which
knows no egress selector, leaves the seed this way.`,
		Example: `  vpn egress-sidecar --proxy egress.garden.svc:9444 \
    --tls-cert-file /etc/egress/tls.crt --tls-key-file /etc/egress/tls.key --ca-file /etc/egress/ca.crt`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return sidecar.Run(command.Context(), options, log()) },
	}
	options.AddFlags(command.Flags())
	require(command, "proxy", "tls-cert-file", "tls-key-file", "ca-file")
	command.AddCommand(newEgressSidecarCheck())
	return command
}

func newEgressSidecarCheck() *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "check",
		Short: "Fail unless the sidecar of this pod answers",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return sidecar.Check(command.Context(), address) },
	}
	command.Flags().StringVar(&address, "listen", egress.SidecarAddress, "TCP address that the sidecar listens on")
	return command
}
