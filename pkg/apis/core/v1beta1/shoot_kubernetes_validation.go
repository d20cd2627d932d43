package v1beta1

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxNonMutatingInflight = 5000
	maxMutatingInflight    = 2500
	maxEventTTL            = 24 * time.Hour
	minTokenExpiration     = 720 * time.Hour
	maxTokenExpiration     = 2160 * time.Hour
	minPodPIDs             = 100
	minLogFiles            = 2
	minStreamingTimeout    = 30 * time.Second
	maxStreamingTimeout    = 4 * time.Hour
)

var (
	expanders = []ExpanderMode{
		ClusterAutoscalerExpanderLeastWaste, ClusterAutoscalerExpanderMostPods, ClusterAutoscalerExpanderPriority,
		ClusterAutoscalerExpanderRandom, ClusterAutoscalerExpanderLeastNodes,
	}
	proxyModes         = []ProxyMode{ProxyModeIPTables, ProxyModeNFTables, ProxyModeIPVS}
	schedulingProfiles = []SchedulingProfile{SchedulingProfileBalanced, SchedulingProfileBinPacking}
	encryptionTypes    = []EncryptionProviderType{EncryptionProviderTypeAESCBC, EncryptionProviderTypeAESGCM, EncryptionProviderTypeSecretbox}
	tlsVersions        = []string{"VersionTLS12", "VersionTLS13"}
	cpuManagerPolicies = []string{"none", "static"}
)

func validateKubernetes(kubernetes *Kubernetes, path *field.Path) field.ErrorList {
	errs := validatePartialVersion(kubernetes.Version, path.Child("version"))
	if kubernetes.KubeAPIServer != nil {
		errs = append(errs, validateKubeAPIServer(kubernetes.KubeAPIServer, path.Child("kubeAPIServer"))...)
	}
	if kubernetes.KubeControllerManager != nil {
		errs = append(errs, validateKubeControllerManager(kubernetes.KubeControllerManager, path.Child("kubeControllerManager"))...)
	}
	if scheduler := kubernetes.KubeScheduler; scheduler != nil && scheduler.Profile != nil {
		errs = append(errs, validateSupported(*scheduler.Profile, schedulingProfiles, path.Child("kubeScheduler", "profile"))...)
	}
	if proxy := kubernetes.KubeProxy; proxy != nil && proxy.Mode != nil {
		errs = append(errs, validateSupported(*proxy.Mode, proxyModes, path.Child("kubeProxy", "mode"))...)
	}
	if kubernetes.Kubelet != nil {
		errs = append(errs, validateKubelet(kubernetes.Kubelet, path.Child("kubelet"))...)
	}
	if kubernetes.ClusterAutoscaler != nil {
		errs = append(errs, validateClusterAutoscaler(kubernetes.ClusterAutoscaler, path.Child("clusterAutoscaler"))...)
	}
	return errs
}

// validatePartialVersion accepts a version of one to three numbers, or none: the cloud profile completes it.
func validatePartialVersion(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return nil
	}
	if parsed, err := semver.NewVersion(version); err == nil && parsed.Prerelease() == "" && !strings.HasPrefix(version, "v") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, version, "must be a version such as 1.36.3, or the beginning of one, such as 1.36")}
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

func validateKubeAPIServer(config *KubeAPIServerConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if requests := config.Requests; requests != nil {
		at := path.Child("requests")
		errs = append(errs, validateOptionalBetween(requests.MaxNonMutatingInflight, 0, maxNonMutatingInflight, at.Child("maxNonMutatingInflight"))...)
		errs = append(errs, validateOptionalBetween(requests.MaxMutatingInflight, 0, maxMutatingInflight, at.Child("maxMutatingInflight"))...)
	}
	errs = append(errs, validateDuration(config.EventTTL, 0, maxEventTTL, path.Child("eventTTL"))...)
	if logging := config.Logging; logging != nil {
		errs = append(errs, validateOptionalAtLeast(logging.Verbosity, 0, path.Child("logging", "verbosity"))...)
		errs = append(errs, validateOptionalAtLeast(logging.HTTPAccessVerbosity, 0, path.Child("logging", "httpAccessVerbosity"))...)
	}
	errs = append(errs, validateOptionalAtLeast(config.DefaultNotReadyTolerationSeconds, 0, path.Child("defaultNotReadyTolerationSeconds"))...)
	errs = append(errs, validateOptionalAtLeast(config.DefaultUnreachableTolerationSeconds, 0, path.Child("defaultUnreachableTolerationSeconds"))...)
	if config.TLSMinVersion != nil {
		errs = append(errs, validateSupported(*config.TLSMinVersion, tlsVersions, path.Child("tlsMinVersion"))...)
	}
	errs = append(errs, validateAdmissionPlugins(config.AdmissionPlugins, path.Child("admissionPlugins"))...)
	errs = append(errs, validateServiceAccountConfig(config.ServiceAccountConfig, path.Child("serviceAccountConfig"))...)
	errs = append(errs, validateEncryption(config.EncryptionConfig, path.Child("encryptionConfig"))...)
	errs = append(errs, validateWatchCacheSizes(config.WatchCacheSizes, path.Child("watchCacheSizes"))...)
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		errs = append(errs, validateRequired(audit.AuditPolicy.ConfigMapRef.Name, path.Child("auditConfig", "auditPolicy", "configMapRef", "name"), "name the ConfigMap with the audit policy")...)
	}
	return append(errs, validateStructured(config, path)...)
}

func validateStructured(config *KubeAPIServerConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if authentication := config.StructuredAuthentication; authentication != nil {
		errs = append(errs, validateRequired(authentication.ConfigMapName, path.Child("structuredAuthentication", "configMapName"), "name the ConfigMap with the AuthenticationConfiguration")...)
	}
	authorization := config.StructuredAuthorization
	if authorization == nil {
		return errs
	}
	at := path.Child("structuredAuthorization")
	errs = append(errs, validateRequired(authorization.ConfigMapName, at.Child("configMapName"), "name the ConfigMap with the AuthorizationConfiguration")...)
	for i, kubeconfig := range authorization.Kubeconfigs {
		one := at.Child("kubeconfigs").Index(i)
		errs = append(errs, validateRequired(kubeconfig.AuthorizerName, one.Child("authorizerName"), "name the authorizer in the configuration")...)
		errs = append(errs, validateRequired(kubeconfig.SecretName, one.Child("secretName"), "name the Secret with the kubeconfig")...)
	}
	return errs
}

func validateAdmissionPlugins(plugins []AdmissionPlugin, path *field.Path) field.ErrorList {
	name := func(i int) *field.Path { return path.Index(i).Child("name") }
	errs := validateUnique(plugins, func(p AdmissionPlugin) string { return p.Name }, name)
	for i, plugin := range plugins {
		errs = append(errs, validateRequired(plugin.Name, name(i), "name the admission plugin")...)
	}
	return errs
}

func validateServiceAccountConfig(config *ServiceAccountConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if config.Issuer != nil {
		errs = append(errs, validateIssuer(*config.Issuer, path.Child("issuer"))...)
	}
	for i, issuer := range config.AcceptedIssuers {
		errs = append(errs, validateIssuer(issuer, path.Child("acceptedIssuers").Index(i))...)
	}
	errs = append(errs, validateUniqueStrings(config.AcceptedIssuers, path.Child("acceptedIssuers"))...)
	return append(errs, validateDuration(config.MaxTokenExpiration, minTokenExpiration, maxTokenExpiration, path.Child("maxTokenExpiration"))...)
}

func validateIssuer(issuer string, path *field.Path) field.ErrorList {
	parsed, err := url.Parse(issuer)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return field.ErrorList{field.Invalid(path, issuer, "must be an https URL without user, query and fragment")}
	}
	return nil
}

func validateEncryption(config *EncryptionConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	resources := path.Child("resources")
	errs := validateUniqueStrings(config.Resources, resources)
	for i, resource := range config.Resources {
		switch {
		case resource == "secrets" || resource == "secrets.":
			errs = append(errs, field.Forbidden(resources.Index(i), "secrets are always encrypted; leave them out"))
		case strings.Contains(resource, "*"):
			errs = append(errs, field.Invalid(resources.Index(i), resource, "must name one resource, such as configmaps; wildcards are not possible"))
		case resource == "" || resource != strings.ToLower(resource):
			errs = append(errs, field.Invalid(resources.Index(i), resource, "must be a resource in lower case, such as configmaps"))
		}
	}
	if config.Provider.Type != nil {
		errs = append(errs, validateSupported(*config.Provider.Type, encryptionTypes, path.Child("provider", "type"))...)
	}
	return errs
}

func validateWatchCacheSizes(sizes *WatchCacheSizes, path *field.Path) field.ErrorList {
	if sizes == nil {
		return nil
	}
	errs := validateOptionalAtLeast(sizes.Default, 0, path.Child("default"))
	for i, resource := range sizes.Resources {
		at := path.Child("resources").Index(i)
		errs = append(errs, validateRequired(resource.Resource, at.Child("resource"), "name the resource")...)
		errs = append(errs, validateAtLeast(resource.CacheSize, 0, at.Child("size"))...)
	}
	return errs
}

func validateKubeControllerManager(config *KubeControllerManagerConfig, path *field.Path) field.ErrorList {
	errs := validatePositive(config.NodeMonitorGracePeriod, path.Child("nodeMonitorGracePeriod"))
	autoscaler := config.HorizontalPodAutoscalerConfig
	if autoscaler == nil {
		return errs
	}
	at := path.Child("horizontalPodAutoscaler")
	errs = append(errs, validateOptionalAtLeast(autoscaler.Tolerance, 0, at.Child("tolerance"))...)
	errs = append(errs, validatePositive(autoscaler.SyncPeriod, at.Child("syncPeriod"))...)
	return append(errs, validatePositive(autoscaler.DownscaleStabilization, at.Child("downscaleStabilization"))...)
}

func validateKubelet(config *KubeletConfig, path *field.Path) field.ErrorList {
	errs := validateOptionalAtLeast(config.MaxPods, 1, path.Child("maxPods"))
	errs = append(errs, validateOptionalAtLeast(config.PodPIDsLimit, minPodPIDs, path.Child("podPidsLimit"))...)
	errs = append(errs, validateOptionalAtLeast(config.ContainerLogMaxFiles, minLogFiles, path.Child("containerLogMaxFiles"))...)
	errs = append(errs, validateDuration(config.StreamingConnectionIdleTimeout, minStreamingTimeout, maxStreamingTimeout, path.Child("streamingConnectionIdleTimeout"))...)
	if config.CPUManagerPolicy != nil {
		errs = append(errs, validateSupported(*config.CPUManagerPolicy, cpuManagerPolicies, path.Child("cpuManagerPolicy"))...)
	}
	errs = append(errs, validateImageGC(config, path)...)
	if config.MaxParallelImagePulls != nil {
		errs = append(errs, validateAtLeast(*config.MaxParallelImagePulls, 1, path.Child("maxParallelImagePulls"))...)
		if *config.MaxParallelImagePulls > 1 && (config.SerializeImagePulls == nil || *config.SerializeImagePulls) {
			errs = append(errs, field.Forbidden(path.Child("maxParallelImagePulls"), "only possible when serializeImagePulls is false"))
		}
	}
	if config.MemorySwap != nil {
		if config.FailSwapOn == nil || *config.FailSwapOn {
			errs = append(errs, field.Forbidden(path.Child("memorySwap"), "only possible when failSwapOn is false"))
		}
		if behavior := config.MemorySwap.SwapBehavior; behavior != nil {
			errs = append(errs, validateSupported(*behavior, []SwapBehavior{NoSwap, LimitedSwap}, path.Child("memorySwap", "swapBehavior"))...)
		}
	}
	return errs
}

func validateImageGC(config *KubeletConfig, path *field.Path) field.ErrorList {
	low, high := config.ImageGCLowThresholdPercent, config.ImageGCHighThresholdPercent
	errs := validateOptionalBetween(low, 0, 100, path.Child("imageGCLowThresholdPercent"))
	errs = append(errs, validateOptionalBetween(high, 0, 100, path.Child("imageGCHighThresholdPercent"))...)
	if low != nil && high != nil && *low >= *high {
		errs = append(errs, field.Invalid(path.Child("imageGCLowThresholdPercent"), *low, fmt.Sprintf("must be below imageGCHighThresholdPercent (%d)", *high)))
	}
	return errs
}

func validateClusterAutoscaler(config *ClusterAutoscaler, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.Expander != nil {
		for _, expander := range strings.Split(string(*config.Expander), ",") {
			if !slices.Contains(expanders, ExpanderMode(expander)) {
				errs = append(errs, field.NotSupported(path.Child("expander"), ExpanderMode(expander), expanders))
			}
		}
	}
	errs = append(errs, validateOptionalBetween(config.ScaleDownUtilizationThreshold, 0, 1, path.Child("scaleDownUtilizationThreshold"))...)
	errs = append(errs, validatePositive(config.ScanInterval, path.Child("scanInterval"))...)
	errs = append(errs, validatePositive(config.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime"))...)
	errs = append(errs, validateOptionalAtLeast(config.MaxGracefulTerminationSeconds, 0, path.Child("maxGracefulTerminationSeconds"))...)
	errs = append(errs, validateOptionalAtLeast(config.MaxScaleDownParallelism, 1, path.Child("maxScaleDownParallelism"))...)
	return append(errs, validateOptionalAtLeast(config.MaxDrainParallelism, 1, path.Child("maxDrainParallelism"))...)
}

func validatePositive(duration *metav1.Duration, path *field.Path) field.ErrorList {
	if duration == nil || duration.Duration > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must be longer than 0")}
}

func validateDuration(duration *metav1.Duration, least, most time.Duration, path *field.Path) field.ErrorList {
	if duration == nil || duration.Duration >= least && duration.Duration <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, duration.Duration.String(), fmt.Sprintf("must be between %s and %s", least, most))}
}

func validateKubernetesUpdate(kubernetes, old *Kubernetes, path *field.Path) field.ErrorList {
	errs := validateVersionUpdate(kubernetes.Version, old.Version, path.Child("version"))
	if before := old.KubeControllerManager; before != nil && before.NodeCIDRMaskSize != nil {
		errs = append(errs, validateImmutable(deref(kubernetes.KubeControllerManager).NodeCIDRMaskSize, before.NodeCIDRMaskSize, path.Child("kubeControllerManager", "nodeCIDRMaskSize"))...)
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
		return field.ErrorList{field.Invalid(path, version, fmt.Sprintf("skips minor versions; update from %s to the next one first", old))}
	}
	return nil
}

func isFullVersion(version string) bool {
	_, err := semver.StrictNewVersion(version)
	return err == nil
}
