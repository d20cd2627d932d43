package main

import (
	"flag"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/federation/agent"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// agentCommand runs beside one member.
func agentCommand() *cobra.Command {
	options := agent.DefaultOptions()
	logging := textlogger.NewConfig()
	var path string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Serve one member of a fleet with outbound connections only",
		Long: `agent runs in a cluster, or next to it, and makes it a member of the fleet that invited it (trellisctl register). It asks that
fleet for a certificate, and waits until somebody there accepts it (trellisctl accept) who has compared the fingerprint of its key with
the one in its log. Then it applies the fleet's Works for its member, reports what became of them and how the member is, and renews its
certificate in time. It connects to the fleet and to the member; nothing
has to connect to it, and who looks after it may ask for /metrics, /healthz and /readyz. When the member leaves the fleet
(trellisctl unjoin), the agent removes its namespace and its rights.

It may be stopped at any time; what it had begun goes on when it starts again.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			logger := textlogger.NewLogger(logging)
			ctrl.SetLogger(logger)
			config, err := kubeconfig.OfProcess(path, "the member")
			if err != nil {
				return err
			}
			options.Member = config
			return agent.Run(logr.NewContext(ctrl.SetupSignalHandler(), logger), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&path, "kubeconfig", os.Getenv("KUBECONFIG"),
		"kubeconfig of the member's API (default: $KUBECONFIG, then the pod's service account)")
	flags.StringVar(&options.Namespace, "namespace", options.Namespace,
		"namespace of the member that holds the invitation, and the agent's credentials")
	flags.StringSliceVar(&options.Allowance.Namespaces, "allow-namespaces", nil,
		"namespaces in which the fleet may manage objects, and none without a namespace (default: everything)")
	flags.StringSliceVar(&options.Allowance.Kinds, "allow-kinds", nil,
		"kinds that the fleet may manage, like ConfigMap or Deployment.apps (default: all)")
	flags.IntVar(&options.Workers, "workers", options.Workers, "how many objects are worked on at a time")
	flags.StringVar(&options.MetricsAddress, "metrics-address", options.MetricsAddress,
		`address of /metrics, "0" for none`)
	flags.StringVar(&options.HealthAddress, "health-address", options.HealthAddress,
		`address of /healthz, and of /readyz, which tells whether the agent serves its member; "0" for none`)
	flags.DurationVar(&options.Clusters.ProbeInterval, "cluster-status-update-frequency",
		options.Clusters.ProbeInterval, "how often the member is asked whether it is ready")
	flags.DurationVar(&options.Clusters.SurveyInterval, "cluster-survey-interval", options.Clusters.SurveyInterval,
		"how often the member's version and APIs are looked at")
	flags.DurationVar(&options.LeaseDuration, "lease-duration", options.LeaseDuration,
		"how long the agent may be silent before the fleet begins to count the member as unreachable, up to 1m")
	flags.DurationVar(&options.CertificateLifetime, "certificate-lifetime", options.CertificateLifetime,
		"how long certificates are asked to be valid; they are renewed at half of it")
	goFlags := flag.NewFlagSet("", flag.ContinueOnError)
	logging.AddFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	return cmd
}
