// The garden-controller-manager binary looks after the garden: projects, extensions, seeds, credentials.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/controllermanager"
	"github.com/trellis-garden/trellis/pkg/controllermanager/seed"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "garden-controller-manager:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	options := controllermanager.Options{}
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:     "garden-controller-manager",
		Short:   "Look after the garden",
		Version: version.String(),
		Long: `garden-controller-manager runs beside the garden's API servers. It

  - creates what every garden has: namespaces, the roles of gardenlets and project members, the project "garden";
  - gives each Project its namespace and its members their roles;
  - decides which extensions each Seed needs, as ControllerInstallations that gardenlets carry out;
  - approves the certificates of gardenlets and marks Seeds whose gardenlet has fallen silent;
  - protects credentials that bindings use.

The garden is reached with --kubeconfig, $KUBECONFIG or the pod's service account.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			ctrl.SetLogger(textlogger.NewLogger(logging))
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the garden's kubeconfig: %w", err)
			}
			return controllermanager.Run(ctrl.SetupSignalHandler(), config, options)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.LeaderElection, "leader-elect", false, "wait to be elected before working; for several replicas")
	flags.StringVar(&options.HealthAddress, "health-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	flags.StringVar(&options.MetricsAddress, "metrics-address", "0", `address of /metrics, "0" for none`)
	flags.DurationVar(&options.SeedGracePeriod, "seed-grace-period", seed.DefaultGracePeriod, "how long a gardenlet may be silent before its Seed counts as unknown")
	goFlags := flag.NewFlagSet("", flag.ExitOnError)
	logging.AddFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	flags.AddGoFlag(flag.CommandLine.Lookup("kubeconfig"))
	return cmd
}
