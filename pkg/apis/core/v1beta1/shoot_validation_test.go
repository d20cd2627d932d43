package v1beta1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidateShoot(t *testing.T) {
	const worker = "spec.provider.workers[0]"
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{
			"name too long for any project", func(s *Shoot) { s.Name = "abcdefghijklmnopqrstu" }, "metadata.name",
			"at most 21 characters together",
		},
		{"name with two dashes", func(s *Shoot) { s.Name = "a--b" }, "metadata.name", `must not contain "--"`},
		{"name with a dot", func(s *Shoot) { s.Name = "a.b" }, "metadata.name", "must not contain dots"},
		{"no cloud profile", func(s *Shoot) { s.Spec.CloudProfile = nil }, "spec.cloudProfile", "kind: CloudProfile"},
		{
			"cloud profile of unknown kind", func(s *Shoot) { s.Spec.CloudProfile.Kind = "Profile" },
			"spec.cloudProfile.kind", `"NamespacedCloudProfile"`,
		},
		{"no region", func(s *Shoot) { s.Spec.Region = "" }, "spec.region", "name a region"},
		{
			"no provider", func(s *Shoot) { s.Spec.Provider.Type = "" }, "spec.provider.type",
			"type of the infrastructure",
		},
		{
			"unknown purpose", func(s *Shoot) { s.Spec.Purpose = new(ShootPurpose("fun")) }, "spec.purpose",
			`"evaluation"`,
		},
		{
			"purpose of operators", func(s *Shoot) { s.Spec.Purpose = new(ShootPurposeInfrastructure) }, "spec.purpose",
			`"evaluation"`,
		},
		{
			"no credentials", func(s *Shoot) { s.Spec.CredentialsBindingName = nil }, "spec.credentialsBindingName",
			"CredentialsBinding",
		},
		{
			"domain that is none", func(s *Shoot) { s.Spec.DNS = &DNS{Domain: new("UPPER")} }, "spec.dns.domain",
			"lower case",
		},

		{
			"version that is none", func(s *Shoot) { s.Spec.Kubernetes.Version = "latest" }, "spec.kubernetes.version",
			"such as 1.36.3",
		},
		{"version in part, for the profile to complete", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.36" }, "", ""},
		{"SecretBinding with a new version", func(s *Shoot) {
			s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = new("local"), nil
		}, "spec.secretBindingName", "use credentialsBindingName"},
		{"SecretBinding with an old version", func(s *Shoot) {
			s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = new("local"), nil
			s.Spec.Kubernetes.Version = "1.33.1"
		}, "", ""},

		{"no networking", func(s *Shoot) { s.Spec.Networking = nil }, "spec.networking", "such as flannel"},
		{
			"no network plugin", func(s *Shoot) { s.Spec.Networking.Type = nil }, "spec.networking.type",
			"such as flannel",
		},
		{
			"no ranges, for the seed to set",
			func(s *Shoot) { s.Spec.Networking.Pods, s.Spec.Networking.Services = nil, nil }, "", "",
		},
		{
			"range that is none", func(s *Shoot) { s.Spec.Networking.Pods = new("10.3.0.0") }, "spec.networking.pods",
			"CIDR notation",
		},
		{
			"range that begins in the middle", func(s *Shoot) { s.Spec.Networking.Pods = new("10.3.1.0/16") },
			"spec.networking.pods", "10.3.0.0/16",
		},
		{
			"services in pods", func(s *Shoot) { s.Spec.Networking.Services = new("10.3.128.0/17") },
			"spec.networking.services", "overlaps with spec.networking.pods (10.3.0.0/16)",
		},
		{
			"pods over nodes", func(s *Shoot) { s.Spec.Networking.Pods = new("10.180.0.0/16") }, "spec.networking.pods",
			"overlaps with spec.networking.nodes",
		},
		{
			"nodes in the range of the VPN", func(s *Shoot) { s.Spec.Networking.Nodes = new("192.168.0.0/16") },
			"spec.networking.nodes", ReservedVPNRange,
		},
		{
			"too many services", func(s *Shoot) { s.Spec.Networking.Services = new("11.0.0.0/8") },
			"spec.networking.services", "between 12 and 28",
		},
		{
			"IPv6 range in an IPv4 cluster", func(s *Shoot) { s.Spec.Networking.Nodes = new("fd00::/64") },
			"spec.networking.nodes", "IPv4",
		},
		{
			"node ranges too small for the pods",
			func(s *Shoot) { s.Spec.Kubernetes.Kubelet.MaxPods = new(int32(500)) },
			"spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", "at most 23 for 500 pods",
		},
		{
			"node ranges larger than that of pods",
			func(s *Shoot) { s.Spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize = new(int32(12)) },
			"spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", "between 16 and 32",
		},

		{
			"minimum over maximum", func(s *Shoot) { s.Spec.Provider.Workers[0].Minimum = 4 }, worker + ".maximum",
			"at least minimum (4)",
		},
		{
			"negative minimum", func(s *Shoot) { s.Spec.Provider.Workers[0].Minimum = -1 }, worker + ".minimum",
			"at least 0",
		},
		{
			"long name of a pool", func(s *Shoot) { s.Spec.Provider.Workers[0].Name = "sixteen-letters-" + "x" },
			worker + ".name", "15",
		},
		{
			"same name twice", func(s *Shoot) {
				s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, s.Spec.Provider.Workers[0])
			}, "spec.provider.workers[1].name", "Duplicate",
		},
		{
			"no machine type", func(s *Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "" },
			worker + ".machine.type", "cloud profile",
		},
		{
			"nothing can be replaced", func(s *Shoot) {
				s.Spec.Provider.Workers[0].MaxSurge = new(intstr.FromString("0%"))
			}, worker + ".maxUnavailable", "must not be 0",
		},
		{
			"percentage that is none", func(s *Shoot) {
				s.Spec.Provider.Workers[0].MaxSurge = new(intstr.FromString("half"))
			}, worker + ".maxSurge", "percent",
		},
		{
			"volume without unit", func(s *Shoot) { s.Spec.Provider.Workers[0].Volume = &Volume{VolumeSize: "50"} },
			worker + ".volume.size", "50Gi",
		},
		{"data volume alone", func(s *Shoot) {
			s.Spec.Provider.Workers[0].DataVolumes = []DataVolume{{Name: "data", VolumeSize: "1Gi"}}
		}, worker + ".volume", "root volume"},
		{
			"unknown kubelet volume", func(s *Shoot) { s.Spec.Provider.Workers[0].KubeletDataVolumeName = new("data") },
			worker + ".kubeletDataVolumeName", "Unsupported",
		},
		{
			"reserved label", func(s *Shoot) {
				s.Spec.Provider.Workers[0].Labels = map[string]string{LabelWorkerPool: "x"}
			}, worker + ".labels[worker.gardener.cloud/pool]", "choose another key",
		},
		{
			"taint without effect", func(s *Shoot) { s.Spec.Provider.Workers[0].Taints = []corev1.Taint{{Key: "a"}} },
			worker + ".taints[0].effect", `"NoExecute"`,
		},
		{
			"kubelet newer than control plane",
			func(s *Shoot) { s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.37.0")} },
			worker + ".kubernetes.version", "not be newer",
		},
		{
			"kubelet too old", func(s *Shoot) {
				s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.32.0")}
			}, worker + ".kubernetes.version", "at most 3 minor versions older",
		},
		{
			"kubelet three minors older", func(s *Shoot) {
				s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.33.0")}
			}, "", "",
		},
		{
			"no room for system components",
			func(s *Shoot) { s.Spec.Provider.Workers[0].SystemComponents.Allow = false }, "spec.provider.workers",
			"systemComponents.allow",
		},
		{
			"more zones than machines", func(s *Shoot) {
				s.Spec.Provider.Workers[0].Zones = []string{"a", "b", "c", "d"}
			}, worker + ".maximum", "number of zones (4)",
		},

		{
			"short maintenance", func(s *Shoot) {
				s.Spec.Maintenance.TimeWindow.End = s.Spec.Maintenance.TimeWindow.Begin
			}, "spec.maintenance.timeWindow", "between 30m0s and 6h0m0s",
		},
		{
			"maintenance at no time", func(s *Shoot) { s.Spec.Maintenance.TimeWindow.Begin = "22:00" },
			"spec.maintenance.timeWindow.begin", "220000+0100",
		},
		{"maintenance over midnight", func(s *Shoot) {
			s.Spec.Maintenance.TimeWindow = &MaintenanceTimeWindow{Begin: "233000+0100", End: "003000+0100"}
		}, "", ""},
		{"rotation every minute", func(s *Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials.SSHKeypair.RotationPeriod = &metav1.Duration{
				Duration: time.Minute,
			}
		}, "spec.maintenance.autoRotation.credentials.sshKeypair.rotationPeriod", "between 30m0s"},
		{
			"hibernation schedule without times",
			func(s *Shoot) { s.Spec.Hibernation = &Hibernation{Schedules: []HibernationSchedule{{}}} },
			"spec.hibernation.schedules[0]", "start or end",
		},
		{"hibernation on weekdays", func(s *Shoot) {
			s.Spec.Hibernation = &Hibernation{
				Schedules: []HibernationSchedule{
					{Start: new("0 20 * * Mon-Fri"), End: new("*/15 6,7 * * 1-5"), Location: new("UTC")},
				},
			}
		}, "", ""},
		{"hibernation at 25 o'clock", func(s *Shoot) {
			s.Spec.Hibernation = &Hibernation{Schedules: []HibernationSchedule{{Start: new("0 25 * * *")}}}
		}, "spec.hibernation.schedules[0].start", "above maximum (23)"},
		{"hibernation with six fields", func(s *Shoot) {
			s.Spec.Hibernation = &Hibernation{Schedules: []HibernationSchedule{{Start: new("0 0 25 * * *")}}}
		}, "spec.hibernation.schedules[0].start", "five fields"},

		{
			"too many requests", func(s *Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.Requests.MaxMutatingInflight = new(int32(2501))
			}, "spec.kubernetes.kubeAPIServer.requests.maxMutatingInflight", "between 0 and 2500",
		},
		{
			"events for two days", func(s *Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.EventTTL = &metav1.Duration{Duration: 48 * time.Hour}
			}, "spec.kubernetes.kubeAPIServer.eventTTL", "24h0m0s",
		},
		{"plain issuer", func(s *Shoot) {
			s.Spec.Kubernetes.KubeAPIServer.ServiceAccountConfig = &ServiceAccountConfig{Issuer: new("http://a")}
		}, "spec.kubernetes.kubeAPIServer.serviceAccountConfig.issuer", "https"},
		{
			"secrets encrypted twice", func(s *Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = []string{"secrets"}
			}, "spec.kubernetes.kubeAPIServer.encryptionConfig.resources[0]", "always encrypted",
		},
		{
			"images collected upside down",
			func(s *Shoot) { s.Spec.Kubernetes.Kubelet.ImageGCLowThresholdPercent = new(int32(60)) },
			"spec.kubernetes.kubelet.imageGCLowThresholdPercent", "below imageGCHighThresholdPercent (50)",
		},
		{
			"swap without permission", func(s *Shoot) {
				s.Spec.Kubernetes.Kubelet.MemorySwap = &MemorySwapConfiguration{}
			}, "spec.kubernetes.kubelet.memorySwap", "failSwapOn is false",
		},
		{
			"unknown proxy mode", func(s *Shoot) { s.Spec.Kubernetes.KubeProxy.Mode = new(ProxyMode("iptables")) },
			"spec.kubernetes.kubeProxy.mode", `"IPTables"`,
		},
		{"unknown expander", func(s *Shoot) {
			s.Spec.Kubernetes.ClusterAutoscaler = &ClusterAutoscaler{Expander: new(ExpanderMode("priority,cheap"))}
		}, "spec.kubernetes.clusterAutoscaler.expander", `"cheap"`},
	}, aShoot, ValidateShoot)
}

func TestValidateWorkerlessShoot(t *testing.T) {
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{"services", func(s *Shoot) { s.Spec.Networking.Services = new("10.4.0.0/16") }, "", ""},
		{
			"pods", func(s *Shoot) { s.Spec.Networking.Pods = new("10.3.0.0/16") }, "spec.networking.pods",
			"without workers",
		},
		{
			"network plugin", func(s *Shoot) { s.Spec.Networking.Type = new("flannel") }, "spec.networking.type",
			"without workers",
		},
		{
			"kubelet", func(s *Shoot) { s.Spec.Kubernetes.Kubelet = &KubeletConfig{} }, "spec.kubernetes.kubelet",
			"without workers",
		},
		{
			"credentials", func(s *Shoot) { s.Spec.CredentialsBindingName = new("local") },
			"spec.credentialsBindingName", "without workers",
		},
		{
			"the same extension twice", func(s *Shoot) {
				s.Spec.Extensions = append(s.Spec.Extensions, s.Spec.Extensions...)
			}, "spec.extensions[1].type", "Duplicate",
		},
	}, aWorkerlessShoot, ValidateShoot)
}

func TestValidateShootUpdate(t *testing.T) {
	old := func() *Shoot {
		shoot := aShoot()
		shoot.ResourceVersion = "1"
		shoot.Spec.SeedName = new("local")
		shoot.Spec.DNS = &DNS{Domain: new("member1.demo.local.trellis.garden")}
		return shoot
	}
	check(t, []change[*Shoot]{
		{"nothing", func(*Shoot) {}, "", ""},
		{"more machines", func(s *Shoot) { s.Spec.Provider.Workers[0].Maximum = 5 }, "", ""},
		{"another pool", func(s *Shoot) {
			worker := s.Spec.Provider.Workers[0].DeepCopy()
			worker.Name = "other"
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, *worker)
		}, "", ""},
		{"another region", func(s *Shoot) { s.Spec.Region = "other" }, "spec.region", `it was "local"`},
		{"another provider", func(s *Shoot) { s.Spec.Provider.Type = "aws" }, "spec.provider.type", `it was "local"`},
		{
			"other pods", func(s *Shoot) { s.Spec.Networking.Pods = new("10.5.0.0/16") }, "spec.networking.pods",
			`it was "10.3.0.0/16"`,
		},
		{
			"no services", func(s *Shoot) { s.Spec.Networking.Services = nil }, "spec.networking.services",
			`it was "10.4.0.0/16"`,
		},
		{
			"another network plugin", func(s *Shoot) { s.Spec.Networking.Type = new("calico") }, "spec.networking.type",
			`it was "flannel"`,
		},
		{"another domain", func(s *Shoot) { s.Spec.DNS.Domain = new("example.com") }, "spec.dns.domain", "it was"},
		{"another seed", func(s *Shoot) { s.Spec.SeedName = new("other") }, "spec.seedName", "shoots/binding"},
		{"no credentials", func(s *Shoot) { s.Spec.CredentialsBindingName = new("other") }, "", ""},
		{"newer patch", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.36.4" }, "", ""},
		{"next minor", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.37.0" }, "", ""},
		{
			"minor skipped", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.38.0" }, "spec.kubernetes.version",
			"skips minor versions",
		},
		{
			"downgrade", func(s *Shoot) { s.Spec.Kubernetes.Version = "1.36.2" }, "spec.kubernetes.version",
			"it was 1.36.3",
		},
		{"anything while it is deleted", func(s *Shoot) {
			s.DeletionTimestamp, s.Spec.Region = &metav1.Time{Time: time.Unix(1, 0)}, "other"
		}, "spec", "being deleted"},
		{
			"nothing while it is deleted", func(s *Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			"", "",
		},
	}, old, func(s *Shoot) field.ErrorList {
		before := old()
		before.DeletionTimestamp = s.DeletionTimestamp
		return ValidateShootUpdate(s, before)
	})
}

// An object that was accepted once can always get annotations and lose finalizers, also when rules have become
// stricter.
func TestValidateShootUpdateOfMetadata(t *testing.T) {
	old := aShoot()
	old.ResourceVersion = "1"
	old.Spec.Region = "" // would be refused today
	shoot := old.DeepCopy()
	shoot.Annotations = map[string]string{GardenerOperation: GardenerOperationReconcile}
	expectError(t, ValidateShootUpdate(shoot, old), "", "")
}

func TestValidateShootBindingUpdate(t *testing.T) {
	old := aShoot()
	old.ResourceVersion = "1"
	shoot := old.DeepCopy()
	shoot.Spec.SeedName = new("local")
	expectError(t, ValidateShootBindingUpdate(shoot, old), "", "")
	expectError(t, ValidateShootBindingUpdate(old, shoot), "spec.seedName", "name the seed")

	other := shoot.DeepCopy()
	other.Spec.SeedName = new("other")
	expectError(t, ValidateShootBindingUpdate(other, shoot), "spec.seedName", "never created")
	shoot.Status.TechnicalID, shoot.Status.LastOperation = "shoot--demo--one", &LastOperation{
		Type: LastOperationTypeCreate, State: LastOperationStateProcessing,
	}
	expectError(t, ValidateShootBindingUpdate(other, shoot), "spec.seedName", "never created")
	shoot.Status.LastOperation.State = LastOperationStateSucceeded
	expectError(t, ValidateShootBindingUpdate(other, shoot), "", "")
	shoot.DeletionTimestamp = &metav1.Time{}
	other.DeletionTimestamp = shoot.DeletionTimestamp
	expectError(t, ValidateShootBindingUpdate(other, shoot), "spec", "being deleted")
}

func TestValidateShootStatusUpdate(t *testing.T) {
	old := aShoot()
	shoot := old.DeepCopy()
	shoot.Status.TechnicalID, shoot.Status.UID = "shoot--demo--member1", "1"
	expectError(t, ValidateShootStatusUpdate(shoot, old), "", "")
	expectError(t, ValidateShootStatusUpdate(&Shoot{Status: ShootStatus{UID: "1", TechnicalID: "other"}}, shoot),
		"status.technicalID", "it was")
}
