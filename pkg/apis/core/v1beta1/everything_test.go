package v1beta1

import (
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aShootWithEverything is a Shoot with most settings that the API has.
func aShootWithEverything() *Shoot {
	shoot := aShoot()
	spec := &shoot.Spec
	spec.DNS = &DNS{Domain: new("member1.example.com"), Providers: []DNSProvider{{
		Type: new("aws-route53"), Primary: new(true),
		CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "dns"},
	}}}
	spec.Resources = []NamedResourceReference{
		{
			Name: "webhook", ResourceRef: autoscalingv1.CrossVersionObjectReference{
				APIVersion: "v1", Kind: "Secret", Name: "webhook",
			},
		},
	}
	spec.Hibernation = &Hibernation{
		Enabled: new(false), Schedules: []HibernationSchedule{
			{Start: new("0 20 * * *"), End: new("0 6 * * mon"), Location: new("Europe/Berlin")},
		},
	}
	spec.ControlPlane = &ControlPlane{Zones: []string{"a"}}
	spec.Monitoring = &Monitoring{Alerting: &Alerting{EmailReceivers: []string{"alice@example.com"}}}
	spec.Tolerations = []Toleration{{Key: "a"}, {Key: "b", Value: new("c")}}
	spec.SystemComponents.CoreDNS.Rewriting = &CoreDNSRewriting{CommonSuffixes: []string{".example.com"}}
	spec.Maintenance.AutoRotation.Credentials.ETCDEncryptionKey = &MaintenanceRotationConfig{
		RotationPeriod: &metav1.Duration{Duration: 672 * time.Hour},
	}
	completeKubernetes(&spec.Kubernetes)
	completeWorker(&spec.Provider.Workers[0])
	SetDefaultsShoot(shoot)
	return shoot
}

func completeKubernetes(kubernetes *Kubernetes) {
	atLeast := &ControlPlaneAutoscaling{
		MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")},
	}
	kubernetes.ClusterAutoscaler = &ClusterAutoscaler{
		Expander: new(ExpanderMode("priority,least-waste")), StartupTaints: []string{"a"}, Autoscaling: atLeast,
	}
	kubernetes.VerticalPodAutoscaler = &VerticalPodAutoscaler{Enabled: true}
	kubernetes.ETCD = &ETCD{Main: &ETCDConfig{Autoscaling: atLeast.DeepCopy()}, Events: &ETCDConfig{}}
	api := kubernetes.KubeAPIServer
	api.FeatureGates = map[string]bool{"AllAlpha": true, "WatchListClient": false}
	api.RuntimeConfig = map[string]bool{"api/beta": true, "batch/v1": true, "apps/v1/deployments": true}
	api.AdmissionPlugins = []AdmissionPlugin{
		{Name: "PodNodeSelector", Config: config(`{"podNodeSelectorPluginConfig":{}}`)},
		{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("webhook")}, {Name: "LimitRanger", Disabled: new(true)},
	}
	api.APIAudiences = []string{"kubernetes", "vault"}
	api.ServiceAccountConfig = &ServiceAccountConfig{
		Issuer: new("https://issuer.example.com"), AcceptedIssuers: []string{"https://old.example.com"},
		MaxTokenExpiration: &metav1.Duration{Duration: 720 * time.Hour},
	}
	api.EncryptionConfig.Resources = []string{"configmaps", "customresources.example.com"}
	api.EncryptionConfig.Provider.Type = new(EncryptionProviderTypeAESGCM)
	api.StructuredAuthentication = &StructuredAuthentication{ConfigMapName: "authentication"}
	api.StructuredAuthorization = &StructuredAuthorization{
		ConfigMapName: "authorization",
		Kubeconfigs:   []AuthorizerKubeconfigReference{{AuthorizerName: "opa", SecretName: "opa"}},
	}
	api.AuditConfig = &AuditConfig{AuditPolicy: &AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}}
	api.TLSMinVersion = new("VersionTLS13")
	kubernetes.KubeControllerManager.HorizontalPodAutoscalerConfig = &HorizontalPodAutoscalerConfig{
		Tolerance: new(0.1), SyncPeriod: &metav1.Duration{Duration: time.Second},
	}
	kubelet := kubernetes.Kubelet
	kubelet.EvictionHard = &KubeletConfigEviction{MemoryAvailable: new("100Mi"), NodeFSAvailable: new("5%")}
	kubelet.EvictionMinimumReclaim = &KubeletConfigEvictionMinimumReclaim{
		MemoryAvailable: new(resource.MustParse("1Mi")),
	}
	kubelet.EvictionSoftGracePeriod = &KubeletConfigEvictionSoftGracePeriod{
		MemoryAvailable: &metav1.Duration{Duration: time.Minute},
	}
	kubelet.KubeReserved = &KubeletConfigReserved{
		CPU: new(resource.MustParse("80m")), Memory: new(resource.MustParse("1Gi")),
	}
	kubelet.FailSwapOn, kubelet.MemorySwap = new(false), &MemorySwapConfiguration{}
	kubelet.SerializeImagePulls, kubelet.MaxParallelImagePulls = new(false), new(int32(4))
	kubelet.ImagePullCredentialsVerificationPolicy,
		kubelet.PreloadedImagesVerificationAllowlist = new(NeverVerifyAllowlistedImages), []string{"example.com/*"}
}

func completeWorker(worker *Worker) {
	worker.Labels, worker.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	worker.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	worker.Volume = &Volume{VolumeSize: "50Gi", Type: new("ssd")}
	worker.DataVolumes, worker.KubeletDataVolumeName = []DataVolume{{Name: "kubelet", VolumeSize: "25Gi"}},
		new("kubelet")
	worker.Kubernetes = &WorkerKubernetes{
		Version: new("1.35.4"), Kubelet: &KubeletConfig{
			MaxPods: new(int32(50)), KubernetesConfig: KubernetesConfig{
				FeatureGates: map[string]bool{"NodeSwap": true},
			},
		},
	}
	worker.Sysctls = map[string]string{"vm.max_map_count": "262144"}
	worker.MachineControllerManager = &MachineControllerManagerSettings{
		NodeConditions: []string{"KernelDeadlock"}, MaxEvictRetries: new(int32(3)),
	}
	worker.ClusterAutoscaler = &ClusterAutoscalerOptions{ScaleDownUtilizationThreshold: new(0.5)}
	worker.Priority = new(int32(10))
}
