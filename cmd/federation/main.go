// The federation binary runs the controllers of one fleet, or the agent of one member.
package main

import (
	"flag"
	"fmt"
	"os"
	_ "time/tzdata" // CronFederatedHPAs name time zones.

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "federation:", err)
		os.Exit(1)
	}
}

// command parses the options.
func command() *cobra.Command {
	options := controllers.DefaultOptions()
	logging := textlogger.NewConfig()
	var path string
	var leave egressFlags
	cmd := &cobra.Command{
		Use:   "federation",
		Short: "Spread the objects of a fleet over its member clusters",
		Long: `federation runs once per fleet. It watches the fleet's API, and there

  - the policies (PropagationPolicy, ClusterPropagationPolicy) and the objects that they select: for each it keeps a
    ResourceBinding, decides which members get it, and says why others don't;
  - the override policies: it writes a Work per member with the object as it is to be there;
  - the Works: it applies them to the members (server-side, field manager "trellis-federation"), puts back what is
    changed or removed there, and adds the members' status up in the object's own;
  - the Clusters: it keeps their conditions, versions, APIs and resources up to date, and serves clusters/{name}/proxy.

It may be stopped at any time; what it had begun goes on when it starts again. Several replicas need --leader-elect, and
serve clusters/{name}/proxy with one certificate.`,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			ctrl.SetLogger(textlogger.NewLogger(logging))
			if err := leave.apply(&options); err != nil {
				return err
			}
			config, err := kubeconfig.OfProcess(path, "the fleet")
			if err != nil {
				return err
			}
			return controllers.Run(ctrl.SetupSignalHandler(), config, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&path, "kubeconfig", os.Getenv("KUBECONFIG"),
		"kubeconfig of the fleet's API (default: $KUBECONFIG, then the pod's service account)")
	flags.StringVar(&options.SkippedNamespaces, "skipped-propagating-namespaces", options.SkippedNamespaces,
		"regular expression of namespaces whose objects are never propagated")
	flags.IntVar(&options.Workers, "workers", options.Workers, "how many objects each controller works on at a time")
	flags.BoolVar(&options.LeaderElection, "leader-elect", options.LeaderElection,
		"work only while holding a lease in the fleet; needed with more than one replica")
	flags.StringVar(&options.MetricsAddress, "metrics-address", options.MetricsAddress,
		`address of /metrics, "0" for none`)
	flags.StringVar(&options.HealthAddress, "health-address", options.HealthAddress,
		`address of /healthz and /readyz, "0" for none`)
	flags.DurationVar(&options.Clusters.ProbeInterval, "cluster-status-update-frequency",
		options.Clusters.ProbeInterval, "how often a member is asked whether it is ready")
	flags.DurationVar(&options.Clusters.SurveyInterval, "cluster-survey-interval", options.Clusters.SurveyInterval,
		"how often a member's version, APIs, nodes and pods are looked at")
	flags.DurationVar(&options.Clusters.FailureThreshold, "cluster-failure-threshold",
		options.Clusters.FailureThreshold, "how long a ready member must fail to answer before it counts as not ready")
	flags.DurationVar(&options.Clusters.SuccessThreshold, "cluster-success-threshold",
		options.Clusters.SuccessThreshold, "how long a failed member must answer before it counts as ready")
	flags.DurationVar(&options.PromiseLapse, "promise-lapse", options.PromiseLapse,
		"how long replicas that a member was told to run, and makes no pods for, hold room that others could have")
	flags.StringVar(&options.MemberAPI.Listen, "member-api-address", options.MemberAPI.Listen,
		"address that clusters/{name}/proxy is served at for the fleet's kube-apiserver; none by default")
	flags.StringVar(&options.MemberAPI.Address, "member-api-ip", os.Getenv("POD_IP"),
		"IP address by which the fleet's kube-apiserver reaches --member-api-address (default: $POD_IP)")
	flags.StringVar(&options.MemberAPI.CertFile, "member-api-cert-file", "",
		"certificate of --member-api-address (PEM), its own authority, which all replicas have; by default each "+
			"process makes one for itself")
	flags.StringVar(&options.MemberAPI.KeyFile, "member-api-key-file", "", "key of the certificate (PEM)")
	flags.IntVar(&options.MemberAPI.Replicas, "member-api-replicas", 1,
		"how many processes serve --member-api-address: agents of members keep a tunnel to each")
	leave.add(flags)
	failoverFlags(flags, &options.Failover)
	deletionFlags(flags, &options.Deletions)
	goFlags := flag.NewFlagSet("", flag.ContinueOnError)
	logging.AddFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	cmd.AddCommand(agentCommand())
	return cmd
}
