// The gardenlet binary is the agent of a seed.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/gardenlet"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "gardenlet:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	opts := gardenlet.Options{}
	logging := textlogger.NewConfig()
	path := ""
	cmd := &cobra.Command{
		Use:   "gardenlet --config FILE",
		Short: "Agent of a seed: registers it with the garden and hosts shoots in it",
		Long: `gardenlet runs in a seed and connects to the garden. It

  - gets a client certificate for the garden with a bootstrap token, and renews it;
  - creates the Seed object from its configuration, renews the seed's Lease and reports its health;
  - installs resource-manager, and the extensions that the garden assigns to the seed;
  - reconciles the Shoots of the seed, and removes them;
  - installs a gardenlet into those of them that are to be seeds themselves (ManagedSeed);
  - deploys itself anew as the Gardenlet object of its seed's name says, if there is one.

The configuration file is a GardenletConfiguration (gardenlet.config.gardener.cloud/v1alpha1):

  apiVersion: gardenlet.config.gardener.cloud/v1alpha1
  kind: GardenletConfiguration
  gardenClientConnection:
    bootstrapKubeconfig: {namespace: garden, name: gardenlet-bootstrap-kubeconfig}
    kubeconfigSecret: {namespace: garden, name: gardenlet-kubeconfig}
  gateway: {address: 172.18.0.2}
  seedConfig:
    metadata: {name: local}
    spec: {...}

The seed is reached with --kubeconfig, $KUBECONFIG or the pod's service account.`,
		Args:          cobra.NoArgs,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctrl.SetLogger(textlogger.NewLogger(logging))
			var err error
			if opts.Config, err = config.Load(path); err != nil {
				return err
			}
			if opts.Seed, err = ctrl.GetConfig(); err != nil {
				return kubeconfig.Explain("the seed", err)
			}
			return gardenlet.Run(ctrl.SetupSignalHandler(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&path, "config", "", "path of the configuration file (required)")
	flags.StringVar(&opts.HealthAddress, "health-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	flags.BoolVar(&opts.LeaderElection, "leader-elect", false,
		"elect one of several pods that works; the others stand by")
	flags.StringVar(&opts.MetricsAddress, "metrics-address", "0", `address of /metrics, "0" for none`)
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err)
	}
	addGoFlags(cmd, logging)
	return cmd
}
