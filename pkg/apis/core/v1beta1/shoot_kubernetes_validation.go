package v1beta1

import (
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	proxyModes         = []ProxyMode{ProxyModeIPTables, ProxyModeNFTables, ProxyModeIPVS}
	schedulingProfiles = []SchedulingProfile{SchedulingProfileBalanced, SchedulingProfileBinPacking}
)

func validateKubernetes(kubernetes *Kubernetes, path *field.Path) field.ErrorList {
	errs := validatePartialVersion(kubernetes.Version, path.Child("version"))
	if kubernetes.KubeAPIServer != nil {
		errs = append(errs, validateKubeAPIServer(kubernetes.KubeAPIServer, kubernetes.Version,
			path.Child("kubeAPIServer"))...)
	}
	if kubernetes.KubeControllerManager != nil {
		errs = append(errs, validateKubeControllerManager(kubernetes.KubeControllerManager, kubernetes.Version,
			path.Child("kubeControllerManager"))...)
	}
	if scheduler := kubernetes.KubeScheduler; scheduler != nil {
		at := path.Child("kubeScheduler")
		errs = append(errs, validateFeatureGates(scheduler.FeatureGates, kubernetes.Version,
			at.Child("featureGates"))...)
		errs = append(errs, validateOptionalSupported(scheduler.Profile, schedulingProfiles, at.Child("profile"))...)
		errs = append(errs, validateNotSet(scheduler.KubeMaxPDVols, at.Child("kubeMaxPDVols"),
			"not offered: kube-scheduler has no such setting any more; the CSI driver sets the limit")...)
	}
	if proxy := kubernetes.KubeProxy; proxy != nil {
		at := path.Child("kubeProxy")
		errs = append(errs, validateFeatureGates(proxy.FeatureGates, kubernetes.Version, at.Child("featureGates"))...)
		errs = append(errs, validateOptionalSupported(proxy.Mode, proxyModes, at.Child("mode"))...)
	}
	if kubernetes.Kubelet != nil {
		errs = append(errs, validateKubelet(kubernetes.Kubelet, kubernetes.Version, path.Child("kubelet"))...)
	}
	if kubernetes.ClusterAutoscaler != nil {
		errs = append(errs, validateClusterAutoscaler(kubernetes.ClusterAutoscaler, path.Child("clusterAutoscaler"))...)
	}
	if kubernetes.VerticalPodAutoscaler != nil {
		errs = append(errs, validateVerticalPodAutoscaler(kubernetes.VerticalPodAutoscaler,
			path.Child("verticalPodAutoscaler"))...)
	}
	return append(errs, validateETCD(kubernetes.ETCD, path.Child("etcd"))...)
}

func validateETCD(etcd *ETCD, path *field.Path) field.ErrorList {
	if etcd == nil {
		return nil
	}
	errs := validateControlPlaneAutoscaling(deref(etcd.Main).Autoscaling, path.Child("main", "autoscaling"))
	return append(errs, validateControlPlaneAutoscaling(deref(etcd.Events).Autoscaling,
		path.Child("events", "autoscaling"))...)
}

// validatePartialVersion accepts a version of one to three numbers, or none: the cloud profile completes it.
func validatePartialVersion(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return nil
	}
	if parsed, err := semver.NewVersion(version); err == nil && parsed.Prerelease() == "" &&
		!strings.HasPrefix(version, "v") {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, version, "must be a version such as 1.36.3, or the beginning of one, such as 1.36"),
	}
}

// minorsBehind tells how many minor versions a version is behind another of the same major version.
func minorsBehind(version, other string) (minors int, comparable bool) {
	a, errA := semver.NewVersion(version)
	b, errB := semver.NewVersion(other)
	if errA != nil || errB != nil || a.Major() != b.Major() {
		return 0, false
	}
	return int(b.Minor()) - int(a.Minor()), true
}

func validateKubeControllerManager(config *KubeControllerManagerConfig, version string,
	path *field.Path) field.ErrorList {
	errs := validateFeatureGates(config.FeatureGates, version, path.Child("featureGates"))
	errs = append(errs, validatePositive(config.NodeMonitorGracePeriod, path.Child("nodeMonitorGracePeriod"))...)
	errs = append(errs, validateNotSet(config.PodEvictionTimeout, path.Child("podEvictionTimeout"),
		"not offered: kube-controller-manager has no such setting any more; use "+
			"kubeAPIServer.defaultNotReadyTolerationSeconds and defaultUnreachableTolerationSeconds")...)
	errs = append(errs, validateOptionalBetween(config.NodeCIDRMaskSizeIPv6, 1, 128,
		path.Child("nodeCIDRMaskSizeIPv6"))...)
	return append(errs, validateHorizontalPodAutoscaler(config.HorizontalPodAutoscalerConfig,
		path.Child("horizontalPodAutoscaler"))...)
}

// minorOf returns the minor version of Kubernetes 1, and whether the version names one.
func minorOf(version string) (minor uint64, ok bool) {
	parsed, err := semver.NewVersion(version)
	if err != nil || parsed.Major() != 1 || !strings.Contains(version, ".") {
		return 0, false
	}
	return parsed.Minor(), true
}

// validateFeatureGates refuses feature gates that Kubernetes of the version does not know, or that cannot have the
// value: no component would start with them.
func validateFeatureGates(gates map[string]bool, version string, path *field.Path) field.ErrorList {
	minor, ok := minorOf(version)
	if !ok {
		return nil
	}
	var errs field.ErrorList
	for _, name := range sortedKeys(gates) {
		if problem := featureGateProblem(name, gates[name], minor); problem != "" {
			errs = append(errs, field.Invalid(path.Key(name), gates[name], problem))
		}
	}
	return errs
}

func featureGateProblem(name string, value bool, minor uint64) string {
	gate, known := featureGates[name]
	switch {
	case !known && minor >= firstKnownGates && minor <= lastKnownGates:
		return fmt.Sprintf("is no feature gate of Kubernetes 1.%d; remove it", minor)
	case gate.since > minor:
		return fmt.Sprintf("exists from Kubernetes 1.%d on; remove it or update first", gate.since)
	case gate.gone != 0 && minor >= gate.gone:
		return fmt.Sprintf("was removed with Kubernetes 1.%d; remove it", gate.gone)
	case gate.locked != 0 && minor >= gate.locked && value != gate.value:
		return fmt.Sprintf("can only be %t from Kubernetes 1.%d on; remove it", gate.value, gate.locked)
	}
	return ""
}

func validatePositive(duration *metav1.Duration, path *field.Path) field.ErrorList {
	if duration == nil || duration.Duration > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must be longer than 0")}
}

func validateDurationNotNegative(duration *metav1.Duration, path *field.Path) field.ErrorList {
	if duration == nil || duration.Duration >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must not be negative")}
}

func validateDuration(duration *metav1.Duration, least, most time.Duration, path *field.Path) field.ErrorList {
	if duration == nil || duration.Duration >= least && duration.Duration <= most {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, duration.Duration.String(), fmt.Sprintf("must be between %s and %s", least, most)),
	}
}

func validateKubernetesUpdate(kubernetes, old *Kubernetes, path *field.Path) field.ErrorList {
	errs := validateVersionUpdate(kubernetes.Version, old.Version, path.Child("version"))
	if before := deref(deref(old.KubeAPIServer).EncryptionConfig).Provider.Type; before != nil {
		after := deref(deref(deref(kubernetes.KubeAPIServer).EncryptionConfig).Provider.Type)
		errs = append(errs, validateImmutable(string(after), string(*before),
			path.Child("kubeAPIServer", "encryptionConfig", "provider", "type"))...)
	}
	if before := old.KubeControllerManager; before != nil && before.NodeCIDRMaskSize != nil {
		errs = append(errs, validateImmutable(deref(kubernetes.KubeControllerManager).NodeCIDRMaskSize,
			before.NodeCIDRMaskSize, path.Child("kubeControllerManager", "nodeCIDRMaskSize"))...)
	}
	return errs
}

// validateVersionUpdate refuses downgrades, and updates that skip a minor version.
func validateVersionUpdate(version, old string, path *field.Path) field.ErrorList {
	if version == old || old == "" {
		return nil
	}
	ahead, comparable := minorsBehind(old, version)
	switch {
	case !comparable:
		return nil
	case ahead < 0 || ahead == 0 && isFullVersion(version) && compareVersions(version, old) < 0:
		return field.ErrorList{field.Invalid(path, version, "cannot be downgraded; it was "+old)}
	case ahead > 1:
		return field.ErrorList{
			field.Invalid(path, version, fmt.Sprintf("skips minor versions; update from %s to the next one first",
				old)),
		}
	}
	return nil
}

func isFullVersion(version string) bool {
	_, err := semver.StrictNewVersion(version)
	return err == nil
}
