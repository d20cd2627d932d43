package v1beta1

import (
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestNotOfferedToShoots(t *testing.T) {
	const pool = "spec.provider.workers[0]."
	worker := func(change func(*Worker)) func(*Shoot) {
		return func(s *Shoot) { change(&s.Spec.Provider.Workers[0]) }
	}
	addons := func(addons Addons) func(*Shoot) {
		return func(s *Shoot) { s.Spec.Kubernetes.Version, s.Spec.Addons = "1.34.1", &addons }
	}
	dns := func(providers ...DNSProvider) func(*Shoot) {
		return func(s *Shoot) { s.Spec.DNS = &DNS{Domain: new("example.com"), Providers: providers} }
	}
	local := DNSProvider{Type: new("local"), Primary: new(true)}
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{
			"dashboard", addons(Addons{KubernetesDashboard: &KubernetesDashboard{Addon: Addon{Enabled: true}}}),
			"spec.addons.kubernetesDashboard.enabled", "install the chart kubernetes-dashboard with Helm",
		},
		{
			"ingress", addons(Addons{NginxIngress: &NginxIngress{Addon: Addon{Enabled: true}}}),
			"spec.addons.nginxIngress.enabled", "install the chart ingress-nginx",
		},
		{
			"no addons", addons(Addons{KubernetesDashboard: &KubernetesDashboard{}, NginxIngress: &NginxIngress{}}), "",
			"",
		},
		{"alerts", func(s *Shoot) {
			s.Spec.Monitoring = &Monitoring{Alerting: &Alerting{EmailReceivers: []string{"a@example.com"}}}
		}, "spec.monitoring.alerting.emailReceivers", "not offered"},
		{"no alerts", func(s *Shoot) { s.Spec.Monitoring = &Monitoring{Alerting: &Alerting{}} }, "", ""},
		{"monitoring's passwords", func(s *Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials.Observability = &MaintenanceRotationConfig{
				RotationPeriod: &metav1.Duration{Duration: time.Hour},
			}
		}, "spec.maintenance.autoRotation.credentials.observability.rotationPeriod", "leave it out"},
		{"monitoring's passwords, as others default them", func(s *Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials.Observability = &MaintenanceRotationConfig{
				RotationPeriod: &metav1.Duration{Duration: DefaultRotationPeriod},
			}
		}, "", ""},
		{"one provider", dns(local), "", ""},
		{
			"domains", dns(DNSProvider{Type: new("local"), Domains: &DNSIncludeExclude{Include: []string{"a.b"}}}),
			"spec.dns.providers[0].domains", "spec.dns.domain only",
		},
		{
			"zones", dns(DNSProvider{Type: new("local"), Zones: &DNSIncludeExclude{Exclude: []string{"a"}}}),
			"spec.dns.providers[0].zones", "finds the hosted zone",
		},
		{
			"empty sets", dns(DNSProvider{
				Type: new("local"), Domains: &DNSIncludeExclude{}, Zones: &DNSIncludeExclude{},
			}), "", "",
		},
		{
			"second provider", dns(local, DNSProvider{Type: new("other"), Primary: new(false)}),
			"spec.dns.providers[1].primary", "remove this provider",
		},
		{
			"workload identity", dns(DNSProvider{Type: new("local"),
				CredentialsRef: &autoscalingv1.CrossVersionObjectReference{
					APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: "a",
				}}), "", "",
		},
		{
			"two families", func(s *Shoot) { s.Spec.Networking.IPFamilies = []IPFamily{IPFamilyIPv4, IPFamilyIPv6} },
			"spec.networking.ipFamilies", "IPv4",
		},
		{
			"cache on nodes", func(s *Shoot) { s.Spec.SystemComponents.NodeLocalDNS = &NodeLocalDNS{Enabled: true} },
			"spec.systemComponents.nodeLocalDNS.enabled", "with Helm",
		},
		{
			"DNS that scales by usage", func(s *Shoot) {
				s.Spec.SystemComponents.CoreDNS.Autoscaling.Mode = CoreDNSAutoscalingModeHorizontal
			}, "spec.systemComponents.coreDNS.autoscaling.mode", "use cluster-proportional",
		},
		{
			"vertical autoscaler", func(s *Shoot) {
				s.Spec.Kubernetes.VerticalPodAutoscaler = &VerticalPodAutoscaler{Enabled: true}
			}, "spec.kubernetes.verticalPodAutoscaler.enabled", "without a vertical pod autoscaler",
		},
		{
			"no vertical autoscaler", func(s *Shoot) {
				s.Spec.Kubernetes.VerticalPodAutoscaler = &VerticalPodAutoscaler{}
			}, "", "",
		},
		{"no cache on nodes", func(s *Shoot) { s.Spec.SystemComponents.NodeLocalDNS = &NodeLocalDNS{} }, "", ""},
		{
			"self-hosted", worker(func(w *Worker) { w.ControlPlane = &WorkerControlPlane{} }), pool + "controlPlane",
			"run in seeds",
		},
		{"in place", worker(func(w *Worker) { w.UpdateStrategy = new(AutoInPlaceUpdate) }), "", ""},
		{"in place by hand", worker(func(w *Worker) {
			w.UpdateStrategy, w.MaxSurge, w.MaxUnavailable = new(ManualInPlaceUpdate), nil, nil
		}), "", ""},
		{"time for updates in place, in place", worker(func(w *Worker) {
			w.UpdateStrategy = new(AutoInPlaceUpdate)
			w.MachineControllerManager = &MachineControllerManagerSettings{
				InPlaceUpdateTimeout: &metav1.Duration{Duration: 1},
			}
		}), "", ""},
		{
			"rolling", worker(func(w *Worker) {
				w.UpdateStrategy, w.MaxSurge = new(AutoRollingUpdate), new(intstr.FromInt32(2))
			}), "", "",
		},
		{"time for updates in place", worker(func(w *Worker) {
			w.MachineControllerManager = &MachineControllerManagerSettings{
				InPlaceUpdateTimeout: &metav1.Duration{Duration: 1},
			}
		}), pool + "machineControllerManager.inPlaceUpdateTimeout", "leave it out"},
		{"volume of the kubelet", worker(func(w *Worker) {
			w.Volume, w.DataVolumes, w.KubeletDataVolumeName = &Volume{VolumeSize: "50Gi"},
				[]DataVolume{{Name: "data", VolumeSize: "1Gi"}}, new("data")
		}), pool + "kubeletDataVolumeName", "volume.size larger"},
	}, aShoot, ValidateNewShoot)
}

func TestNotOfferedToSeeds(t *testing.T) {
	settings := func(change func(*SeedSettings)) func(*Seed) {
		return func(s *Seed) { change(s.Spec.Settings) }
	}
	const balancer = "spec.settings.loadBalancerServices."
	check(t, []change[*Seed]{
		{"with its defaults", func(*Seed) {}, "", ""},
		{
			"annotations", settings(func(s *SeedSettings) {
				s.LoadBalancerServices.Annotations = map[string]string{"a": "b"}
			}), balancer + "annotations", "gateway",
		},
		{"traffic policy", settings(func(s *SeedSettings) {
			*s.LoadBalancerServices.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}), balancer + "externalTrafficPolicy", "gateway"},
		{"zones", settings(func(s *SeedSettings) {
			s.LoadBalancerServices.Zones = []SeedSettingLoadBalancerServicesZones{{Name: "a"}}
		}), balancer + "zones", "gateway"},
		{"PROXY protocol", settings(func(s *SeedSettings) {
			s.LoadBalancerServices.ProxyProtocol = &LoadBalancerServicesProxyProtocol{Allowed: true}
		}), balancer + "proxyProtocol.allowed", "gateway"},
		{"zonal ingress", settings(func(s *SeedSettings) {
			s.LoadBalancerServices.ZonalIngress = &SeedSettingLoadBalancerServicesZonalIngress{Enabled: new(true)}
		}), balancer + "zonalIngress.enabled", "one gateway"},
		{
			"class", settings(func(s *SeedSettings) { s.LoadBalancerServices.Class = new("a") }), balancer + "class",
			"gateway",
		},
		{
			"autoscaler", settings(func(s *SeedSettings) { s.VerticalPodAutoscaler.Enabled = true }),
			"spec.settings.verticalPodAutoscaler.enabled", "set it to false",
		},
		{
			"gates of the autoscaler", settings(func(s *SeedSettings) {
				s.VerticalPodAutoscaler.FeatureGates = map[string]bool{"a": true}
			}), "spec.settings.verticalPodAutoscaler.featureGates", "leave it out",
		},
		{"bounds of the autoscaler", settings(func(s *SeedSettings) {
			s.VerticalPodAutoscaler.MaxAllowed = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), "spec.settings.verticalPodAutoscaler.maxAllowed", "leave it out"},
		{
			"growing volumes", settings(func(s *SeedSettings) { s.PersistentVolumeClaimAutoscaler.Enabled = true }),
			"spec.settings.persistentVolumeClaimAutoscaler.enabled", "spec.volume.minimumSize",
		},
		{"volume providers", func(s *Seed) {
			s.Spec.Volume = &SeedVolume{Providers: []SeedVolumeProvider{{Purpose: "etcd-main", Name: "fast"}}}
		}, "spec.volume.providers", "default one"},
		{"a store for backups", backedUp("Secret", "v1"), "", ""},
		{
			"a store with tokens", backedUp("WorkloadIdentity", "security.gardener.cloud/v1alpha1"),
			"spec.backup.credentialsRef", "refer to a Secret",
		},
		{
			"settings of the ingress controller",
			func(s *Seed) { s.Spec.Ingress.Controller.ProviderConfig = &runtime.RawExtension{Raw: []byte("{}")} },
			"spec.ingress.controller.providerConfig", "gateway",
		},
	}, func() *Seed {
		seed := aSeed()
		SetDefaultsSeed(seed)
		return seed
	}, ValidateNewSeed)
}

// backedUp is a seed with an object store, and credentials of a kind for it.
func backedUp(kind, apiVersion string) func(*Seed) {
	return func(s *Seed) {
		s.Spec.Backup = &Backup{
			Provider: "store", Region: new("moon"), CredentialsRef: &corev1.ObjectReference{
				APIVersion: apiVersion, Kind: kind, Namespace: "garden", Name: "backup",
			},
		}
	}
}

// What was accepted once can be kept while other things change, and is refused when it comes anew.
func TestWhatIsNotOfferedAnyMoreStays(t *testing.T) {
	old := stored(aShoot)()
	old.Spec.SystemComponents.NodeLocalDNS = &NodeLocalDNS{Enabled: true}
	shoot := old.DeepCopy()
	shoot.Spec.Provider.Workers[0].Maximum = 9
	expectError(t, ValidateShootUpdate(shoot, old), "", "")
	shoot.Spec.Provider.Workers[0].KubeletDataVolumeName = new("data")
	shoot.Spec.Provider.Workers[0].Volume, shoot.Spec.Provider.Workers[0].DataVolumes = &Volume{VolumeSize: "5Gi"},
		[]DataVolume{{Name: "data", VolumeSize: "1Gi"}}
	expectError(t, ValidateShootUpdate(shoot, old), "spec.provider.workers[0].kubeletDataVolumeName", "not offered")
	plain := stored(aShoot)()
	expectError(t, ValidateShootUpdate(old, plain), "spec.systemComponents.nodeLocalDNS.enabled", "not offered")

	seed := stored(aSeed)()
	seed.Spec.Settings = &SeedSettings{VerticalPodAutoscaler: &SeedSettingVerticalPodAutoscaler{Enabled: true}}
	changed := seed.DeepCopy()
	changed.Spec.Networks.BlockCIDRs = []string{"169.254.169.254/32"}
	expectError(t, ValidateSeedUpdate(changed, seed), "", "")
	expectError(t, ValidateSeedUpdate(changed, stored(aSeed)()), "spec.settings.verticalPodAutoscaler.enabled",
		"not offered")
}
