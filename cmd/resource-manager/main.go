// The resource-manager binary delivers objects to a seed and to the shoots that the seed hosts.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/resourcemanager"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "resource-manager:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	opts := resourcemanager.Options{}
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:   "resource-manager",
		Short: "Deliver objects to a seed and its shoots",
		Long: `resource-manager runs in the namespace "garden" of each seed, once or, with --leader-elect, several times. It

  - applies ManagedResources: those of class "seed" to the seed, all others to the shoot whose control plane runs in
    their namespace (through the Secret "gardener-internal"), and puts back what is changed or deleted there;
  - fills "shoot-access-*" Secrets with tokens of service accounts in the shoot and renews them;
  - approves the serving certificates of kubelets, when their names and addresses are those of a machine of the shoot,
    and, in fleets, the certificates with which accepted agents of members replace their own.

The seed is reached with --kubeconfig, $KUBECONFIG or the pod's service account.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctrl.SetLogger(textlogger.NewLogger(logging))
			config, err := ctrl.GetConfig()
			if err != nil {
				return kubeconfig.Explain("the seed", err)
			}
			return resourcemanager.Run(ctrl.SetupSignalHandler(), config, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.ClusterID, "cluster-id", "seed",
		fmt.Sprintf("identity of the seed, the first part of the annotation %q", resourcesv1alpha1.OriginAnnotation))
	flags.DurationVar(&opts.SyncPeriod, "sync-period", time.Minute, "how often unchanged objects are applied again")
	flags.IntVar(&opts.Concurrency, "concurrency", 20, "how many ManagedResources are worked on at a time")
	flags.StringVar(&opts.HealthAddress, "health-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	flags.StringVar(&opts.MetricsAddress, "metrics-address", "0", `address of /metrics, "0" for none`)
	flags.BoolVar(&opts.LeaderElection, "leader-elect", false,
		`work only while holding a lease in namespace "garden"; needed with more than one replica`)
	addGoFlags(cmd, logging)
	return cmd
}
