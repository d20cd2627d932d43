// The dashboard binary serves the dashboard of a garden.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/trellis-garden/trellis/pkg/dashboard"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	options := dashboard.Options{}
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:     "dashboard",
		Short:   "Serve the dashboard of a garden",
		Version: version.String(),
		Long: `dashboard serves the pages of the dashboard, and passes on what they ask of the garden and its shoots with the credential
of whoever is logged in. It has no rights of its own, and needs no kubeconfig: the file that --config names says where
the garden's API is, which OIDC issuers may be used, and where the keys of sessions are.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := textlogger.NewLogger(logging)
			klog.SetLogger(log)
			return dashboard.Run(cmd.Context(), options, log)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Config, "config", "/etc/trellis/dashboard/config.yaml", "the configuration file (docs/contracts/dashboard.md)")
	flags.StringVar(&options.Listen, "listen", ":8443", "address for browsers")
	flags.StringVar(&options.TLSCertFile, "tls-cert-file", "",
		"certificate of the server, read again for each connection; plain HTTP without it, for gateways that end TLS")
	flags.StringVar(&options.TLSKeyFile, "tls-key-file", "", "its key")
	flags.StringVar(&options.HealthAddress, "health-address", ":8081",
		`address of /healthz, /readyz and /metrics, "0" for none`)
	goFlags := flag.NewFlagSet("", flag.ExitOnError)
	logging.AddFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	return cmd
}
