// The garden-controller-manager binary looks after the garden: projects, extensions, seeds, credentials.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // Schedules of hibernation name time zones.

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/controllermanager"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
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
	options := controllermanager.DefaultOptions()
	quotas := ""
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:     "garden-controller-manager",
		Short:   "Look after the garden",
		Version: version.String(),
		Long: `garden-controller-manager runs beside the garden's API servers. It

  - creates what every garden has: namespaces, the roles of gardenlets and project members, the project "garden";
  - gives each Project its namespace and its members their roles, and deletes projects that nobody uses;
  - decides which extensions each Seed needs, as ControllerInstallations that gardenlets carry out;
  - approves the certificates of gardenlets and marks Seeds, and their Shoots, whose gardenlet has fallen silent;
  - protects what is in use: credentials, quotas, profiles, exposure classes, Secrets and ConfigMaps;
  - merges NamespacedCloudProfiles with their parents;
  - keeps Shoots up to date in their maintenance windows, follows their hibernation schedules, deletes those that expire;
  - keeps the seeds of ManagedSeedSets, and deletes Bastions and events that nobody needs any more.

The garden is reached with --kubeconfig, $KUBECONFIG or the pod's service account.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			ctrl.SetLogger(textlogger.NewLogger(logging))
			config, err := ctrl.GetConfig()
			if err != nil {
				return kubeconfig.Explain("the garden", err)
			}
			if options.ProjectQuotas, err = project.LoadQuotas(quotas); err != nil {
				return err
			}
			return controllermanager.Run(ctrl.SetupSignalHandler(), config, options)
		},
	}
	addFlags(cmd.Flags(), &options)
	cmd.Flags().StringVar(&quotas, "project-quotas", quotas,
		"YAML file with a list of {projectSelector, config}: the ResourceQuota that the namespaces of the selected "+
			"projects get; an empty list for none, no file for the default one")
	goFlags := flag.NewFlagSet("", flag.ExitOnError)
	logging.AddFlags(goFlags)
	cmd.Flags().AddGoFlagSet(goFlags)
	cmd.Flags().AddGoFlag(flag.CommandLine.Lookup("kubeconfig"))
	return cmd
}

// addFlags binds the options to flags. Their defaults are what the options hold.
func addFlags(flags *pflag.FlagSet, options *controllermanager.Options) {
	flags.BoolVar(&options.LeaderElection, "leader-elect", options.LeaderElection,
		"wait to be elected before working; for several replicas")
	flags.StringVar(&options.HealthAddress, "health-address", options.HealthAddress,
		`address of /healthz and /readyz, "0" for none`)
	flags.StringVar(&options.MetricsAddress, "metrics-address", options.MetricsAddress,
		`address of /metrics, "0" for none`)
	for _, period := range []struct {
		value       *time.Duration
		name, usage string
	}{
		{
			&options.SeedGracePeriod, "seed-grace-period",
			"how long a gardenlet may be silent before its Seed counts as unknown",
		},
		{
			&options.ShootGracePeriod, "shoot-grace-period",
			"how long a gardenlet may be silent before its Shoots count as unknown",
		},
		{
			&options.StaleProjects.MinimumLifetime, "project-minimum-lifetime",
			"how old a Project and its last activity have to be before it can count as unused",
		},
		{
			&options.StaleProjects.GracePeriod, "project-stale-grace-period",
			"how long a Project is unused before its deletion is announced in its status",
		},
		{
			&options.StaleProjects.ExpirationTime, "project-stale-expiration-time",
			"how long a Project is unused before it is deleted",
		},
		{
			&options.StaleProjects.SyncPeriod, "project-stale-sync-period",
			"how often Projects are checked for being unused",
		},
		{
			&options.HibernationDeadline, "hibernation-trigger-deadline",
			"how late a hibernation schedule is still followed",
		},
		{
			&options.LifetimeSyncPeriod, "shoot-quota-sync-period",
			"how often the Quotas that bound the lifetime of a Shoot are looked at",
		},
		{
			&options.BastionMaxLifetime, "bastion-max-lifetime",
			"how long a Bastion lives at most, however often it is kept alive",
		},
		{
			&options.ManagedSeedSetSyncPeriod, "managed-seed-set-sync-period",
			"how often a ManagedSeedSet is looked at although nothing seems to have changed",
		},
		{&options.EventTTL, "event-ttl-non-shoot", "how long events are kept that are not about Shoots"},
	} {
		flags.DurationVar(period.value, period.name, *period.value, period.usage)
	}
}
