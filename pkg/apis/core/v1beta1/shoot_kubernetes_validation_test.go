package v1beta1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func config(raw string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(raw)} }

func TestValidateKubeAPIServer(t *testing.T) {
	const path = "spec.kubernetes.kubeAPIServer."
	api := func(change func(*KubeAPIServerConfig)) func(*Shoot) {
		return func(s *Shoot) { change(s.Spec.Kubernetes.KubeAPIServer) }
	}
	check(t, []change[*Shoot]{
		{"everything", func(*Shoot) {}, "", ""},
		{
			"unknown feature gate", api(func(c *KubeAPIServerConfig) {
				c.FeatureGates = map[string]bool{"Fancy": true}
			}), path + "featureGates[Fancy]", "no feature gate of Kubernetes 1.36",
		},
		{
			"locked feature gate", api(func(c *KubeAPIServerConfig) {
				c.FeatureGates = map[string]bool{"APIServerTracing": false}
			}), path + "featureGates[APIServerTracing]", "can only be true from Kubernetes 1.34 on",
		},
		{
			"feature gate that is gone", api(func(c *KubeAPIServerConfig) {
				c.FeatureGates = map[string]bool{"CPUCFSQuotaPeriod": true}
			}), path + "featureGates[CPUCFSQuotaPeriod]", "was removed with Kubernetes 1.36",
		},
		{"feature gate that is new", func(s *Shoot) {
			s.Spec.Kubernetes.Version = "1.35.4"
			s.Spec.Kubernetes.KubeAPIServer.FeatureGates = map[string]bool{"AtomicFIFO": true}
		}, path + "featureGates[AtomicFIFO]", "from Kubernetes 1.36 on"},
		{"any feature gate of a version to come", func(s *Shoot) {
			s.Spec.Kubernetes.Version = "1.37.0"
			s.Spec.Kubernetes.KubeAPIServer.FeatureGates = map[string]bool{"Fancy": true}
		}, "", ""},
		{
			"unknown admission plugin", api(func(c *KubeAPIServerConfig) {
				c.AdmissionPlugins = []AdmissionPlugin{{Name: "Fancy"}}
			}), path + "admissionPlugins[0].name", "no admission plugin of Kubernetes 1.36",
		},
		{"admission plugin that is needed", api(func(c *KubeAPIServerConfig) {
			c.AdmissionPlugins = []AdmissionPlugin{{Name: "NodeRestriction", Disabled: new(true)}}
		}), path + "admissionPlugins[0].name", "cannot be disabled"},
		{
			"admission plugin that refuses all",
			api(func(c *KubeAPIServerConfig) { c.AdmissionPlugins = []AdmissionPlugin{{Name: "AlwaysDeny"}} }),
			path + "admissionPlugins[0].name", "every change",
		},
		{"admission plugin twice", api(func(c *KubeAPIServerConfig) {
			c.AdmissionPlugins = []AdmissionPlugin{{Name: "PodSecurity"}, {Name: "PodSecurity"}}
		}), path + "admissionPlugins[1].name", "Duplicate"},
		{
			"kubeconfig that is no resource",
			api(func(c *KubeAPIServerConfig) { c.AdmissionPlugins[1].KubeconfigSecretName = new("other") }),
			path + "admissionPlugins[1].kubeconfigSecretName", "Secret in spec.resources",
		},
		{
			"API that is needed", api(func(c *KubeAPIServerConfig) {
				c.RuntimeConfig = map[string]bool{"apps/v1": false}
			}), path + "runtimeConfig[apps/v1]", "cannot be turned off",
		},
		{
			"API that is none", api(func(c *KubeAPIServerConfig) { c.RuntimeConfig = map[string]bool{"beta": true} }),
			path + "runtimeConfig[beta]", "such as batch/v1",
		},
		{
			"audience twice", api(func(c *KubeAPIServerConfig) { c.APIAudiences = []string{"a", "a"} }),
			path + "apiAudiences[1]", "Duplicate",
		},
		{"issuer accepted twice", api(func(c *KubeAPIServerConfig) {
			c.ServiceAccountConfig.AcceptedIssuers[0] = *c.ServiceAccountConfig.Issuer
		}), path + "serviceAccountConfig.acceptedIssuers[0]", "is the issuer already"},
		{
			"short tokens", api(func(c *KubeAPIServerConfig) {
				c.ServiceAccountConfig.MaxTokenExpiration = seconds(60)
			}), path + "serviceAccountConfig.maxTokenExpiration", "between 720h0m0s",
		},
		{
			"wildcard encryption", api(func(c *KubeAPIServerConfig) {
				c.EncryptionConfig.Resources = []string{"*.apps"}
			}), path + "encryptionConfig.resources[0]", "wildcards",
		},
		{
			"AES-GCM without rotation", func(s *Shoot) {
				s.Spec.Maintenance.AutoRotation.Credentials.ETCDEncryptionKey = nil
			}, "spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod", "aesgcm",
		},
		{
			"no authentication configuration",
			api(func(c *KubeAPIServerConfig) { c.StructuredAuthentication.ConfigMapName = "" }),
			path + "structuredAuthentication.configMapName", "AuthenticationConfiguration",
		},
		{"authorizer twice", api(func(c *KubeAPIServerConfig) {
			c.StructuredAuthorization.Kubeconfigs = append(c.StructuredAuthorization.Kubeconfigs,
				c.StructuredAuthorization.Kubeconfigs...)
		}), path + "structuredAuthorization.kubeconfigs[1].authorizerName", "Duplicate"},
		{
			"no audit policy", api(func(c *KubeAPIServerConfig) { c.AuditConfig.AuditPolicy.ConfigMapRef.Name = "" }),
			path + "auditConfig.auditPolicy.configMapRef.name", "audit policy",
		},
		{"configuration of a plugin that has none", api(func(c *KubeAPIServerConfig) {
			c.AdmissionPlugins[0] = AdmissionPlugin{Name: "NodeRestriction", Config: config(`{}`)}
		}), path + "admissionPlugins[0].config", "takes no configuration"},
		{
			"configuration that is none", api(func(c *KubeAPIServerConfig) {
				c.AdmissionPlugins[0].Config = config(`[]`)
			}), path + "admissionPlugins[0].config", "must be an object",
		},
		{"configuration with a file", api(func(c *KubeAPIServerConfig) {
			c.AdmissionPlugins[1].Config = config(`{"imagePolicy":{"kubeConfigFile":"/x"}}`)
		}), path + "admissionPlugins[1].config.imagePolicy.kubeConfigFile", "use kubeconfigSecretName"},
		{"configuration with a file in another spelling", api(func(c *KubeAPIServerConfig) {
			c.AdmissionPlugins[1].Config = config(`{"imagepolicy":{"KubeConfigFile":"/x"}}`)
		}), path + "admissionPlugins[1].config.imagePolicy.kubeConfigFile", "use kubeconfigSecretName"},
		{
			"limits without any", api(func(c *KubeAPIServerConfig) {
				c.AdmissionPlugins[0] = AdmissionPlugin{Name: "EventRateLimit"}
			}), path + "admissionPlugins[0].config", "starts only with",
		},
		{
			"webhook of nobody", api(func(c *KubeAPIServerConfig) { c.AdmissionPlugins[1].KubeconfigSecretName = nil }),
			path + "admissionPlugins[1].kubeconfigSecretName", "starts only with",
		},
		{
			"kubeconfig of a plugin without webhook",
			api(func(c *KubeAPIServerConfig) { c.AdmissionPlugins[0].KubeconfigSecretName = new("webhook") }),
			path + "admissionPlugins[0].kubeconfigSecretName", "asks no webhook",
		},
		{
			"old TLS", api(func(c *KubeAPIServerConfig) { c.TLSMinVersion = new("VersionTLS10") }),
			path + "tlsMinVersion", `"VersionTLS12"`,
		},
		{"bounds for disks", api(func(c *KubeAPIServerConfig) {
			c.Autoscaling = &ControlPlaneAutoscaling{
				MinAllowed: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
			}
		}), path + "autoscaling.minAllowed[storage]", `"memory"`},
		{"negative bounds for etcd", func(s *Shoot) {
			s.Spec.Kubernetes.ETCD.Main.Autoscaling.MinAllowed = corev1.ResourceList{"cpu": resource.MustParse("-1")}
		}, "spec.kubernetes.etcd.main.autoscaling.minAllowed[cpu]", "not be negative"},
		{"a node for the own API server", api(func(c *KubeAPIServerConfig) {
			c.Autoscaling = &ControlPlaneAutoscaling{
				MinAllowed: corev1.ResourceList{"memory": resource.MustParse("33Gi")},
			}
		}), path + "autoscaling.minAllowed[memory]", "must be at most 32Gi"},
		{"all processors for the own etcd", func(s *Shoot) {
			s.Spec.Kubernetes.ETCD.Main.Autoscaling.MinAllowed = corev1.ResourceList{"cpu": resource.MustParse("17")}
		}, "spec.kubernetes.etcd.main.autoscaling.minAllowed[cpu]", "must be at most 16"},
		{
			"anonymous requests with a new version",
			api(func(c *KubeAPIServerConfig) { c.EnableAnonymousAuthentication = new(true) }),
			path + "enableAnonymousAuthentication", "use structuredAuthentication",
		},
	}, aShootWithEverything, ValidateShoot)
}

func TestValidateKubelet(t *testing.T) {
	const path = "spec.kubernetes.kubelet."
	kubelet := func(change func(*KubeletConfig)) func(*Shoot) {
		return func(s *Shoot) { change(s.Spec.Kubernetes.Kubelet) }
	}
	check(t, []change[*Shoot]{
		{
			"few processes", kubelet(func(c *KubeletConfig) { c.PodPIDsLimit = new(int64(99)) }), path + "podPidsLimit",
			"at least 100",
		},
		{
			"one log file", kubelet(func(c *KubeletConfig) { c.ContainerLogMaxFiles = new(int32(1)) }),
			path + "containerLogMaxFiles", "at least 2",
		},
		{
			"negative log file", kubelet(func(c *KubeletConfig) {
				c.ContainerLogMaxSize = new(resource.MustParse("-1"))
			}), path + "containerLogMaxSize", "not be negative",
		},
		{
			"short streams", kubelet(func(c *KubeletConfig) { c.StreamingConnectionIdleTimeout = seconds(1) }),
			path + "streamingConnectionIdleTimeout", "between 30s and 4h0m0s",
		},
		{
			"unknown CPU policy", kubelet(func(c *KubeletConfig) { c.CPUManagerPolicy = new("dynamic") }),
			path + "cpuManagerPolicy", `"static"`,
		},
		{
			"threshold that is none", kubelet(func(c *KubeletConfig) { c.EvictionHard.MemoryAvailable = new("much") }),
			path + "evictionHard.memoryAvailable", "such as 100Mi",
		},
		{
			"threshold over 100 %", kubelet(func(c *KubeletConfig) { c.EvictionHard.NodeFSAvailable = new("101%") }),
			path + "evictionHard.nodeFSAvailable", "percentage",
		},
		{
			"no grace period", kubelet(func(c *KubeletConfig) {
				c.EvictionSoftGracePeriod.MemoryAvailable = seconds(0)
			}), path + "evictionSoftGracePeriod.memoryAvailable", "longer than 0",
		},
		{
			"negative reclaim", kubelet(func(c *KubeletConfig) {
				c.EvictionMinimumReclaim.ImageFSAvailable = new(resource.MustParse("-1"))
			}), path + "evictionMinimumReclaim.imageFSAvailable", "not be negative",
		},
		{
			"negative reservation", kubelet(func(c *KubeletConfig) {
				c.KubeReserved.CPU = new(resource.MustParse("-1"))
			}), path + "kubeReserved.cpu", "not be negative",
		},
		{
			"images collected when young",
			kubelet(func(c *KubeletConfig) { c.ImageMinimumGCAge, c.ImageMaximumGCAge = seconds(60), seconds(30) }),
			path + "imageMaximumGCAge", "longer than imageMinimumGCAge",
		},
		{
			"parallel and serial pulls", kubelet(func(c *KubeletConfig) { c.SerializeImagePulls = new(true) }),
			path + "maxParallelImagePulls", "serializeImagePulls is false",
		},
		{
			"allowlist without its policy",
			kubelet(func(c *KubeletConfig) { c.ImagePullCredentialsVerificationPolicy = new(AlwaysVerify) }),
			path + "preloadedImagesVerificationAllowlist", "NeverVerifyAllowlistedImages",
		},
		{"gate that the pool's version lacks", func(s *Shoot) {
			s.Spec.Provider.Workers[0].Kubernetes.Kubelet.FeatureGates = map[string]bool{"AtomicFIFO": true}
		}, "spec.provider.workers[0].kubernetes.kubelet.featureGates[AtomicFIFO]", "from Kubernetes 1.36 on"},
	}, aShootWithEverything, ValidateShoot)
}

func TestValidateAutoscalers(t *testing.T) {
	const ca, vpa = "spec.kubernetes.clusterAutoscaler.", "spec.kubernetes.verticalPodAutoscaler."
	cluster := func(change func(*ClusterAutoscaler)) func(*Shoot) {
		return func(s *Shoot) { change(s.Spec.Kubernetes.ClusterAutoscaler) }
	}
	vertical := func(change func(*VerticalPodAutoscaler)) func(*Shoot) {
		return func(s *Shoot) { change(s.Spec.Kubernetes.VerticalPodAutoscaler) }
	}
	check(t, []change[*Shoot]{
		{
			"expander twice", cluster(func(c *ClusterAutoscaler) { c.Expander = new(ExpanderMode("random,random")) }),
			ca + "expander", "at most once",
		},
		{
			"too many expanders", cluster(func(c *ClusterAutoscaler) { c.Expander = new(ExpanderMode("a,b,c,d,e,f")) }),
			ca + "expander", "at most once",
		},
		{
			"negative delay", cluster(func(c *ClusterAutoscaler) { c.ScaleDownDelayAfterDelete = seconds(-1) }),
			ca + "scaleDownDelayAfterDelete", "not be negative",
		},
		{
			"over-used nodes", cluster(func(c *ClusterAutoscaler) { c.ScaleDownUtilizationThreshold = new(1.1) }),
			ca + "scaleDownUtilizationThreshold", "between 0 and 1",
		},
		{
			"backoff over its maximum", cluster(func(c *ClusterAutoscaler) {
				c.InitialNodeGroupBackoffDuration = seconds(3600)
			}), ca + "initialNodeGroupBackoffDuration", "at most maxNodeGroupBackoffDuration",
		},
		{
			"taint that is none", cluster(func(c *ClusterAutoscaler) { c.StatusTaints = []string{"a b"} }),
			ca + "statusTaints[0]", "name part",
		},
		{
			"no scale-down", cluster(func(c *ClusterAutoscaler) { c.MaxDrainParallelism = new(int32(0)) }),
			ca + "maxDrainParallelism", "at least 1",
		},
		{
			"percentile over 1", vertical(func(v *VerticalPodAutoscaler) { v.TargetCPUPercentile = new(90.0) }),
			vpa + "targetCPUPercentile", "between 0 and 1",
		},
		{
			"never updates", vertical(func(v *VerticalPodAutoscaler) { v.UpdaterInterval = seconds(0) }),
			vpa + "updaterInterval", "longer than 0",
		},
		{
			"bound of unknown resource", vertical(func(v *VerticalPodAutoscaler) {
				v.MaxAllowed = corev1.ResourceList{"gpu": resource.MustParse("1")}
			}), vpa + "maxAllowed[gpu]", `"cpu"`,
		},
		{"negative tolerance", func(s *Shoot) {
			s.Spec.Kubernetes.KubeControllerManager.HorizontalPodAutoscalerConfig.Tolerance = new(-0.1)
		}, "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler.tolerance", "at least 0"},
	}, aShootWithEverything, ValidateShoot)
}

func TestMaxEmptyBulkDelete(t *testing.T) {
	shoot := aShoot()
	shoot.Spec.Kubernetes.Version = "1.32.1"
	shoot.Spec.Kubernetes.ClusterAutoscaler = &ClusterAutoscaler{
		MaxEmptyBulkDelete: new(int32(5)), MaxScaleDownParallelism: new(int32(6)),
	}
	expectError(t, ValidateShoot(shoot), "spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete",
		"must equal maxScaleDownParallelism (6)")
}

func TestValidateSettings(t *testing.T) {
	const dns = "spec.dns.providers[0]."
	provider := func(change func(*DNSProvider)) func(*Shoot) {
		return func(s *Shoot) { change(&s.Spec.DNS.Providers[0]) }
	}
	worker := func(change func(*Worker)) func(*Shoot) {
		return func(s *Shoot) { change(&s.Spec.Provider.Workers[0]) }
	}
	const pool = "spec.provider.workers[0]."
	check(t, []change[*Shoot]{
		{
			"provider without type", provider(func(p *DNSProvider) { p.Type = nil }), dns + "type",
			"type of the DNS provider",
		},
		{
			"credentials of a wrong kind", provider(func(p *DNSProvider) { p.CredentialsRef.Kind = "ConfigMap" }),
			dns + "credentialsRef", "v1/Secret",
		},
		{
			"credentials of nobody", provider(func(p *DNSProvider) { p.CredentialsRef.Name = "" }),
			dns + "credentialsRef.name", "credentials",
		},
		{
			"credentials for nothing", provider(func(p *DNSProvider) { p.Type = new(DNSUnmanaged) }),
			dns + "credentialsRef", "others care for",
		},
		{
			"no domain for the provider", func(s *Shoot) { s.Spec.DNS.Domain = nil }, "spec.dns.domain",
			"providers serve",
		},
		{
			"receiver that is none", func(s *Shoot) {
				s.Spec.Monitoring.Alerting.EmailReceivers = []string{"Alice <alice@example.com>"}
			}, "spec.monitoring.alerting.emailReceivers[0]", "alice@example.com",
		},
		{
			"suffix of one label", func(s *Shoot) {
				s.Spec.SystemComponents.CoreDNS.Rewriting.CommonSuffixes = []string{"com"}
			}, "spec.systemComponents.coreDNS.rewriting.commonSuffixes[0]", "two labels",
		},
		{"many suffixes", func(s *Shoot) {
			s.Spec.SystemComponents.CoreDNS.Rewriting.CommonSuffixes = []string{
				"a.b", "a.c", "a.d", "a.e", "a.f", "a.g",
			}
		}, "spec.systemComponents.coreDNS.rewriting.commonSuffixes", "at most 5"},
		{
			"zone of the control plane twice", func(s *Shoot) { s.Spec.ControlPlane.Zones = []string{"a", "a"} },
			"spec.controlPlane.zones[1]", "Duplicate",
		},
		{"failure of a node", func(s *Shoot) {
			s.Spec.ControlPlane.HighAvailability = &HighAvailability{
				FailureTolerance: FailureTolerance{Type: FailureToleranceTypeNode},
			}
		}, "", ""},
		{"failures that are not known", func(s *Shoot) {
			s.Spec.ControlPlane.HighAvailability = &HighAvailability{
				FailureTolerance: FailureTolerance{Type: "region"},
			}
		}, "spec.controlPlane.highAvailability.failureTolerance.type", `supported values: "node", "zone"`},
		{"failures of nothing", func(s *Shoot) {
			s.Spec.ControlPlane.HighAvailability = &HighAvailability{}
		}, "spec.controlPlane.highAvailability.failureTolerance.type", `supported values: "node", "zone"`},
		{
			"limit of volumes", func(s *Shoot) { s.Spec.Kubernetes.KubeScheduler.KubeMaxPDVols = new("20") },
			"spec.kubernetes.kubeScheduler.kubeMaxPDVols", "CSI driver",
		},
		{
			"eviction of pods", func(s *Shoot) {
				s.Spec.Kubernetes.KubeControllerManager.PodEvictionTimeout = seconds(60)
			}, "spec.kubernetes.kubeControllerManager.podEvictionTimeout", "defaultNotReadyTolerationSeconds",
		},
		{"long cron expression", func(s *Shoot) {
			s.Spec.Hibernation.Schedules[0].Start = new("0 0 * * 1" + string(make([]byte, maxCronLength)))
		}, "spec.hibernation.schedules[0].start", "Too long"},
		{
			"time zone that is none", func(s *Shoot) { s.Spec.Hibernation.Schedules[0].Location = new("Mars/Olympus") },
			"spec.hibernation.schedules[0].location", "Europe/Berlin",
		},
		{
			"time zone of whatever machine", func(s *Shoot) { s.Spec.Hibernation.Schedules[0].Location = new("Local") },
			"spec.hibernation.schedules[0].location", "Europe/Berlin",
		},
		{"same schedule twice", func(s *Shoot) {
			s.Spec.Hibernation.Schedules = append(s.Spec.Hibernation.Schedules, s.Spec.Hibernation.Schedules[0])
		}, "spec.hibernation.schedules[1]", `start \"0 20`},
		{
			"certificates that are none", worker(func(w *Worker) { w.CABundle = new("trust me") }), pool + "caBundle",
			"PEM",
		},
		{
			"kernel setting of two lines", worker(func(w *Worker) { w.Sysctls = map[string]string{"a": "1\nb=2"} }),
			pool + "sysctls[a]", "one line",
		},
		{
			"more missing than there are",
			worker(func(w *Worker) { w.MaxUnavailable.StrVal, w.MaxUnavailable.Type = "150%", 1 }),
			pool + "maxUnavailable", "at most 100%",
		},
		{
			"condition twice", worker(func(w *Worker) {
				w.MachineControllerManager.NodeConditions = []string{"a", "a"}
			}), pool + "machineControllerManager.nodeConditions[1]", "Duplicate",
		},
		{"low priority", worker(func(w *Worker) { w.Priority = new(int32(-2)) }), pool + "priority", "at least -1"},
		{
			"exposed in no way", worker(func(w *Worker) {
				w.ControlPlane = &WorkerControlPlane{Exposure: &Exposure{}}
			}), pool + "controlPlane.exposure", "exactly one",
		},
		{"addons for production", func(s *Shoot) {
			s.Spec.Kubernetes.Version, s.Spec.Provider.Workers[0].Kubernetes = "1.34.1", nil
			s.Spec.Kubernetes.KubeAPIServer.FeatureGates = nil
			s.Spec.Purpose, s.Spec.Addons = new(ShootPurposeProduction),
				&Addons{NginxIngress: &NginxIngress{Addon: Addon{Enabled: true}}}
		}, "spec.addons", "only possible for purpose evaluation"},
	}, aShootWithEverything, ValidateShoot)
}

func TestTooManyWorkers(t *testing.T) {
	shoot := aShoot()
	for range MaxWorkers {
		shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, shoot.Spec.Provider.Workers[0])
	}
	expectError(t, ValidateShoot(shoot), "spec.provider.workers", "at most 200")
	expectError(t, DefaultShootFromCloudProfile(shoot, nil, &aProfile().Spec, time.Unix(0, 0)), "spec.provider.workers",
		"at most 200")
}

func TestValidateWorkerlessSettings(t *testing.T) {
	check(t, []change[*Shoot]{
		{
			"image updates", func(s *Shoot) { s.Spec.Maintenance.AutoUpdate.MachineImageVersion = new(true) },
			"spec.maintenance.autoUpdate.machineImageVersion", "without workers",
		},
		{"autoscaling of pods", func(s *Shoot) {
			s.Spec.Kubernetes.KubeControllerManager = &KubeControllerManagerConfig{
				HorizontalPodAutoscalerConfig: &HorizontalPodAutoscalerConfig{},
			}
		}, "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler", "without workers"},
		{
			"infrastructure", func(s *Shoot) { s.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{} },
			"spec.provider.infrastructureConfig", "without workers",
		},
		{
			"addons", func(s *Shoot) { s.Spec.Kubernetes.Version, s.Spec.Addons = "1.34.1", &Addons{} }, "spec.addons",
			"without workers",
		},
	}, aWorkerlessShoot, ValidateShoot)
}
