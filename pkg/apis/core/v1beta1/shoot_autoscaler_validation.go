package v1beta1

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	expanders = []ExpanderMode{
		ClusterAutoscalerExpanderLeastWaste, ClusterAutoscalerExpanderMostPods, ClusterAutoscalerExpanderPriority,
		ClusterAutoscalerExpanderRandom, ClusterAutoscalerExpanderLeastNodes,
	}
	// scaledResources are what a vertical autoscaler sets requests for.
	scaledResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	// mostRequests are what one part of a control plane may be given in advance: enough for thousands of nodes, and
	// less than the nodes of seeds have, since what one shoot has requested no other gets.
	mostRequests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("32Gi"),
	}
)

func validateClusterAutoscaler(config *ClusterAutoscaler, path *field.Path) field.ErrorList {
	errs := validateExpander(config.Expander, path.Child("expander"))
	errs = append(errs, validateOptionalBetween(config.ScaleDownUtilizationThreshold, 0, 1,
		path.Child("scaleDownUtilizationThreshold"))...)
	errs = append(errs, validateClusterAutoscalerTimes(config, path)...)
	errs = append(errs, validateOptionalAtLeast(config.MaxGracefulTerminationSeconds, 0,
		path.Child("maxGracefulTerminationSeconds"))...)
	errs = append(errs, validateOptionalAtLeast(config.Verbosity, 0, path.Child("verbosity"))...)
	errs = append(errs, validateOptionalAtLeast(config.MaxScaleDownParallelism, 1,
		path.Child("maxScaleDownParallelism"))...)
	errs = append(errs, validateOptionalAtLeast(config.MaxDrainParallelism, 1, path.Child("maxDrainParallelism"))...)
	if bulk, parallel := config.MaxEmptyBulkDelete, config.MaxScaleDownParallelism; bulk != nil && parallel != nil &&
		*bulk != *parallel {
		errs = append(errs, field.Invalid(path.Child("maxEmptyBulkDelete"), *bulk,
			fmt.Sprintf("must equal maxScaleDownParallelism (%d), which replaces it; leave it out", *parallel)))
	}
	errs = append(errs, validateTaintKeys(config.IgnoreTaints, path.Child("ignoreTaints"))...)
	errs = append(errs, validateTaintKeys(config.StartupTaints, path.Child("startupTaints"))...)
	errs = append(errs, validateTaintKeys(config.StatusTaints, path.Child("statusTaints"))...)
	return append(errs, validateControlPlaneAutoscaling(config.Autoscaling, path.Child("autoscaling"))...)
}

// validateExpander accepts expanders separated by commas, each once.
func validateExpander(expander *ExpanderMode, path *field.Path) field.ErrorList {
	if expander == nil {
		return nil
	}
	modes := strings.SplitN(string(*expander), ",", len(expanders)+1)
	if len(modes) > len(expanders) {
		return field.ErrorList{field.Invalid(path, *expander, "must name each expander at most once")}
	}
	var errs field.ErrorList
	for _, mode := range modes {
		errs = append(errs, validateSupported(ExpanderMode(mode), expanders, path)...)
	}
	if len(errs) == 0 && len(slices.Compact(slices.Sorted(slices.Values(modes)))) < len(modes) {
		errs = append(errs, field.Invalid(path, *expander, "must name each expander at most once"))
	}
	return errs
}

func validateClusterAutoscalerTimes(config *ClusterAutoscaler, path *field.Path) field.ErrorList {
	errs := validateDurationNotNegative(config.ScaleDownDelayAfterAdd, path.Child("scaleDownDelayAfterAdd"))
	errs = append(errs, validateDurationNotNegative(config.ScaleDownDelayAfterDelete,
		path.Child("scaleDownDelayAfterDelete"))...)
	errs = append(errs, validateDurationNotNegative(config.ScaleDownDelayAfterFailure,
		path.Child("scaleDownDelayAfterFailure"))...)
	errs = append(errs, validateDurationNotNegative(config.ScaleDownUnneededTime,
		path.Child("scaleDownUnneededTime"))...)
	errs = append(errs, validatePositive(config.ScanInterval, path.Child("scanInterval"))...)
	errs = append(errs, validatePositive(config.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime"))...)
	errs = append(errs, validateDurationNotNegative(config.NewPodScaleUpDelay, path.Child("newPodScaleUpDelay"))...)
	errs = append(errs, validateDurationNotNegative(config.InitialNodeGroupBackoffDuration,
		path.Child("initialNodeGroupBackoffDuration"))...)
	errs = append(errs, validateDurationNotNegative(config.MaxNodeGroupBackoffDuration,
		path.Child("maxNodeGroupBackoffDuration"))...)
	errs = append(errs, validateDurationNotNegative(config.NodeGroupBackoffResetTimeout,
		path.Child("nodeGroupBackoffResetTimeout"))...)
	first, longest := config.InitialNodeGroupBackoffDuration, config.MaxNodeGroupBackoffDuration
	if first != nil && longest != nil && first.Duration > longest.Duration {
		errs = append(errs, field.Invalid(path.Child("initialNodeGroupBackoffDuration"), first.Duration.String(),
			fmt.Sprintf("must be at most maxNodeGroupBackoffDuration (%s)", longest.Duration)))
	}
	return append(errs, validatePositive(config.MaxBinpackingTime, path.Child("maxBinpackingTime"))...)
}

func validateControlPlaneAutoscaling(autoscaling *ControlPlaneAutoscaling, path *field.Path) field.ErrorList {
	if autoscaling == nil {
		return nil
	}
	path = path.Child("minAllowed")
	errs := validateResourceList(autoscaling.MinAllowed, scaledResources, path)
	for _, name := range sortedKeys(autoscaling.MinAllowed) {
		wanted, most := autoscaling.MinAllowed[name], mostRequests[name]
		if !most.IsZero() && wanted.Cmp(most) > 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), wanted.String(),
				"must be at most "+most.String()))
		}
	}
	return errs
}

func validateVerticalPodAutoscaler(config *VerticalPodAutoscaler, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name  string
		share *float64
	}{
		{"evictionTolerance", config.EvictionTolerance},
		{"targetCPUPercentile", config.TargetCPUPercentile},
		{"recommendationLowerBoundCPUPercentile", config.RecommendationLowerBoundCPUPercentile},
		{"recommendationUpperBoundCPUPercentile", config.RecommendationUpperBoundCPUPercentile},
		{"targetMemoryPercentile", config.TargetMemoryPercentile},
		{"recommendationLowerBoundMemoryPercentile", config.RecommendationLowerBoundMemoryPercentile},
		{"recommendationUpperBoundMemoryPercentile", config.RecommendationUpperBoundMemoryPercentile},
	} {
		errs = append(errs, validateOptionalBetween(one.share, 0, 1, path.Child(one.name))...)
	}
	errs = append(errs, validateOptionalAtLeast(config.RecommendationMarginFraction, 0,
		path.Child("recommendationMarginFraction"))...)
	errs = append(errs, validateOptionalAtLeast(config.EvictionRateBurst, 1, path.Child("evictionRateBurst"))...)
	errs = append(errs, validateOptionalAtLeast(config.MemoryAggregationIntervalCount, 1,
		path.Child("memoryAggregationIntervalCount"))...)
	errs = append(errs, validateOptionalAtLeast(config.RecommenderUpdateWorkerCount, 1,
		path.Child("recommenderUpdateWorkerCount"))...)
	errs = append(errs, validateDurationNotNegative(config.EvictAfterOOMThreshold,
		path.Child("evictAfterOOMThreshold"))...)
	errs = append(errs, validatePositive(config.UpdaterInterval, path.Child("updaterInterval"))...)
	errs = append(errs, validatePositive(config.RecommenderInterval, path.Child("recommenderInterval"))...)
	errs = append(errs, validatePositive(config.CPUHistogramDecayHalfLife, path.Child("cpuHistogramDecayHalfLife"))...)
	errs = append(errs, validatePositive(config.MemoryHistogramDecayHalfLife,
		path.Child("memoryHistogramDecayHalfLife"))...)
	errs = append(errs, validatePositive(config.MemoryAggregationInterval, path.Child("memoryAggregationInterval"))...)
	return append(errs, validateResourceList(config.MaxAllowed, scaledResources, path.Child("maxAllowed"))...)
}

func validateHorizontalPodAutoscaler(config *HorizontalPodAutoscalerConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	errs := validateOptionalAtLeast(config.Tolerance, 0, path.Child("tolerance"))
	errs = append(errs, validatePositive(config.SyncPeriod, path.Child("syncPeriod"))...)
	errs = append(errs, validatePositive(config.CPUInitializationPeriod, path.Child("cpuInitializationPeriod"))...)
	errs = append(errs, validatePositive(config.InitialReadinessDelay, path.Child("initialReadinessDelay"))...)
	return append(errs, validatePositive(config.DownscaleStabilization, path.Child("downscaleStabilization"))...)
}
