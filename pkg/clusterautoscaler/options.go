// Package clusterautoscaler keeps as many machines in a shoot as its pods need: it grows a node group when pods find no
// room, and removes nodes whose pods have room elsewhere. Flags, taints, annotations and events are those that people
// know from Kubernetes' cluster-autoscaler; its groups are MachineDeployments (package nodegroup).
//
// Decisions are functions of a Snapshot (scaleup.go, scaledown.go); the loop reads snapshots and carries decisions out.
// It is no controller with a queue: what is decided is about all pods and nodes at one time, and no object's change has
// a decision of its own.
package clusterautoscaler

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
)

// Options of the autoscaler. The defaults are those of the flags.
type Options struct {
	// Kubeconfig of the shoot.
	Kubeconfig string
	// Namespace of the shoot's control plane in the seed.
	Namespace string
	// LeaderElection lets one of several replicas work while the others stand by.
	LeaderElection bool
	// Nodes are the limits of the groups, as nodegroup.ParseLimits reads them.
	Nodes []string
	// Address of /healthz and /metrics.
	Address string
	// Expanders choose the group to grow; each is asked about those that the one before it leaves.
	Expanders []string
	// ScanInterval is how often the shoot is looked at.
	ScanInterval time.Duration
	// Groups are the options of groups that have none of their own.
	Groups nodegroup.Options
	// ScaleDownDelayAfterAdd, …AfterDelete and …AfterFailure are pauses of removals.
	ScaleDownDelayAfterAdd, ScaleDownDelayAfterDelete, ScaleDownDelayAfterFailure time.Duration
	// NewPodScaleUpDelay is the age that a pending pod must reach to count.
	NewPodScaleUpDelay time.Duration
	// MaxGracefulTermination is the longest that pods get to end when their node is removed.
	MaxGracefulTerminationSeconds int
	// StartupTaints are on nodes that are not ready for pods yet, StatusTaints on nodes that may lose them any time.
	StartupTaints, StatusTaints []string
	// IgnoreTaints is the old name of StartupTaints.
	IgnoreTaints []string
	// MaxScaleDownParallelism and MaxDrainParallelism bound the nodes that are removed at a time: all, and those with
	// pods.
	MaxScaleDownParallelism, MaxDrainParallelism int
	// IgnoreDaemonSetsUtilization leaves pods of DaemonSets out of the utilization of nodes.
	IgnoreDaemonSetsUtilization bool
	// InitialBackoff, MaxBackoff and BackoffReset bound the pauses of groups that fail to grow.
	InitialBackoff, MaxBackoff, BackoffReset time.Duration
	// MaxBinpackingTime bounds the time spent on fitting pods into new nodes.
	MaxBinpackingTime time.Duration
	// EmitPerNodeGroupMetrics adds metrics per group.
	EmitPerNodeGroupMetrics bool
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the shoot")
	flags.StringVar(&o.Namespace, "namespace", "", "namespace of the shoot's control plane in the seed")
	flags.BoolVar(&o.LeaderElection, "leader-elect", false,
		"work only while holding a lease in the namespace; needed with more than one replica")
	flags.StringArrayVar(&o.Nodes, "nodes", nil,
		"limits of a node group: <minimum>:<maximum>:<namespace>.<name of a MachineDeployment>; may be repeated")
	flags.StringVar(&o.Address, "address", ":8085", "address of /healthz and /metrics")
	flags.StringSliceVar(&o.Expanders, "expander", []string{ExpanderLeastWaste},
		"how the group to grow is chosen: least-waste, most-pods, least-nodes, priority, random; several are tried "+
			"in order")
	flags.DurationVar(&o.ScanInterval, "scan-interval", 10*time.Second, "how often the shoot is looked at")
	flags.DurationVar(&o.NewPodScaleUpDelay, "new-pod-scale-up-delay", 0, "age that a pending pod must reach to count")
	flags.DurationVar(&o.MaxBinpackingTime, "max-binpacking-time", 5*time.Minute,
		"longest time spent on fitting pending pods into new nodes")
	flags.StringArrayVar(&o.StartupTaints, "startup-taint", nil,
		"key of a taint that nodes have until they are ready for pods; may be repeated")
	flags.StringArrayVar(&o.StatusTaints, "status-taint", nil,
		"key of a taint that nodes may lose any time; may be repeated")
	flags.StringArrayVar(&o.IgnoreTaints, "ignore-taint", nil, "old name of --startup-taint; may be repeated")
	flags.BoolVar(&o.EmitPerNodeGroupMetrics, "emit-per-nodegroup-metrics", false, "add metrics per node group")
	o.addScaleDownFlags(flags)
	flags.DurationVar(&o.Groups.MaxNodeProvisionTime, "max-node-provision-time", 20*time.Minute,
		"how long a machine may take to become a node")
	flags.DurationVar(&o.InitialBackoff, "initial-node-group-backoff-duration", 5*time.Minute,
		"first pause of a group that failed to grow")
	flags.DurationVar(&o.MaxBackoff, "max-node-group-backoff-duration", 30*time.Minute,
		"longest pause of a group that failed to grow")
	flags.DurationVar(&o.BackoffReset, "node-group-backoff-reset-timeout", 3*time.Hour,
		"how long after the last failure pauses start from the first again")
}

func (o *Options) addScaleDownFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.ScaleDownDelayAfterAdd, "scale-down-delay-after-add", time.Hour,
		"how long after growing nodes are removed again")
	flags.DurationVar(&o.ScaleDownDelayAfterDelete, "scale-down-delay-after-delete", 0,
		"how long after a removal nodes are removed again")
	flags.DurationVar(&o.ScaleDownDelayAfterFailure, "scale-down-delay-after-failure", 3*time.Minute,
		"how long after a failed removal nodes are removed again")
	flags.DurationVar(&o.Groups.ScaleDownUnneededTime, "scale-down-unneeded-time", 30*time.Minute,
		"how long a node must be unneeded to be removed")
	flags.DurationVar(&o.Groups.ScaleDownUnreadyTime, "scale-down-unready-time", 20*time.Minute,
		"how long a node that is not ready must be unneeded to be removed")
	flags.Float64Var(&o.Groups.ScaleDownUtilizationThreshold, "scale-down-utilization-threshold", 0.5,
		"share of requested CPU or memory below which a node is unneeded")
	flags.Float64Var(&o.Groups.ScaleDownGPUUtilizationThreshold, "scale-down-gpu-utilization-threshold", 0.5,
		"share of requested GPUs below which a node is unneeded")
	flags.IntVar(&o.MaxGracefulTerminationSeconds, "max-graceful-termination-sec", 600,
		"longest time in seconds that pods get to end when their node is removed")
	flags.IntVar(&o.MaxScaleDownParallelism, "max-scale-down-parallelism", 10, "most nodes removed at a time")
	flags.IntVar(&o.MaxDrainParallelism, "max-drain-parallelism", 1, "most nodes with pods removed at a time")
	flags.BoolVar(&o.IgnoreDaemonSetsUtilization, "ignore-daemonsets-utilization", false,
		"leave pods of DaemonSets out of the utilization of nodes")
}

// limits checks the options and returns the limits of the groups.
func (o *Options) limits() ([]nodegroup.Limits, error) {
	if o.Kubeconfig == "" || o.Namespace == "" {
		return nil, errors.New("--kubeconfig and --namespace are needed")
	}
	if o.ScanInterval <= 0 {
		return nil, fmt.Errorf("--scan-interval=%s must be longer than 0", o.ScanInterval)
	}
	var limits []nodegroup.Limits
	for _, text := range o.Nodes {
		parsed, err := nodegroup.ParseLimits(text, o.Namespace)
		if err != nil {
			return nil, fmt.Errorf("--nodes: %w", err)
		}
		limits = append(limits, parsed)
	}
	return limits, nil
}

// isStartupTaint says whether a node with the taint is still on its way.
func (o *Options) isStartupTaint(key string) bool {
	return contains(o.StartupTaints, key) || contains(o.IgnoreTaints, key)
}
