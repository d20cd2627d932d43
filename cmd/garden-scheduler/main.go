// The garden-scheduler binary assigns shoots to seeds.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/scheduler"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "garden-scheduler:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	options := scheduler.Options{}
	var strategy string
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:     "garden-scheduler",
		Short:   "Assign shoots to seeds",
		Version: version.String(),
		Long: `garden-scheduler gives each Shoot without a seed the seed with the fewest shoots among those that fit: ready and
visible, of the right provider and region, tolerated, selected, with room left. The decision is written through
shoots/binding. When no seed fits, status.lastOperation and an event SchedulingFailed of the Shoot say for every seed why
not, and the Shoot is tried again as soon as a seed, a profile or another shoot changes.

With the strategy SameRegion, seeds have to be in the Shoot's region. With MinimalDistance the nearest are taken: by the
ConfigMaps in namespace garden with label scheduling.gardener.cloud/purpose=region-config, else by the regions' names.

The garden is reached with --kubeconfig, $KUBECONFIG or the pod's service account.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) (err error) {
			ctrl.SetLogger(textlogger.NewLogger(logging))
			if options.Strategy, err = scheduler.ParseStrategy(strategy); err != nil {
				return fmt.Errorf("--strategy: %w", err)
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return kubeconfig.Explain("the garden", err)
			}
			return scheduler.Run(ctrl.SetupSignalHandler(), config, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&strategy, "strategy", string(scheduler.SameRegion),
		"which regions are good for a shoot: SameRegion or MinimalDistance")
	flags.StringVar(&options.SchedulerName, "scheduler-name", gardencorev1beta1.DefaultSchedulerName,
		"spec.schedulerName of the shoots to care for")
	flags.DurationVar(&options.RetryPeriod, "retry-period", scheduler.DefaultRetryPeriod,
		"how often a waiting shoot is tried again although nothing seems to have changed")
	flags.BoolVar(&options.LeaderElection, "leader-elect", false,
		"wait to be elected before working; for several replicas")
	flags.StringVar(&options.HealthAddress, "health-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	flags.StringVar(&options.MetricsAddress, "metrics-address", "0", `address of /metrics, "0" for none`)
	goFlags := flag.NewFlagSet("", flag.ExitOnError)
	logging.AddFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	flags.AddGoFlag(flag.CommandLine.Lookup("kubeconfig"))
	return cmd
}
