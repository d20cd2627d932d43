package main

import (
	"github.com/spf13/pflag"

	"github.com/trellis-garden/trellis/pkg/federation/budget"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/failover"
)

// failoverFlags say when objects leave members that fail, and when they return.
func failoverFlags(flags *pflag.FlagSet, options *failover.Options) {
	flags.DurationVar(&options.ClusterFailoverAfter, "cluster-failover-after", options.ClusterFailoverAfter,
		"how long a member may be not ready or unreachable before its objects move to others; 0: never by itself, "+
			"only NoExecute taints of people and ClusterTaintPolicies move objects")
	flags.Float64Var(&options.EvictionRate, "resource-eviction-rate", options.EvictionRate,
		"how many copies per second leave members because of taints; 0: one in 30 minutes")
	flags.DurationVar(&options.GracefulEvictionTimeout, "graceful-eviction-timeout", options.GracefulEvictionTimeout,
		"after which an old copy that still waits for its replacement is reported; only gracePeriodSeconds in a "+
			"policy removes it without one")
	flags.StringVar((*string)(&options.FailBack), "fail-back", string(options.FailBack),
		"whether objects return by themselves to members that are healthy again: Automatic or Never; policies may "+
			"differ")
	flags.DurationVar(&options.FailBackWindow, "fail-back-window", options.FailBackWindow,
		"how long a member must have been healthy without a break before objects return to it; policies may differ")
	flags.IntVar(&options.Limits.PerHour, "fail-back-limit", options.Limits.PerHour,
		"how many objects of the fleet return per hour; 0: no bound")
	flags.IntVar(&options.Limits.PerClusterPerHour, "fail-back-limit-per-cluster", options.Limits.PerClusterPerHour,
		"how many objects return to one member per hour; 0: no bound")
}

// deletionFlags say how many deletions at once need no confirmation.
func deletionFlags(flags *pflag.FlagSet, settings *budget.Settings) {
	flags.IntVar(&settings.Percent, "deletion-budget-percent", settings.Percent,
		"how many percent of the objects of a member, or of the fleet, may be deleted within the window without a "+
			"confirmation; 100: never ask")
	flags.IntVar(&settings.AtLeast, "deletion-budget-at-least", settings.AtLeast,
		"how many objects of a member may be deleted within the window in any case; twice as many of the fleet")
	flags.DurationVar(&settings.Window, "deletion-budget-window", settings.Window, "how long deletions count")
}
