package v1beta1

import (
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// aShootWithEverything is a Shoot with most settings that the API has.
func aShootWithEverything() *Shoot {
	shoot := aShoot()
	spec := &shoot.Spec
	spec.DNS = &DNS{Domain: ptr.To("member1.example.com"), Providers: []DNSProvider{{
		Type: ptr.To("aws-route53"), Primary: ptr.To(true), CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "dns"},
	}}}
	spec.Resources = []NamedResourceReference{{Name: "webhook", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "webhook"}}}
	spec.Hibernation = &Hibernation{Enabled: ptr.To(false), Schedules: []HibernationSchedule{{Start: ptr.To("0 20 * * *"), End: ptr.To("0 6 * * mon"), Location: ptr.To("Europe/Berlin")}}}
	spec.ControlPlane = &ControlPlane{Zones: []string{"a"}}
	spec.Monitoring = &Monitoring{Alerting: &Alerting{EmailReceivers: []string{"alice@example.com"}}}
	spec.Tolerations = []Toleration{{Key: "a"}, {Key: "b", Value: ptr.To("c")}}
	spec.SystemComponents.CoreDNS.Rewriting = &CoreDNSRewriting{CommonSuffixes: []string{".example.com"}}
	spec.Maintenance.AutoRotation.Credentials.ETCDEncryptionKey = &MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{Duration: 672 * time.Hour}}
	completeKubernetes(&spec.Kubernetes)
	completeWorker(&spec.Provider.Workers[0])
	SetDefaultsShoot(shoot)
	return shoot
}

func completeKubernetes(kubernetes *Kubernetes) {
	atLeast := &ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")}}
	kubernetes.ClusterAutoscaler = &ClusterAutoscaler{Expander: ptr.To(ExpanderMode("priority,least-waste")), StartupTaints: []string{"a"}, Autoscaling: atLeast}
	kubernetes.VerticalPodAutoscaler = &VerticalPodAutoscaler{Enabled: true}
	kubernetes.ETCD = &ETCD{Main: &ETCDConfig{Autoscaling: atLeast.DeepCopy()}, Events: &ETCDConfig{}}
	api := kubernetes.KubeAPIServer
	api.FeatureGates = map[string]bool{"AllAlpha": true, "WatchListClient": false}
	api.RuntimeConfig = map[string]bool{"api/beta": true, "batch/v1": true, "apps/v1/deployments": true}
	api.AdmissionPlugins = []AdmissionPlugin{{Name: "PodNodeSelector", Config: config(`{"podNodeSelectorPluginConfig":{}}`)}, {Name: "ImagePolicyWebhook", KubeconfigSecretName: ptr.To("webhook")}, {Name: "LimitRanger", Disabled: ptr.To(true)}}
	api.APIAudiences = []string{"kubernetes", "vault"}
	api.ServiceAccountConfig = &ServiceAccountConfig{Issuer: ptr.To("https://issuer.example.com"), AcceptedIssuers: []string{"https://old.example.com"}, MaxTokenExpiration: &metav1.Duration{Duration: 720 * time.Hour}}
	api.EncryptionConfig.Resources = []string{"configmaps", "customresources.example.com"}
	api.EncryptionConfig.Provider.Type = ptr.To(EncryptionProviderTypeAESGCM)
	api.StructuredAuthentication = &StructuredAuthentication{ConfigMapName: "authentication"}
	api.StructuredAuthorization = &StructuredAuthorization{ConfigMapName: "authorization", Kubeconfigs: []AuthorizerKubeconfigReference{{AuthorizerName: "opa", SecretName: "opa"}}}
	api.AuditConfig = &AuditConfig{AuditPolicy: &AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}}
	api.TLSMinVersion = ptr.To("VersionTLS13")
	kubernetes.KubeControllerManager.HorizontalPodAutoscalerConfig = &HorizontalPodAutoscalerConfig{Tolerance: ptr.To(0.1), SyncPeriod: &metav1.Duration{Duration: time.Second}}
	kubelet := kubernetes.Kubelet
	kubelet.EvictionHard = &KubeletConfigEviction{MemoryAvailable: ptr.To("100Mi"), NodeFSAvailable: ptr.To("5%")}
	kubelet.EvictionMinimumReclaim = &KubeletConfigEvictionMinimumReclaim{MemoryAvailable: ptr.To(resource.MustParse("1Mi"))}
	kubelet.EvictionSoftGracePeriod = &KubeletConfigEvictionSoftGracePeriod{MemoryAvailable: &metav1.Duration{Duration: time.Minute}}
	kubelet.KubeReserved = &KubeletConfigReserved{CPU: ptr.To(resource.MustParse("80m")), Memory: ptr.To(resource.MustParse("1Gi"))}
	kubelet.FailSwapOn, kubelet.MemorySwap = ptr.To(false), &MemorySwapConfiguration{}
	kubelet.SerializeImagePulls, kubelet.MaxParallelImagePulls = ptr.To(false), ptr.To[int32](4)
	kubelet.ImagePullCredentialsVerificationPolicy, kubelet.PreloadedImagesVerificationAllowlist = ptr.To(NeverVerifyAllowlistedImages), []string{"example.com/*"}
}

func completeWorker(worker *Worker) {
	worker.Labels, worker.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	worker.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	worker.Volume = &Volume{VolumeSize: "50Gi", Type: ptr.To("ssd")}
	worker.DataVolumes, worker.KubeletDataVolumeName = []DataVolume{{Name: "kubelet", VolumeSize: "25Gi"}}, ptr.To("kubelet")
	worker.Kubernetes = &WorkerKubernetes{Version: ptr.To("1.35.4"), Kubelet: &KubeletConfig{MaxPods: ptr.To[int32](50), KubernetesConfig: KubernetesConfig{FeatureGates: map[string]bool{"NodeSwap": true}}}}
	worker.Sysctls = map[string]string{"vm.max_map_count": "262144"}
	worker.MachineControllerManager = &MachineControllerManagerSettings{NodeConditions: []string{"KernelDeadlock"}, MaxEvictRetries: ptr.To[int32](3)}
	worker.ClusterAutoscaler = &ClusterAutoscalerOptions{ScaleDownUtilizationThreshold: ptr.To(0.5)}
	worker.Priority = ptr.To[int32](10)
}
