package clusterautoscaler

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/component"
)

// groups are the flags with the limits of all machines, also of those whose number is fixed: they may be on their way.
func groups(namespace string, deployments []extensionsv1alpha1.MachineDeployment) []string {
	var flags []string
	for _, deployment := range deployments {
		limits := nodegroup.Limits{
			Name: deployment.Name, Minimum: int(deployment.Minimum), Maximum: int(deployment.Maximum),
		}
		flags = append(flags, "--nodes="+limits.String(namespace))
	}
	return flags
}

// arguments are the user's settings as flags. What is not set is left to the defaults of the flags.
func arguments(config *gardencorev1beta1.ClusterAutoscaler) []string {
	if config == nil {
		return nil
	}
	flags := map[string]string{}
	add(flags, "expander", config.Expander, func(e gardencorev1beta1.ExpanderMode) string { return string(e) })
	add(flags, "scale-down-utilization-threshold", config.ScaleDownUtilizationThreshold, share)
	add(flags, "ignore-daemonsets-utilization", config.IgnoreDaemonsetsUtilization, strconv.FormatBool)
	add(flags, "emit-per-nodegroup-metrics", config.EmitPerNodeGroupMetrics, strconv.FormatBool)
	for name, value := range map[string]*int32{
		"max-graceful-termination-sec": config.MaxGracefulTerminationSeconds,
		"max-scale-down-parallelism":   config.MaxScaleDownParallelism,
		"max-drain-parallelism":        config.MaxDrainParallelism,
		"v":                            config.Verbosity,
	} {
		add(flags, name, value, func(n int32) string { return strconv.Itoa(int(n)) })
	}
	for name, value := range durations(config) {
		add(flags, name, value, func(d metav1.Duration) string { return d.Duration.String() })
	}
	list := component.SortedFlags(flags)
	for _, taints := range []struct {
		flag string
		keys []string
	}{
		{"--ignore-taint=", config.IgnoreTaints}, {"--startup-taint=", config.StartupTaints},
		{"--status-taint=", config.StatusTaints},
	} {
		for _, key := range taints.keys {
			list = append(list, taints.flag+key)
		}
	}
	return list
}

func durations(config *gardencorev1beta1.ClusterAutoscaler) map[string]*metav1.Duration {
	return map[string]*metav1.Duration{
		"scan-interval":                       config.ScanInterval,
		"new-pod-scale-up-delay":              config.NewPodScaleUpDelay,
		"max-node-provision-time":             config.MaxNodeProvisionTime,
		"max-binpacking-time":                 config.MaxBinpackingTime,
		"scale-down-delay-after-add":          config.ScaleDownDelayAfterAdd,
		"scale-down-delay-after-delete":       config.ScaleDownDelayAfterDelete,
		"scale-down-delay-after-failure":      config.ScaleDownDelayAfterFailure,
		"scale-down-unneeded-time":            config.ScaleDownUnneededTime,
		"initial-node-group-backoff-duration": config.InitialNodeGroupBackoffDuration,
		"max-node-group-backoff-duration":     config.MaxNodeGroupBackoffDuration,
		"node-group-backoff-reset-timeout":    config.NodeGroupBackoffResetTimeout,
	}
}

// add sets a flag to a value that is given.
func add[T any](flags map[string]string, name string, value *T, format func(T) string) {
	if value != nil {
		flags[name] = format(*value)
	}
}

func share(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
