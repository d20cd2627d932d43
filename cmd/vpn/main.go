// Command vpn holds the parts of the way between seeds and shoots: both ends of the tunnel, the gateway of the seed and
// its way out, and the proxy that gives pods of a shoot their API server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "vpn:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "vpn",
		Short: "Connect seeds and shoots",
		Long: `vpn connects seeds and shoots. Workers of a shoot need no inbound port: everything is dialled from the shoot.

  kube-apiserver --CONNECT--> seed-server <--WireGuard-- gateway <--WireGuard-- shoot-client --> nodes, pods, services
  kubectl, kubelet --TLS--> gateway --> kube-apiserver
  pods of a shoot --> apiserver-proxy --PROXY v2--> gateway --> kube-apiserver
  kube-apiserver --CONNECT--> path-sidecar --CONNECT--> one of two seed-servers, in highly available control planes
  kube-apiserver --CONNECT--> egress --> the world outside
  kube-apiserver --CONNECT--> egress-sidecar --CONNECT--> egress, for what knows no egress selector`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	verbosity := command.PersistentFlags().IntP("v", "v", 0,
		"log verbosity: 1 sessions and refusals, 2 connections, 4 WireGuard")
	log := func() logr.Logger {
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbosity)))
		klog.SetLogger(logger)
		return logger
	}
	command.AddCommand(newSeedServer(log), newShootClient(log), newGateway(log), newAPIServerProxy(log), newEgress(log),
		newEgressSidecar(log), newPathSidecar(log))
	return command
}
