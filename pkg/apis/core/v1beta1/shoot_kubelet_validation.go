package v1beta1

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	minPodPIDs          = 100
	minLogFiles         = 2
	minStreamingTimeout = 30 * time.Second
	maxStreamingTimeout = 4 * time.Hour
)

var (
	cpuManagerPolicies   = []string{"none", "static"}
	verificationPolicies = []ImagePullCredentialsVerificationPolicy{
		NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify,
	}
)

// validateKubelet checks the settings of kubelets of a version.
func validateKubelet(config *KubeletConfig, version string, path *field.Path) field.ErrorList {
	errs := validateFeatureGates(config.FeatureGates, version, path.Child("featureGates"))
	errs = append(errs, validateOptionalAtLeast(config.MaxPods, 1, path.Child("maxPods"))...)
	errs = append(errs, validateOptionalAtLeast(config.PodPIDsLimit, minPodPIDs, path.Child("podPidsLimit"))...)
	errs = append(errs, validateOptionalAtLeast(config.ContainerLogMaxFiles, minLogFiles,
		path.Child("containerLogMaxFiles"))...)
	errs = append(errs, validateOptionalQuantity(config.ContainerLogMaxSize, path.Child("containerLogMaxSize"))...)
	errs = append(errs, validateOptionalAtLeast(config.RegistryPullQPS, 0, path.Child("registryPullQPS"))...)
	errs = append(errs, validateOptionalAtLeast(config.RegistryBurst, 0, path.Child("registryBurst"))...)
	errs = append(errs, validateDuration(config.StreamingConnectionIdleTimeout, minStreamingTimeout,
		maxStreamingTimeout, path.Child("streamingConnectionIdleTimeout"))...)
	errs = append(errs, validateOptionalSupported(config.CPUManagerPolicy, cpuManagerPolicies,
		path.Child("cpuManagerPolicy"))...)
	errs = append(errs, validateReserved(config.KubeReserved, path.Child("kubeReserved"))...)
	errs = append(errs, validateEvictions(config, path)...)
	errs = append(errs, validateImageGC(config, path)...)
	errs = append(errs, validateImagePulls(config, path)...)
	return append(errs, validateSwap(config, path)...)
}

func validateImagePulls(config *KubeletConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.MaxParallelImagePulls != nil {
		errs = append(errs, validateAtLeast(*config.MaxParallelImagePulls, 1, path.Child("maxParallelImagePulls"))...)
		if *config.MaxParallelImagePulls > 1 && (config.SerializeImagePulls == nil || *config.SerializeImagePulls) {
			errs = append(errs, field.Forbidden(path.Child("maxParallelImagePulls"),
				"only possible when serializeImagePulls is false"))
		}
	}
	policy := config.ImagePullCredentialsVerificationPolicy
	errs = append(errs, validateOptionalSupported(policy, verificationPolicies,
		path.Child("imagePullCredentialsVerificationPolicy"))...)
	allowlist := path.Child("preloadedImagesVerificationAllowlist")
	if len(config.PreloadedImagesVerificationAllowlist) > 0 && deref(policy) != NeverVerifyAllowlistedImages {
		errs = append(errs, field.Forbidden(allowlist,
			"only possible when imagePullCredentialsVerificationPolicy is "+string(NeverVerifyAllowlistedImages)))
	}
	return append(errs, validateUniqueStrings(config.PreloadedImagesVerificationAllowlist, allowlist)...)
}

func validateSwap(config *KubeletConfig, path *field.Path) field.ErrorList {
	if config.MemorySwap == nil {
		return nil
	}
	var errs field.ErrorList
	if config.FailSwapOn == nil || *config.FailSwapOn {
		errs = append(errs, field.Forbidden(path.Child("memorySwap"), "only possible when failSwapOn is false"))
	}
	if on, given := config.FeatureGates["NodeSwap"]; given && !on {
		errs = append(errs, field.Forbidden(path.Child("memorySwap"),
			"only possible when feature gate NodeSwap is not turned off"))
	}
	return append(errs, validateOptionalSupported(config.MemorySwap.SwapBehavior, []SwapBehavior{NoSwap, LimitedSwap},
		path.Child("memorySwap", "swapBehavior"))...)
}

func validateImageGC(config *KubeletConfig, path *field.Path) field.ErrorList {
	low, high := config.ImageGCLowThresholdPercent, config.ImageGCHighThresholdPercent
	errs := validateOptionalBetween(low, 0, 100, path.Child("imageGCLowThresholdPercent"))
	errs = append(errs, validateOptionalBetween(high, 0, 100, path.Child("imageGCHighThresholdPercent"))...)
	if low != nil && high != nil && *low >= *high {
		errs = append(errs, field.Invalid(path.Child("imageGCLowThresholdPercent"), *low,
			fmt.Sprintf("must be below imageGCHighThresholdPercent (%d)", *high)))
	}
	errs = append(errs, validateDurationNotNegative(config.ImageMinimumGCAge, path.Child("imageMinimumGCAge"))...)
	errs = append(errs, validateDurationNotNegative(config.ImageMaximumGCAge, path.Child("imageMaximumGCAge"))...)
	least, most := deref(config.ImageMinimumGCAge).Duration, deref(config.ImageMaximumGCAge).Duration
	if most > 0 && most <= least {
		errs = append(errs, field.Invalid(path.Child("imageMaximumGCAge"), most.String(),
			fmt.Sprintf("must be longer than imageMinimumGCAge (%s), or 0", least)))
	}
	return errs
}

func validateReserved(reserved *KubeletConfigReserved, path *field.Path) field.ErrorList {
	if reserved == nil {
		return nil
	}
	errs := validateOptionalQuantity(reserved.CPU, path.Child("cpu"))
	errs = append(errs, validateOptionalQuantity(reserved.Memory, path.Child("memory"))...)
	errs = append(errs, validateOptionalQuantity(reserved.EphemeralStorage, path.Child("ephemeralStorage"))...)
	return append(errs, validateOptionalQuantity(reserved.PID, path.Child("pid"))...)
}

func validateEvictions(config *KubeletConfig, path *field.Path) field.ErrorList {
	errs := validateOptionalAtLeast(config.EvictionMaxPodGracePeriod, 0, path.Child("evictionMaxPodGracePeriod"))
	errs = append(errs, validatePositive(config.EvictionPressureTransitionPeriod,
		path.Child("evictionPressureTransitionPeriod"))...)
	errs = append(errs, validateThresholds(config.EvictionHard, path.Child("evictionHard"))...)
	errs = append(errs, validateThresholds(config.EvictionSoft, path.Child("evictionSoft"))...)
	reclaim := deref(config.EvictionMinimumReclaim)
	for _, one := range signals(path.Child("evictionMinimumReclaim"), reclaim.MemoryAvailable, reclaim.ImageFSAvailable,
		reclaim.ImageFSInodesFree, reclaim.NodeFSAvailable, reclaim.NodeFSInodesFree) {
		errs = append(errs, validateOptionalQuantity(one.value, one.path)...)
	}
	grace := deref(config.EvictionSoftGracePeriod)
	for _, one := range signals(path.Child("evictionSoftGracePeriod"), grace.MemoryAvailable, grace.ImageFSAvailable,
		grace.ImageFSInodesFree, grace.NodeFSAvailable, grace.NodeFSInodesFree) {
		errs = append(errs, validatePositive(one.value, one.path)...)
	}
	return errs
}

func validateThresholds(thresholds *KubeletConfigEviction, path *field.Path) field.ErrorList {
	if thresholds == nil {
		return nil
	}
	var errs field.ErrorList
	t := thresholds
	for _, one := range signals(path, t.MemoryAvailable, t.ImageFSAvailable, t.ImageFSInodesFree, t.NodeFSAvailable,
		t.NodeFSInodesFree) {
		if one.value != nil && !isThreshold(*one.value) {
			errs = append(errs, field.Invalid(one.path, *one.value,
				"must be an amount such as 100Mi or a percentage such as 5%"))
		}
	}
	return errs
}

// maxQuantityLength is more than the characters of any amount that makes sense; parsing takes long for longer ones.
const maxQuantityLength = 64

// isThreshold tells whether a value is an amount that is not negative, or a percentage.
func isThreshold(value string) bool {
	if len(value) > maxQuantityLength {
		return false
	}
	if number, ok := strings.CutSuffix(value, "%"); ok {
		percent, err := strconv.ParseFloat(number, 64)
		return err == nil && percent >= 0 && percent <= 100
	}
	quantity, err := resource.ParseQuantity(value)
	return err == nil && quantity.Sign() >= 0
}

// signal is the setting for one of the kubelet's eviction signals.
//
// +k8s:openapi-gen=false
// +k8s:deepcopy-gen=false
type signal[T any] struct {
	path  *field.Path
	value *T
}

// signals pairs the settings of all eviction signals with their fields.
func signals[T string | metav1.Duration | resource.Quantity](path *field.Path,
	memory, imageFS, imageInodes, nodeFS, nodeInodes *T) []signal[T] {
	return []signal[T]{
		{path.Child("memoryAvailable"), memory},
		{path.Child("imageFSAvailable"), imageFS}, {path.Child("imageFSInodesFree"), imageInodes},
		{path.Child("nodeFSAvailable"), nodeFS}, {path.Child("nodeFSInodesFree"), nodeInodes},
	}
}
