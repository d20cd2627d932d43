// The cluster-autoscaler binary keeps as many machines in one shoot as its pods need.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster-autoscaler:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	options := clusterautoscaler.Options{}
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:   "cluster-autoscaler",
		Short: "Keep as many machines in a shoot as its pods need",
		Long: `cluster-autoscaler runs once per shoot, in the namespace of its control plane. It asks for machines when pods of the shoot
find no room, and removes nodes whose pods have room elsewhere, by the replicas of the MachineDeployments that --nodes names.

The seed is reached with the pod's service account, the shoot with --kubeconfig.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := textlogger.NewLogger(logging)
			ctrl.SetLogger(log)
			seed, err := rest.InClusterConfig()
			if err != nil {
				return fmt.Errorf("finding the seed, in a pod of which this has to run: %w", err)
			}
			return clusterautoscaler.Run(ctrl.SetupSignalHandler(), log, seed, options)
		},
	}
	options.AddFlags(cmd.Flags())
	set := flag.NewFlagSet("", flag.ContinueOnError)
	logging.AddFlags(set)
	cmd.Flags().AddGoFlagSet(set)
	return cmd
}
