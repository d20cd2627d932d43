package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kubernetes holds the version and the settings of Kubernetes components.
type Kubernetes struct {
	// Settings of the cluster-autoscaler.
	// +optional
	ClusterAutoscaler *ClusterAutoscaler `json:"clusterAutoscaler,omitempty" protobuf:"bytes,2,opt,name=clusterAutoscaler"`
	// Settings of the kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty" protobuf:"bytes,3,opt,name=kubeAPIServer"`
	// Settings of the kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty" protobuf:"bytes,4,opt,name=kubeControllerManager"`
	// Settings of the kube-scheduler.
	// +optional
	KubeScheduler *KubeSchedulerConfig `json:"kubeScheduler,omitempty" protobuf:"bytes,5,opt,name=kubeScheduler"`
	// Settings of the kube-proxy.
	// +optional
	KubeProxy *KubeProxyConfig `json:"kubeProxy,omitempty" protobuf:"bytes,6,opt,name=kubeProxy"`
	// Settings of the kubelets of all workers.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty" protobuf:"bytes,7,opt,name=kubelet"`
	// Version of Kubernetes, such as 1.36.3. "1.36" or "1" asks for the newest supported version of that line, and so
	// does leaving it out. Defaults to the newest supported version of the cloud profile.
	// +optional
	Version string `json:"version,omitempty" protobuf:"bytes,8,opt,name=version"`
	// Settings of the vertical pod autoscaler.
	// +optional
	VerticalPodAutoscaler *VerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty" protobuf:"bytes,9,opt,name=verticalPodAutoscaler"`
	// Settings of the two etcds.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty" protobuf:"bytes,11,opt,name=etcd"`
}

// ClusterAutoscaler configures the cluster-autoscaler.
type ClusterAutoscaler struct {
	// How long after a scale-up a scale-down is considered again. Defaults to 1 hour.
	// +optional
	ScaleDownDelayAfterAdd *metav1.Duration `json:"scaleDownDelayAfterAdd,omitempty" protobuf:"bytes,1,opt,name=scaleDownDelayAfterAdd"`
	// How long after a node was removed a scale-down is considered again. Defaults to 0 secs.
	// +optional
	ScaleDownDelayAfterDelete *metav1.Duration `json:"scaleDownDelayAfterDelete,omitempty" protobuf:"bytes,2,opt,name=scaleDownDelayAfterDelete"`
	// How long after a failed scale-down it is considered again. Defaults to 3 mins.
	// +optional
	ScaleDownDelayAfterFailure *metav1.Duration `json:"scaleDownDelayAfterFailure,omitempty" protobuf:"bytes,3,opt,name=scaleDownDelayAfterFailure"`
	// How long a node has to be unneeded before it is removed. Defaults to 30 mins.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty" protobuf:"bytes,4,opt,name=scaleDownUnneededTime"`
	// Share of requested resources below which a node is unneeded, 0 to 1. Defaults to 0.5.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty" protobuf:"bytes,5,opt,name=scaleDownUtilizationThreshold"`
	// How often the cluster is looked at. Defaults to 10 secs.
	// +optional
	ScanInterval *metav1.Duration `json:"scanInterval,omitempty" protobuf:"bytes,6,opt,name=scanInterval"`
	// How the worker pool to grow is chosen. Several, separated by commas, are tried in order. Defaults to least-waste.
	// +optional
	Expander *ExpanderMode `json:"expander,omitempty" protobuf:"bytes,7,opt,name=expander"`
	// How long a machine may take to become a node. Defaults to 20 mins.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty" protobuf:"bytes,8,opt,name=maxNodeProvisionTime"`
	// Seconds that pods get to terminate when a node is removed. Defaults to 600.
	// +optional
	MaxGracefulTerminationSeconds *int32 `json:"maxGracefulTerminationSeconds,omitempty" protobuf:"bytes,9,opt,name=maxGracefulTerminationSeconds"`
	// Taints to leave out of account when a node is simulated from a pool.
	//
	// Deprecated: use startupTaints or statusTaints.
	// +optional
	IgnoreTaints []string `json:"ignoreTaints,omitempty" protobuf:"bytes,10,opt,name=ignoreTaints"`
	// Age a pending pod has to reach before it counts. Defaults to 0s.
	// +optional
	NewPodScaleUpDelay *metav1.Duration `json:"newPodScaleUpDelay,omitempty" protobuf:"bytes,11,opt,name=newPodScaleUpDelay"`
	// Most empty nodes removed at once. Defaults to MaxScaleDownParallelism when that is set.
	//
	// Deprecated: use maxScaleDownParallelism; forbidden from Kubernetes 1.33 on.
	// +optional
	MaxEmptyBulkDelete *int32 `json:"maxEmptyBulkDelete,omitempty" protobuf:"bytes,12,opt,name=maxEmptyBulkDelete"`
	// Whether the pods of DaemonSets are left out of a node's utilization. Defaults to false.
	// +optional
	IgnoreDaemonsetsUtilization *bool `json:"ignoreDaemonsetsUtilization,omitempty" protobuf:"bytes,13,opt,name=ignoreDaemonsetsUtilization"`
	// Verbosity of the log. Defaults to 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty" protobuf:"bytes,14,opt,name=verbosity"`
	// Taints that a node carries until it is ready for pods.
	// +optional
	StartupTaints []string `json:"startupTaints,omitempty" protobuf:"bytes,15,opt,name=startupTaints"`
	// Taints that say something about a node's state but not that it never will take pods.
	// +optional
	StatusTaints []string `json:"statusTaints,omitempty" protobuf:"bytes,16,opt,name=statusTaints"`
	// Most nodes removed at once. Defaults to 10 or MaxEmptyBulkDelete when that is set.
	// +optional
	MaxScaleDownParallelism *int32 `json:"maxScaleDownParallelism,omitempty" protobuf:"bytes,17,opt,name=maxScaleDownParallelism"`
	// Most nodes that have pods and are removed at once. Defaults to 1.
	// +optional
	MaxDrainParallelism *int32 `json:"maxDrainParallelism,omitempty" protobuf:"bytes,18,opt,name=maxDrainParallelism"`
	// First pause after a pool failed to grow. Defaults to 5m.
	// +optional
	InitialNodeGroupBackoffDuration *metav1.Duration `json:"initialNodeGroupBackoffDuration,omitempty" protobuf:"bytes,19,opt,name=initialNodeGroupBackoffDuration"`
	// Longest pause after a pool failed to grow. Defaults to 30m.
	// +optional
	MaxNodeGroupBackoffDuration *metav1.Duration `json:"maxNodeGroupBackoffDuration,omitempty" protobuf:"bytes,20,opt,name=maxNodeGroupBackoffDuration"`
	// How long after the last failure pauses start from the first again. Defaults to 3h.
	// +optional
	NodeGroupBackoffResetTimeout *metav1.Duration `json:"nodeGroupBackoffResetTimeout,omitempty" protobuf:"bytes,21,opt,name=nodeGroupBackoffResetTimeout"`
	// Whether metrics are kept per pool. Defaults to false.
	// +optional
	EmitPerNodeGroupMetrics *bool `json:"emitPerNodeGroupMetrics,omitempty" protobuf:"bytes,22,opt,name=emitPerNodeGroupMetrics"`
	// Longest time spent on fitting pending pods into a pool. Defaults to 5m.
	// +optional
	MaxBinpackingTime *metav1.Duration `json:"maxBinpackingTime,omitempty" protobuf:"bytes,23,opt,name=maxBinpackingTime"`
	// Bounds for the vertical autoscaling of this component.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,24,opt,name=autoscaling"`
}

// ExpanderMode is how the cluster-autoscaler chooses the pool to grow.
type ExpanderMode string

const (
	// ClusterAutoscalerExpanderLeastWaste takes the pool that is left with the least idle CPU.
	ClusterAutoscalerExpanderLeastWaste ExpanderMode = "least-waste"
	// ClusterAutoscalerExpanderMostPods takes the pool that takes the most pending pods.
	ClusterAutoscalerExpanderMostPods ExpanderMode = "most-pods"
	// ClusterAutoscalerExpanderPriority takes the pool with the highest priority.
	ClusterAutoscalerExpanderPriority ExpanderMode = "priority"
	// ClusterAutoscalerExpanderRandom takes any pool.
	ClusterAutoscalerExpanderRandom ExpanderMode = "random"
	// ClusterAutoscalerExpanderLeastNodes takes the pool that needs the fewest nodes.
	ClusterAutoscalerExpanderLeastNodes ExpanderMode = "least-nodes"
)

// ControlPlaneAutoscaling bounds the vertical autoscaling of a component.
type ControlPlaneAutoscaling struct {
	// Least requests that the autoscaler may set.
	MinAllowed corev1.ResourceList `json:"minAllowed" protobuf:"bytes,1,opt,name=minAllowed"`
}

// KubeAPIServerConfig configures the kube-apiserver.
type KubeAPIServerConfig struct {
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// Admission plugins to add, configure or turn off.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,opt,name=admissionPlugins"`
	// Audiences that service account tokens may carry. Defaults to ["kubernetes"].
	// +optional
	APIAudiences []string `json:"apiAudiences,omitempty" protobuf:"bytes,3,opt,name=apiAudiences"`
	// What is written to the audit log.
	// +optional
	AuditConfig *AuditConfig `json:"auditConfig,omitempty" protobuf:"bytes,4,opt,name=auditConfig"`
	// API versions and resources to turn on or off, as in kube-apiserver's --runtime-config.
	// +optional
	RuntimeConfig map[string]bool `json:"runtimeConfig,omitempty" protobuf:"bytes,7,opt,name=runtimeConfig"`
	// Settings for service account tokens.
	// +optional
	ServiceAccountConfig *ServiceAccountConfig `json:"serviceAccountConfig,omitempty" protobuf:"bytes,8,opt,name=serviceAccountConfig"`
	// Sizes of the watch caches.
	// +optional
	WatchCacheSizes *WatchCacheSizes `json:"watchCacheSizes,omitempty" protobuf:"bytes,9,opt,name=watchCacheSizes"`
	// Limits for requests in flight.
	// +optional
	Requests *APIServerRequests `json:"requests,omitempty" protobuf:"bytes,10,opt,name=requests"`
	// Whether requests without credentials are served as system:anonymous.
	//
	// Deprecated: use structuredAuthentication; forbidden from Kubernetes 1.35 on.
	// +optional
	EnableAnonymousAuthentication *bool `json:"enableAnonymousAuthentication,omitempty" protobuf:"bytes,11,opt,name=enableAnonymousAuthentication"`
	// How long events are kept, at most 24h. Defaults to 1h.
	// +optional
	EventTTL *metav1.Duration `json:"eventTTL,omitempty" protobuf:"bytes,12,opt,name=eventTTL"`
	// Verbosity of the log.
	// +optional
	Logging *APIServerLogging `json:"logging,omitempty" protobuf:"bytes,13,opt,name=logging"`
	// Seconds that pods stay on a node that is not ready. Defaults to 300.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty" protobuf:"bytes,14,opt,name=defaultNotReadyTolerationSeconds"`
	// Seconds that pods stay on a node that cannot be reached. Defaults to 300.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty" protobuf:"bytes,15,opt,name=defaultUnreachableTolerationSeconds"`
	// Which resources besides secrets are encrypted in etcd, and how.
	// +optional
	EncryptionConfig *EncryptionConfig `json:"encryptionConfig,omitempty" protobuf:"bytes,16,opt,name=encryptionConfig"`
	// Names the authentication configuration.
	// +optional
	StructuredAuthentication *StructuredAuthentication `json:"structuredAuthentication,omitempty" protobuf:"bytes,17,opt,name=structuredAuthentication"`
	// Names the authorization configuration.
	// +optional
	StructuredAuthorization *StructuredAuthorization `json:"structuredAuthorization,omitempty" protobuf:"bytes,18,opt,name=structuredAuthorization"`
	// Bounds for the vertical autoscaling of this component.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,19,opt,name=autoscaling"`
	// Lowest TLS version that is served: VersionTLS12 or VersionTLS13.
	// +optional
	TLSMinVersion *string `json:"tlsMinVersion,omitempty" protobuf:"bytes,20,opt,name=tlsMinVersion"`
}

// AdmissionPlugin configures one admission plugin of the kube-apiserver.
type AdmissionPlugin struct {
	// Name of the plugin.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Configuration of the plugin.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
	// Whether the plugin is turned off.
	// +optional
	Disabled *bool `json:"disabled,omitempty" protobuf:"bytes,3,opt,name=disabled"`
	// Name of a Secret, listed in the shoot's resources, with a kubeconfig for the plugin's webhook.
	// +optional
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty" protobuf:"bytes,4,opt,name=kubeconfigSecretName"`
}

// AuditConfig says what is audited.
type AuditConfig struct {
	// The audit policy.
	// +optional
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty" protobuf:"bytes,1,opt,name=auditPolicy"`
}

// AuditPolicy refers to an audit policy.
type AuditPolicy struct {
	// ConfigMap in the shoot's namespace with the policy under key "policy".
	// +optional
	ConfigMapRef *corev1.ObjectReference `json:"configMapRef,omitempty" protobuf:"bytes,1,opt,name=configMapRef"`
}

// ServiceAccountConfig configures service account tokens.
type ServiceAccountConfig struct {
	// Issuer of tokens, an https URL. Defaults to the URL of the API server.
	// +optional
	Issuer *string `json:"issuer,omitempty" protobuf:"bytes,1,opt,name=issuer"`
	// Whether tokens projected into pods live longer so that old clients keep working.
	// +optional
	ExtendTokenExpiration *bool `json:"extendTokenExpiration,omitempty" protobuf:"bytes,3,opt,name=extendTokenExpiration"`
	// Longest life of a token, 720h to 2160h.
	// +optional
	MaxTokenExpiration *metav1.Duration `json:"maxTokenExpiration,omitempty" protobuf:"bytes,4,opt,name=maxTokenExpiration"`
	// Further issuers whose tokens are accepted.
	// +optional
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty" protobuf:"bytes,5,opt,name=acceptedIssuers"`
}

// WatchCacheSizes holds sizes of watch caches, in events.
type WatchCacheSizes struct {
	// Size for resources not listed; 0 turns their watch caches off, other sizes are chosen by the kube-apiserver.
	//
	// Deprecated: forbidden from Kubernetes 1.35 on.
	// +optional
	Default *int32 `json:"default,omitempty" protobuf:"bytes,1,opt,name=default"`
	// Sizes per resource.
	// +optional
	Resources []ResourceWatchCacheSize `json:"resources,omitempty" protobuf:"bytes,2,opt,name=resources"`
}

// ResourceWatchCacheSize is the size of the watch cache of one resource.
type ResourceWatchCacheSize struct {
	// API group of the resource; the core group when left out.
	// +optional
	APIGroup *string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// Plural name of the resource.
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`
	// Number of events kept; 0 turns the watch cache off, other sizes are chosen by the kube-apiserver.
	CacheSize int32 `json:"size" protobuf:"bytes,3,opt,name=size"`
}

// APIServerRequests limits requests in flight.
type APIServerRequests struct {
	// Most reading requests in flight.
	// +optional
	MaxNonMutatingInflight *int32 `json:"maxNonMutatingInflight,omitempty" protobuf:"bytes,1,opt,name=maxNonMutatingInflight"`
	// Most writing requests in flight.
	// +optional
	MaxMutatingInflight *int32 `json:"maxMutatingInflight,omitempty" protobuf:"bytes,2,opt,name=maxMutatingInflight"`
}

// APIServerLogging sets verbosities.
type APIServerLogging struct {
	// Verbosity of the log. Defaults to 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty" protobuf:"bytes,1,opt,name=verbosity"`
	// Verbosity of the log of requests; from 3 on they are logged.
	// +optional
	HTTPAccessVerbosity *int32 `json:"httpAccessVerbosity,omitempty" protobuf:"bytes,2,opt,name=httpAccessVerbosity"`
}

// EncryptionConfig configures encryption at rest.
type EncryptionConfig struct {
	// Resources to encrypt besides secrets, such as configmaps or customresources.example.com.
	// +optional
	Resources []string `json:"resources,omitempty" protobuf:"bytes,1,opt,name=resources"`
	// How they are encrypted.
	Provider EncryptionProvider `json:"provider" protobuf:"bytes,2,opt,name=provider"`
}

// EncryptionProvider chooses a cipher.
type EncryptionProvider struct {
	// Cipher. Immutable. Defaults to aescbc.
	// +optional
	Type *EncryptionProviderType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`
}

// EncryptionProviderType is a cipher for encryption at rest.
type EncryptionProviderType string

const (
	// EncryptionProviderTypeAESCBC is AES in CBC mode.
	EncryptionProviderTypeAESCBC EncryptionProviderType = "aescbc"
	// EncryptionProviderTypeAESGCM is AES in GCM mode; its key has to be rotated automatically.
	EncryptionProviderTypeAESGCM EncryptionProviderType = "aesgcm"
	// EncryptionProviderTypeSecretbox is XSalsa20 with Poly1305.
	EncryptionProviderTypeSecretbox EncryptionProviderType = "secretbox"
)

// StructuredAuthentication refers to an AuthenticationConfiguration.
type StructuredAuthentication struct {
	// ConfigMap in the shoot's namespace with the configuration under key "config.yaml".
	ConfigMapName string `json:"configMapName" protobuf:"bytes,1,opt,name=configMapName"`
}

// StructuredAuthorization refers to an AuthorizationConfiguration.
type StructuredAuthorization struct {
	// ConfigMap in the shoot's namespace with the configuration under key "config.yaml".
	ConfigMapName string `json:"configMapName" protobuf:"bytes,1,opt,name=configMapName"`
	// Kubeconfigs of the webhook authorizers in the configuration.
	Kubeconfigs []AuthorizerKubeconfigReference `json:"kubeconfigs" protobuf:"bytes,2,opt,name=kubeconfigs"`
}

// AuthorizerKubeconfigReference gives a kubeconfig to a webhook authorizer.
type AuthorizerKubeconfigReference struct {
	// Name of the authorizer in the configuration.
	AuthorizerName string `json:"authorizerName" protobuf:"bytes,1,opt,name=authorizerName"`
	// Secret in the shoot's namespace with the kubeconfig under key "kubeconfig".
	SecretName string `json:"secretName" protobuf:"bytes,2,opt,name=secretName"`
}

// KubeControllerManagerConfig configures the kube-controller-manager.
type KubeControllerManagerConfig struct {
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// Settings of the horizontal pod autoscaler.
	// +optional
	HorizontalPodAutoscalerConfig *HorizontalPodAutoscalerConfig `json:"horizontalPodAutoscaler,omitempty" protobuf:"bytes,2,opt,name=horizontalPodAutoscaler"`
	// Prefix length of a node's range of pod addresses. Immutable. Defaults to 24, or less when a worker's maxPods
	// needs more addresses; 64 for IPv6.
	// +optional
	NodeCIDRMaskSize *int32 `json:"nodeCIDRMaskSize,omitempty" protobuf:"bytes,3,opt,name=nodeCIDRMaskSize"`
	// How long pods stay on a failed node. Not offered.
	//
	// Deprecated: kube-controller-manager has no such setting any more; use the toleration seconds of kubeAPIServer.
	// +optional
	PodEvictionTimeout *metav1.Duration `json:"podEvictionTimeout,omitempty" protobuf:"bytes,4,opt,name=podEvictionTimeout"`
	// How long a node may be silent before it is marked unhealthy. Defaults to 40s.
	// +optional
	NodeMonitorGracePeriod *metav1.Duration `json:"nodeMonitorGracePeriod,omitempty" protobuf:"bytes,5,opt,name=nodeMonitorGracePeriod"`
	// Prefix length of a node's range of IPv6 pod addresses in dual-stack clusters. Immutable. Defaults to 64.
	// +optional
	NodeCIDRMaskSizeIPv6 *int32 `json:"nodeCIDRMaskSizeIPv6,omitempty" protobuf:"bytes,6,opt,name=nodeCIDRMaskSizeIPv6"`
}

// HorizontalPodAutoscalerConfig configures the horizontal pod autoscaler.
type HorizontalPodAutoscalerConfig struct {
	// How long after a pod's start its CPU samples may be skipped.
	// +optional
	CPUInitializationPeriod *metav1.Duration `json:"cpuInitializationPeriod,omitempty" protobuf:"bytes,1,opt,name=cpuInitializationPeriod"`
	// How far back recommendations are considered before scaling down.
	// +optional
	DownscaleStabilization *metav1.Duration `json:"downscaleStabilization,omitempty" protobuf:"bytes,3,opt,name=downscaleStabilization"`
	// How long after a pod's start changes of readiness count as initial.
	// +optional
	InitialReadinessDelay *metav1.Duration `json:"initialReadinessDelay,omitempty" protobuf:"bytes,4,opt,name=initialReadinessDelay"`
	// How often replicas are computed.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty" protobuf:"bytes,5,opt,name=syncPeriod"`
	// Least relative change that leads to scaling.
	// +optional
	Tolerance *float64 `json:"tolerance,omitempty" protobuf:"bytes,6,opt,name=tolerance"`
}

// KubeSchedulerConfig configures the kube-scheduler.
type KubeSchedulerConfig struct {
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// Most volumes per node. Not offered.
	//
	// Deprecated: the volume limits of CSI drivers replace it.
	// +optional
	KubeMaxPDVols *string `json:"kubeMaxPDVols,omitempty" protobuf:"bytes,2,opt,name=kubeMaxPDVols"`
	// How pods are placed. Defaults to balanced.
	// +optional
	Profile *SchedulingProfile `json:"profile,omitempty" protobuf:"bytes,3,opt,name=profile"`
}

// SchedulingProfile is how the kube-scheduler places pods.
type SchedulingProfile string

const (
	// SchedulingProfileBalanced spreads pods evenly over nodes.
	SchedulingProfileBalanced SchedulingProfile = "balanced"
	// SchedulingProfileBinPacking fills nodes one after another.
	SchedulingProfileBinPacking SchedulingProfile = "bin-packing"
)

// KubeProxyConfig configures the kube-proxy.
type KubeProxyConfig struct {
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// How services are implemented. Defaults to IPTables.
	// +optional
	Mode *ProxyMode `json:"mode,omitempty" protobuf:"bytes,2,opt,name=mode"`
	// Whether kube-proxy runs at all; some network plugins replace it. Defaults to true if not specified.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"bytes,3,opt,name=enabled"`
}

// ProxyMode is how kube-proxy implements services.
type ProxyMode string

const (
	// ProxyModeIPTables uses iptables rules.
	ProxyModeIPTables ProxyMode = "IPTables"
	// ProxyModeNFTables uses nftables rules.
	ProxyModeNFTables ProxyMode = "NFTables"
	// ProxyModeIPVS uses the kernel's IP virtual server.
	ProxyModeIPVS ProxyMode = "IPVS"
)

// KubeletConfig configures kubelets.
type KubeletConfig struct {
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// Whether CPU limits are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty" protobuf:"bytes,2,opt,name=cpuCFSQuota"`
	// Policy for giving whole CPUs to pods: none or static. Defaults to none.
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty" protobuf:"bytes,3,opt,name=cpuManagerPolicy"`
	// When pods are evicted at once. Defaults to 100Mi memory, 5% of nodefs, imagefs and their inodes.
	// +optional
	EvictionHard *KubeletConfigEviction `json:"evictionHard,omitempty" protobuf:"bytes,4,opt,name=evictionHard"`
	// Most seconds a pod gets to terminate when a soft threshold is met. Defaults to 90.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty" protobuf:"bytes,5,opt,name=evictionMaxPodGracePeriod"`
	// Least amounts that an eviction reclaims. Defaults to 0 for each resource.
	// +optional
	EvictionMinimumReclaim *KubeletConfigEvictionMinimumReclaim `json:"evictionMinimumReclaim,omitempty" protobuf:"bytes,6,opt,name=evictionMinimumReclaim"`
	// How long a node stays under pressure after the last signal. Defaults to 4m0s.
	// +optional
	EvictionPressureTransitionPeriod *metav1.Duration `json:"evictionPressureTransitionPeriod,omitempty" protobuf:"bytes,7,opt,name=evictionPressureTransitionPeriod"`
	// When pods are evicted after a grace period. Defaults to 200Mi memory, 10% of nodefs, imagefs and their inodes.
	// +optional
	EvictionSoft *KubeletConfigEviction `json:"evictionSoft,omitempty" protobuf:"bytes,8,opt,name=evictionSoft"`
	// Grace periods of the soft thresholds. Defaults to 1m30s each.
	// +optional
	EvictionSoftGracePeriod *KubeletConfigEvictionSoftGracePeriod `json:"evictionSoftGracePeriod,omitempty" protobuf:"bytes,9,opt,name=evictionSoftGracePeriod"`
	// Most pods on a node. Defaults to 110.
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty" protobuf:"bytes,10,opt,name=maxPods"`
	// Most process ids per pod, at least 100.
	// +optional
	PodPIDsLimit *int64 `json:"podPidsLimit,omitempty" protobuf:"bytes,11,opt,name=podPidsLimit"`
	// Whether the kubelet refuses to start with swap on. Defaults to true.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty" protobuf:"bytes,13,opt,name=failSwapOn"`
	// Resources set aside for the kubelet and the container runtime. Defaults to cpu=80m,memory=1Gi,pid=20k.
	// +optional
	KubeReserved *KubeletConfigReserved `json:"kubeReserved,omitempty" protobuf:"bytes,14,opt,name=kubeReserved"`
	// Disk usage in percent above which images are removed. Defaults to 50.
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty" protobuf:"bytes,16,opt,name=imageGCHighThresholdPercent"`
	// Disk usage in percent down to which images are removed. Defaults to 40.
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty" protobuf:"bytes,17,opt,name=imageGCLowThresholdPercent"`
	// Whether images are pulled one at a time. Defaults to true.
	// +optional
	SerializeImagePulls *bool `json:"serializeImagePulls,omitempty" protobuf:"bytes,18,opt,name=serializeImagePulls"`
	// Image pulls per second. Defaults to 5.
	// +optional
	RegistryPullQPS *int32 `json:"registryPullQPS,omitempty" protobuf:"bytes,19,opt,name=registryPullQPS"`
	// Image pulls in a burst. Defaults to 10.
	// +optional
	RegistryBurst *int32 `json:"registryBurst,omitempty" protobuf:"bytes,20,opt,name=registryBurst"`
	// Whether pods run with the runtime's seccomp profile by default.
	// +optional
	SeccompDefault *bool `json:"seccompDefault,omitempty" protobuf:"bytes,21,opt,name=seccompDefault"`
	// Size at which a container's log is rotated. Defaults to 100Mi.
	// +optional
	ContainerLogMaxSize *resource.Quantity `json:"containerLogMaxSize,omitempty" protobuf:"bytes,22,opt,name=containerLogMaxSize"`
	// Log files kept per container, at least 2.
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty" protobuf:"bytes,23,opt,name=containerLogMaxFiles"`
	// Whether the kubelet refuses to change kernel settings.
	// +optional
	ProtectKernelDefaults *bool `json:"protectKernelDefaults,omitempty" protobuf:"bytes,24,opt,name=protectKernelDefaults"`
	// How long an idle exec, attach or port-forward stays open, 30s to 4h. Defaults to 5m.
	// +optional
	StreamingConnectionIdleTimeout *metav1.Duration `json:"streamingConnectionIdleTimeout,omitempty" protobuf:"bytes,25,opt,name=streamingConnectionIdleTimeout"`
	// How containers may use swap.
	// +optional
	MemorySwap *MemorySwapConfiguration `json:"memorySwap,omitempty" protobuf:"bytes,26,opt,name=memorySwap"`
	// Most images pulled at once; only when serializeImagePulls is false. Defaults to nil.
	// +optional
	MaxParallelImagePulls *int32 `json:"maxParallelImagePulls,omitempty" protobuf:"bytes,27,opt,name=maxParallelImagePulls"`
	// Least age of an unused image before it is removed. Defaults to 2m0s.
	// +optional
	ImageMinimumGCAge *metav1.Duration `json:"imageMinimumGCAge,omitempty" protobuf:"bytes,28,opt,name=imageMinimumGCAge"`
	// Age at which an unused image is removed in any case; 0 turns this off. Defaults to 0s.
	// +optional
	ImageMaximumGCAge *metav1.Duration `json:"imageMaximumGCAge,omitempty" protobuf:"bytes,29,opt,name=imageMaximumGCAge"`
	// Whether only the offending process, not its whole container, is killed when memory runs out.
	// +optional
	SingleProcessOOMKill *bool `json:"singleProcessOOMKill,omitempty" protobuf:"bytes,30,opt,name=singleProcessOOMKill"`
	// When pull credentials are checked for images that are on the node already. Defaults to
	// NeverVerifyPreloadedImages" (the kubelet default).
	// +optional
	ImagePullCredentialsVerificationPolicy *ImagePullCredentialsVerificationPolicy `json:"imagePullCredentialsVerificationPolicy,omitempty" protobuf:"bytes,31,opt,name=imagePullCredentialsVerificationPolicy"`
	// Images without such checks.
	// +optional
	PreloadedImagesVerificationAllowlist []string `json:"preloadedImagesVerificationAllowlist,omitempty" protobuf:"bytes,32,opt,name=preloadedImagesVerificationAllowlist"`
}

// ImagePullCredentialsVerificationPolicy is when pull credentials are checked for images that are on the node already.
type ImagePullCredentialsVerificationPolicy string

const (
	// NeverVerify checks none.
	NeverVerify ImagePullCredentialsVerificationPolicy = "NeverVerify"
	// NeverVerifyPreloadedImages checks those that the kubelet pulled.
	NeverVerifyPreloadedImages ImagePullCredentialsVerificationPolicy = "NeverVerifyPreloadedImages"
	// NeverVerifyAllowlistedImages checks all but the listed ones.
	NeverVerifyAllowlistedImages ImagePullCredentialsVerificationPolicy = "NeverVerifyAllowlistedImages"
	// AlwaysVerify checks all.
	AlwaysVerify ImagePullCredentialsVerificationPolicy = "AlwaysVerify"
)

// KubeletConfigEviction holds thresholds, each an amount or a percentage.
type KubeletConfigEviction struct {
	// For the memory of the node.
	// +optional
	MemoryAvailable *string `json:"memoryAvailable,omitempty" protobuf:"bytes,1,opt,name=memoryAvailable"`
	// For the space of the file system with images.
	// +optional
	ImageFSAvailable *string `json:"imageFSAvailable,omitempty" protobuf:"bytes,2,opt,name=imageFSAvailable"`
	// For the inodes of the file system with images.
	// +optional
	ImageFSInodesFree *string `json:"imageFSInodesFree,omitempty" protobuf:"bytes,3,opt,name=imageFSInodesFree"`
	// For the space of the node's file system.
	// +optional
	NodeFSAvailable *string `json:"nodeFSAvailable,omitempty" protobuf:"bytes,4,opt,name=nodeFSAvailable"`
	// For the inodes of the node's file system.
	// +optional
	NodeFSInodesFree *string `json:"nodeFSInodesFree,omitempty" protobuf:"bytes,5,opt,name=nodeFSInodesFree"`
}

// KubeletConfigEvictionMinimumReclaim holds amounts to reclaim.
type KubeletConfigEvictionMinimumReclaim struct {
	// For the memory of the node.
	// +optional
	MemoryAvailable *resource.Quantity `json:"memoryAvailable,omitempty" protobuf:"bytes,1,opt,name=memoryAvailable"`
	// For the space of the file system with images.
	// +optional
	ImageFSAvailable *resource.Quantity `json:"imageFSAvailable,omitempty" protobuf:"bytes,2,opt,name=imageFSAvailable"`
	// For the inodes of the file system with images.
	// +optional
	ImageFSInodesFree *resource.Quantity `json:"imageFSInodesFree,omitempty" protobuf:"bytes,3,opt,name=imageFSInodesFree"`
	// For the space of the node's file system.
	// +optional
	NodeFSAvailable *resource.Quantity `json:"nodeFSAvailable,omitempty" protobuf:"bytes,4,opt,name=nodeFSAvailable"`
	// For the inodes of the node's file system.
	// +optional
	NodeFSInodesFree *resource.Quantity `json:"nodeFSInodesFree,omitempty" protobuf:"bytes,5,opt,name=nodeFSInodesFree"`
}

// KubeletConfigEvictionSoftGracePeriod holds grace periods.
type KubeletConfigEvictionSoftGracePeriod struct {
	// For the memory of the node.
	// +optional
	MemoryAvailable *metav1.Duration `json:"memoryAvailable,omitempty" protobuf:"bytes,1,opt,name=memoryAvailable"`
	// For the space of the file system with images.
	// +optional
	ImageFSAvailable *metav1.Duration `json:"imageFSAvailable,omitempty" protobuf:"bytes,2,opt,name=imageFSAvailable"`
	// For the inodes of the file system with images.
	// +optional
	ImageFSInodesFree *metav1.Duration `json:"imageFSInodesFree,omitempty" protobuf:"bytes,3,opt,name=imageFSInodesFree"`
	// For the space of the node's file system.
	// +optional
	NodeFSAvailable *metav1.Duration `json:"nodeFSAvailable,omitempty" protobuf:"bytes,4,opt,name=nodeFSAvailable"`
	// For the inodes of the node's file system.
	// +optional
	NodeFSInodesFree *metav1.Duration `json:"nodeFSInodesFree,omitempty" protobuf:"bytes,5,opt,name=nodeFSInodesFree"`
}

// KubeletConfigReserved holds resources that are set aside.
type KubeletConfigReserved struct {
	// Number of CPUs.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty" protobuf:"bytes,1,opt,name=cpu"`
	// Size of the memory.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty" protobuf:"bytes,2,opt,name=memory"`
	// Space for logs, images and writable layers.
	// +optional
	EphemeralStorage *resource.Quantity `json:"ephemeralStorage,omitempty" protobuf:"bytes,3,opt,name=ephemeralStorage"`
	// Number of process ids.
	// +optional
	PID *resource.Quantity `json:"pid,omitempty" protobuf:"bytes,4,opt,name=pid"`
}

// MemorySwapConfiguration says how containers may use swap.
type MemorySwapConfiguration struct {
	// Which containers may swap. Defaults to LimitedSwap.
	// +optional
	SwapBehavior *SwapBehavior `json:"swapBehavior,omitempty" protobuf:"bytes,1,opt,name=swapBehavior"`
}

// SwapBehavior is which containers may swap.
type SwapBehavior string

const (
	// NoSwap lets none.
	NoSwap SwapBehavior = "NoSwap"
	// LimitedSwap lets Burstable pods, in proportion to their memory requests.
	LimitedSwap SwapBehavior = "LimitedSwap"
)

// VerticalPodAutoscaler configures the vertical pod autoscaler of the cluster.
type VerticalPodAutoscaler struct {
	// Whether it is installed.
	Enabled bool `json:"enabled" protobuf:"bytes,1,opt,name=enabled"`
	// Longest life of a pod whose out-of-memory kill leads to eviction. Defaults to 10m0s.
	// +optional
	EvictAfterOOMThreshold *metav1.Duration `json:"evictAfterOOMThreshold,omitempty" protobuf:"bytes,2,opt,name=evictAfterOOMThreshold"`
	// Evictions in a burst. Defaults to 1.
	// +optional
	EvictionRateBurst *int32 `json:"evictionRateBurst,omitempty" protobuf:"bytes,3,opt,name=evictionRateBurst"`
	// Evictions per second; -1 is no limit. Defaults to -1.
	// +optional
	EvictionRateLimit *float64 `json:"evictionRateLimit,omitempty" protobuf:"bytes,4,opt,name=evictionRateLimit"`
	// Share of a workload's replicas that may be evicted. Defaults to 0.5.
	// +optional
	EvictionTolerance *float64 `json:"evictionTolerance,omitempty" protobuf:"bytes,5,opt,name=evictionTolerance"`
	// Share added on top of the recommendation. Defaults to 0.15.
	// +optional
	RecommendationMarginFraction *float64 `json:"recommendationMarginFraction,omitempty" protobuf:"bytes,6,opt,name=recommendationMarginFraction"`
	// How often pods are looked at. Defaults to 1m0s.
	// +optional
	UpdaterInterval *metav1.Duration `json:"updaterInterval,omitempty" protobuf:"bytes,7,opt,name=updaterInterval"`
	// How often metrics are fetched. Defaults to 1m0s.
	// +optional
	RecommenderInterval *metav1.Duration `json:"recommenderInterval,omitempty" protobuf:"bytes,8,opt,name=recommenderInterval"`
	// Percentile of CPU usage that is the target. Defaults to 0.9.
	// +optional
	TargetCPUPercentile *float64 `json:"targetCPUPercentile,omitempty" protobuf:"bytes,9,opt,name=targetCPUPercentile"`
	// Percentile of CPU usage that is the lower bound. Defaults to 0.5.
	// +optional
	RecommendationLowerBoundCPUPercentile *float64 `json:"recommendationLowerBoundCPUPercentile,omitempty" protobuf:"bytes,10,opt,name=recommendationLowerBoundCPUPercentile"`
	// Percentile of CPU usage that is the upper bound. Defaults to 0.95.
	// +optional
	RecommendationUpperBoundCPUPercentile *float64 `json:"recommendationUpperBoundCPUPercentile,omitempty" protobuf:"bytes,11,opt,name=recommendationUpperBoundCPUPercentile"`
	// Percentile of memory usage that is the target. Defaults to 0.9.
	// +optional
	TargetMemoryPercentile *float64 `json:"targetMemoryPercentile,omitempty" protobuf:"bytes,12,opt,name=targetMemoryPercentile"`
	// Percentile of memory usage that is the lower bound. Defaults to 0.5.
	// +optional
	RecommendationLowerBoundMemoryPercentile *float64 `json:"recommendationLowerBoundMemoryPercentile,omitempty" protobuf:"bytes,13,opt,name=recommendationLowerBoundMemoryPercentile"`
	// Percentile of memory usage that is the upper bound. Defaults to 0.95.
	// +optional
	RecommendationUpperBoundMemoryPercentile *float64 `json:"recommendationUpperBoundMemoryPercentile,omitempty" protobuf:"bytes,14,opt,name=recommendationUpperBoundMemoryPercentile"`
	// Time in which a CPU sample loses half of its weight. Defaults to 24h.
	// +optional
	CPUHistogramDecayHalfLife *metav1.Duration `json:"cpuHistogramDecayHalfLife,omitempty" protobuf:"bytes,15,opt,name=cpuHistogramDecayHalfLife"`
	// Time in which a memory sample loses half of its weight. Defaults to 24h.
	// +optional
	MemoryHistogramDecayHalfLife *metav1.Duration `json:"memoryHistogramDecayHalfLife,omitempty" protobuf:"bytes,16,opt,name=memoryHistogramDecayHalfLife"`
	// Time over which the peak of memory is taken. Defaults to 24h.
	// +optional
	MemoryAggregationInterval *metav1.Duration `json:"memoryAggregationInterval,omitempty" protobuf:"bytes,17,opt,name=memoryAggregationInterval"`
	// Number of such times that are kept. Defaults to 8.
	// +optional
	MemoryAggregationIntervalCount *int64 `json:"memoryAggregationIntervalCount,omitempty" protobuf:"bytes,18,opt,name=memoryAggregationIntervalCount"`
	// Feature gates to turn on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty" protobuf:"bytes,19,opt,name=featureGates"`
	// Most that is recommended for a container. Defaults to nil (no maximum).
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty" protobuf:"bytes,20,opt,name=maxAllowed"`
	// Workers that write recommendations. Defaults to 10.
	// +optional
	RecommenderUpdateWorkerCount *int64 `json:"recommenderUpdateWorkerCount,omitempty" protobuf:"bytes,21,opt,name=recommenderUpdateWorkerCount"`
}

// ETCD configures the two etcds of a control plane.
type ETCD struct {
	// The etcd for everything but events.
	// +optional
	Main *ETCDConfig `json:"main,omitempty" protobuf:"bytes,1,opt,name=main"`
	// The etcd for events.
	// +optional
	Events *ETCDConfig `json:"events,omitempty" protobuf:"bytes,2,opt,name=events"`
}

// ETCDConfig configures one etcd.
type ETCDConfig struct {
	// Bounds for the vertical autoscaling of this component.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,1,opt,name=autoscaling"`
}

// KubernetesConfig is what the settings of all Kubernetes components have in common.
type KubernetesConfig struct {
	// Feature gates to turn on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty" protobuf:"bytes,1,opt,name=featureGates"`
}
