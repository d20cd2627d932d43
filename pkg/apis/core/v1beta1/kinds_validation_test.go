package v1beta1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateSeedSettings(t *testing.T) {
	settings := func(change func(*SeedSettings)) func(*Seed) {
		return func(s *Seed) {
			SetDefaultsSeed(s)
			change(s.Spec.Settings)
		}
	}
	const balancer = "spec.settings.loadBalancerServices."
	check(t, []change[*Seed]{
		{"no ingress", func(s *Seed) { s.Spec.Ingress = nil }, "spec.ingress", "controller: {kind: nginx}"},
		{
			"zone without name", func(s *Seed) { s.Spec.Provider.Zones = []string{""} }, "spec.provider.zones[0]",
			"name a zone",
		},
		{"IPv6 pods in an IPv4 seed", func(s *Seed) {
			s.Spec.Networks.IPFamilies, s.Spec.Networks.Pods = []IPFamily{IPFamilyIPv4}, "fd00::/48"
		}, "spec.networks.pods", "IPv4"},
		{
			"blocked twice", func(s *Seed) {
				s.Spec.Networks.BlockCIDRs = []string{"169.254.169.254/32", "169.254.169.254/32"}
			}, "spec.networks.blockCIDRs[1]", "Duplicate",
		},
		{"DNS credentials of a wrong kind", func(s *Seed) {
			s.Spec.DNS.Provider = &SeedDNSProvider{
				Type: "local", CredentialsRef: &corev1.ObjectReference{Kind: "Pod", Name: "a", Namespace: "b"},
			}
		}, "spec.dns.provider.credentialsRef", "v1/Secret"},
		{
			"negative volumes", func(s *Seed) {
				s.Spec.Volume = &SeedVolume{MinimumSize: new(resource.MustParse("-1"))}
			}, "spec.volume.minimumSize", "not be negative",
		},
		{
			"provisioner without name", func(s *Seed) {
				s.Spec.Volume = &SeedVolume{Providers: []SeedVolumeProvider{{Purpose: "etcd-main"}}}
			}, "spec.volume.providers[0].name", "provisioner",
		},
		{
			"nothing kept free", settings(func(s *SeedSettings) {
				s.ExcessCapacityReservation.Configs[0].Resources = nil
			}), "spec.settings.excessCapacityReservation.configs[0].resources", "how much",
		},
		{
			"unknown traffic policy", settings(func(s *SeedSettings) {
				*s.LoadBalancerServices.ExternalTrafficPolicy = "Some"
			}), balancer + "externalTrafficPolicy", `"Local"`,
		},
		{"load balancer in an unknown zone", settings(func(s *SeedSettings) {
			s.LoadBalancerServices.Zones = []SeedSettingLoadBalancerServicesZones{{Name: "z"}}
		}), balancer + "zones[0].name", "spec.provider.zones"},
		{
			"unknown mode", settings(func(s *SeedSettings) {
				s.ZoneSelection = &SeedSettingZoneSelection{Mode: "Maybe"}
			}), "spec.settings.zoneSelection.mode", `"Prefer"`,
		},
		{"bound of disks", settings(func(s *SeedSettings) {
			s.VerticalPodAutoscaler.MaxAllowed = corev1.ResourceList{"disk": resource.MustParse("1")}
		}), "spec.settings.verticalPodAutoscaler.maxAllowed[disk]", `"memory"`},
	}, aSeed, ValidateSeed)
	check(t, []change[*Seed]{
		{
			"known operation", func(s *Seed) { s.Annotations = map[string]string{GardenerOperation: "reconcile"} }, "",
			"",
		},
		{
			"idle operation", func(s *Seed) {
				s.Annotations = map[string]string{GardenerOperation: "renew-kubeconfig"}
			}, "metadata.annotations[gardener.cloud/operation]",
			"not offered: gardenlet does not act on renew-kubeconfig",
		},
		{
			"unknown operation", func(s *Seed) { s.Annotations = map[string]string{GardenerOperation: "explode"} },
			"metadata.annotations[gardener.cloud/operation]", `"reconcile"`,
		},
	}, aSeed, ValidateNewSeed)

	busy := func() *Seed {
		seed := aSeed()
		seed.Spec.Backup = &Backup{
			Provider: "local", Region: new("local"),
			CredentialsRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup",
			},
		}
		seed.Annotations = map[string]string{GardenerOperation: "renew-kubeconfig"}
		return seed
	}
	check(t, []change[*Seed]{
		{"as it is", func(*Seed) {}, "", ""},
		{"operation done", func(s *Seed) { s.Annotations = nil }, "", ""},
		{
			"another operation", func(s *Seed) { s.Annotations[GardenerOperation] = "reconcile" },
			"metadata.annotations[gardener.cloud/operation]", `"renew-kubeconfig" is pending`,
		},
		{"no backup", func(s *Seed) { s.Spec.Backup = nil }, "spec.backup", "cannot be removed"},
		{
			"backup elsewhere", func(s *Seed) { s.Spec.Backup.Region = new("moon") }, "spec.backup.region",
			`it was "local"`,
		},
	}, stored(busy), against(busy, ValidateSeedUpdate))
}

func TestValidateCloudProfileOffers(t *testing.T) {
	const version = "spec.machineImages[0].versions[0]."
	capable := func() *CloudProfile {
		profile := aProfile()
		profile.Spec.MachineCapabilities = []CapabilityDefinition{
			{Name: "architecture", Values: CapabilityValues{"amd64", "arm64"}},
			{Name: "boot", Values: CapabilityValues{"uefi", "bios"}},
		}
		profile.Spec.MachineTypes[0].Capabilities = Capabilities{"boot": {"uefi"}}
		profile.Spec.MachineImages[0].Versions[0].CapabilityFlavors = []MachineImageFlavor{
			{Capabilities: Capabilities{"architecture": {"amd64"}, "boot": {"uefi"}}},
		}
		return profile
	}
	check(t, []change[*CloudProfile]{
		{"as it is", func(*CloudProfile) {}, "", ""},
		{
			"undefined capability", func(p *CloudProfile) {
				p.Spec.MachineTypes[0].Capabilities["gpu"] = CapabilityValues{"yes"}
			}, "spec.machineTypes[0].capabilities[gpu]", "spec.machineCapabilities",
		},
		{"undefined value", func(p *CloudProfile) {
			p.Spec.MachineImages[0].Versions[0].CapabilityFlavors[0].Capabilities["boot"] = CapabilityValues{"tape"}
		}, version + "capabilityFlavors[0][boot][0]", "spec.machineCapabilities"},
		{"reserved capability", func(p *CloudProfile) {
			p.Spec.MachineCapabilities[1].Name, p.Spec.MachineTypes[0].Capabilities,
				p.Spec.MachineImages[0].Versions[0].CapabilityFlavors = "gardener-boot", nil, nil
		}, "spec.machineCapabilities[1].name", "reserved"},
		{
			"unknown architecture", func(p *CloudProfile) { p.Spec.MachineCapabilities[0].Values[1] = "mips" },
			"spec.machineCapabilities[0].values[1]", `"arm64"`,
		},
		{"newest version expires", func(p *CloudProfile) {
			p.Spec.Kubernetes.Versions[3].Classification = nil
			p.Spec.Kubernetes.Versions[3].Lifecycle = []LifecycleStage{
				{Classification: ClassificationSupported},
				{Classification: ClassificationExpired, StartTime: &metav1.Time{Time: time.Unix(1, 0)}},
			}
		}, "spec.kubernetes.versions[3].lifecycle[1]", "add a newer one first"},
		{"later stage without start", func(p *CloudProfile) {
			p.Spec.Kubernetes.Versions[2].Lifecycle = []LifecycleStage{
				{Classification: ClassificationPreview}, {Classification: ClassificationSupported},
			}
		}, "spec.kubernetes.versions[2].lifecycle[1].startTime", "only the first"},
		{"long constraint", func(p *CloudProfile) {
			p.Spec.MachineImages[0].Versions[0].KubeletVersionConstraint = new(string(make([]byte, 300)))
		}, version + "kubeletVersionConstraint", "Too long"},
		{"update from no version", func(p *CloudProfile) {
			p.Spec.MachineImages[0].Versions[0].InPlaceUpdates = &InPlaceUpdates{MinVersionForUpdate: new("new")}
		}, version + "inPlaceUpdates.minVersionForUpdate", "12.5.0"},
		{
			"negative storage", func(p *CloudProfile) {
				p.Spec.VolumeTypes[0].MinSize = new(resource.MustParse("-1Gi"))
			}, "spec.volumeTypes[0].minSize", "not be negative",
		},
		{
			"label that is none", func(p *CloudProfile) { p.Spec.Regions[0].Labels = map[string]string{"a b": "c"} },
			"spec.regions[0].labels", "name part",
		},
		{"empty bastion", func(p *CloudProfile) { p.Spec.Bastion = &Bastion{} }, "spec.bastion", "leave bastion out"},
		{"bastion of an unknown version", func(p *CloudProfile) {
			p.Spec.Bastion = &Bastion{MachineImage: &BastionMachineImage{Name: "debian", Version: new("1.0.0")}}
		}, "spec.bastion.machineImage.version", `"12.5.0"`},
		{"no certificates", func(p *CloudProfile) { p.Spec.CABundle = new("none") }, "spec.caBundle", "PEM"},
	}, capable, ValidateCloudProfile)
}

func TestValidateNamespacedCloudProfile(t *testing.T) {
	check(t, []change[*NamespacedCloudProfile]{
		{"as it is", func(*NamespacedCloudProfile) {}, "", ""},
		{
			"parent of its own kind", func(p *NamespacedCloudProfile) { p.Spec.Parent.Kind = "NamespacedCloudProfile" },
			"spec.parent.kind", `"CloudProfile"`,
		},
		{
			"version that is not extended",
			func(p *NamespacedCloudProfile) { p.Spec.Kubernetes.Versions[0].ExpirationDate = nil },
			"spec.kubernetes.versions[0].expirationDate", "until when",
		},
		{"version of another class", func(p *NamespacedCloudProfile) {
			p.Spec.Kubernetes.Versions[0].Classification = new(ClassificationSupported)
		}, "spec.kubernetes.versions[0].classification", "is the parent's"},
		{
			"limit of nothing", func(p *NamespacedCloudProfile) {
				p.Spec.Limits = &Limits{MaxNodesTotal: new(int32(0))}
			}, "spec.limits.maxNodesTotal", "at least 1",
		},
	}, aNamespacedProfile, ValidateNamespacedCloudProfile)
	check(t, []change[*NamespacedCloudProfile]{
		{
			"another parent", func(p *NamespacedCloudProfile) { p.Spec.Parent.Name = "other" }, "spec.parent",
			"cannot be changed",
		},
	}, stored(aNamespacedProfile), against(aNamespacedProfile, ValidateNamespacedCloudProfileUpdate))
}

func TestValidateBackups(t *testing.T) {
	shoot := &corev1.ObjectReference{
		APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: "garden", Name: "root",
	}
	check(t, []change[*BackupBucket]{
		{
			"of a self-hosted shoot", func(b *BackupBucket) {
				b.Spec.SeedName, b.Spec.ShootRef = nil, shoot.DeepCopy()
			}, "", "",
		},
		{
			"of two", func(b *BackupBucket) { b.Spec.ShootRef = shoot.DeepCopy() }, "spec.shootRef",
			"together with seedName",
		},
		{"of a pod", func(b *BackupBucket) {
			b.Spec.SeedName, b.Spec.ShootRef = nil, shoot.DeepCopy()
			b.Spec.ShootRef.Kind = "Pod"
		}, "spec.shootRef.kind", `"Shoot"`},
		{
			"without credentials", func(b *BackupBucket) { b.Spec.CredentialsRef = nil }, "spec.credentialsRef",
			"credentials",
		},
	}, aBackupBucket, ValidateBackupBucket)
	check(t, []change[*BackupBucket]{
		{
			"another region", func(b *BackupBucket) { b.Spec.Provider.Region = "moon" }, "spec.provider",
			"cannot be changed",
		},
		{"another seed", func(b *BackupBucket) { b.Spec.SeedName = new("other") }, "spec.seedName", `it was "local"`},
		{"other credentials", func(b *BackupBucket) { b.Spec.CredentialsRef.Name = "other" }, "", ""},
	}, stored(aBackupBucket), against(aBackupBucket, ValidateBackupBucketUpdate))
	check(t, []change[*BackupEntry]{
		{
			"another seed and bucket", func(e *BackupEntry) {
				e.Spec.SeedName, e.Spec.BucketName = new("other"), "other"
			}, "spec.bucketName", "cannot be changed",
		},
		{"another seed", func(e *BackupEntry) { e.Spec.SeedName = new("other") }, "", ""},
		{
			"to another seed", func(e *BackupEntry) { e.Annotations = map[string]string{GardenerOperation: "migrate"} },
			"metadata.annotations[gardener.cloud/operation]", "stay in their bucket",
		},
		{
			"once more", func(e *BackupEntry) { e.Annotations = map[string]string{GardenerOperation: "reconcile"} }, "",
			"",
		},
		{
			"another bucket", func(e *BackupEntry) { e.Spec.BucketName = "other" }, "spec.bucketName",
			"cannot be changed",
		},
	}, stored(aBackupEntry), against(aBackupEntry, ValidateBackupEntryUpdate))
	check(t, []change[*BackupBucket]{
		{"as it is", func(*BackupBucket) {}, "", ""},
		{
			"of a self-hosted shoot", func(b *BackupBucket) {
				b.Spec.SeedName, b.Spec.ShootRef = nil, shoot.DeepCopy()
			}, "spec.shootRef", "no self-hosted shoots",
		},
	}, aBackupBucket, ValidateNewBackupBucket)
	named := func(name string) func(*BackupEntry) { return func(e *BackupEntry) { e.Name = name } }
	check(t, []change[*BackupEntry]{
		{"as it should be", named("shoot--demo--example--6f2c1e5a-6c53-4b6f-9d3f-2b3a4c5d6e7f"), "", ""},
		{"without a UID", named("shoot"), "metadata.name", "<technical ID of the shoot>--<UID of the shoot>"},
		{"of a self-hosted shoot", func(e *BackupEntry) {
			e.Name, e.Spec.SeedName, e.Spec.ShootRef = "a--b", nil, shoot.DeepCopy()
		}, "spec.shootRef", "no self-hosted shoots"},
		{"from another seed", func(e *BackupEntry) {
			e.Name, e.Annotations = "a--b", map[string]string{GardenerOperation: "restore"}
		}, "metadata.annotations[gardener.cloud/operation]", "stay in their bucket"},
	}, aBackupEntry, ValidateNewBackupEntry)
}

func TestValidateControllers(t *testing.T) {
	check(t, []change[*ControllerRegistration]{
		{
			"no time", func(r *ControllerRegistration) { r.Spec.Resources[1].ReconcileTimeout = seconds(0) },
			"spec.resources[1].reconcileTimeout", "longer than 0",
		},
		{
			"enabled where it cannot be", func(r *ControllerRegistration) {
				r.Spec.Resources[1].AutoEnable = []ClusterType{ClusterTypeSeed}
			}, "spec.resources[1].autoEnable[0]", "clusterCompatibility",
		},
		{
			"endpoints passed on", func(r *ControllerRegistration) {
				r.Spec.Resources[1].ContinuousEndpointUpdate = new(true)
			}, "spec.resources[1].continuousEndpointUpdate", "leave it out",
		},
		{
			"unknown cluster", func(r *ControllerRegistration) {
				r.Spec.Resources[1].ClusterCompatibility = []ClusterType{"moon"}
			}, "spec.resources[1].clusterCompatibility[0]", `"seed"`,
		},
		{
			"deployment of nobody", func(r *ControllerRegistration) { r.Spec.Deployment.DeploymentRefs[0].Name = "" },
			"spec.deployment.deploymentRefs[0].name", "ControllerDeployment",
		},
	}, aRegistration, ValidateControllerRegistration)
	shoot := &corev1.ObjectReference{Namespace: "garden", Name: "root"}
	ofShoot := func() *ControllerInstallation {
		installation := anInstallation()
		installation.Spec.SeedRef, installation.Spec.ShootRef = nil, shoot.DeepCopy()
		return installation
	}
	check(t, []change[*ControllerInstallation]{
		{"in a shoot", func(*ControllerInstallation) {}, "", ""},
		{
			"in a shoot without namespace", func(i *ControllerInstallation) { i.Spec.ShootRef.Namespace = "" },
			"spec.shootRef.namespace", "namespace of the Shoot",
		},
	}, ofShoot, ValidateControllerInstallation)
	check(t, []change[*ControllerInstallation]{
		{
			"another shoot", func(i *ControllerInstallation) { i.Spec.ShootRef.Name = "other" }, "spec.shootRef",
			`it was "garden/root"`,
		},
		{
			"another registration", func(i *ControllerInstallation) { i.Spec.RegistrationRef.Name = "other" },
			"spec.registrationRef.name", "it was",
		},
	}, stored(ofShoot), against(ofShoot, ValidateControllerInstallationUpdate))
}

func TestValidateSecretsAndStates(t *testing.T) {
	check(t, []change[*InternalSecret]{
		{"as it is", func(*InternalSecret) {}, "", ""},
		{
			"certificate without key", func(s *InternalSecret) {
				s.Type = corev1.SecretTypeTLS
				s.Data = map[string][]byte{"tls.crt": nil}
			}, "data[tls.key]", "kubernetes.io/tls",
		},
		{
			"nobody's password", func(s *InternalSecret) { s.Type = corev1.SecretTypeBasicAuth }, "data[username]",
			"or password",
		},
		{
			"too much", func(s *InternalSecret) { s.Data["a"] = make([]byte, corev1.MaxSecretSize+1) }, "data",
			"at most 1048576 bytes",
		},
	}, anInternalSecret, ValidateInternalSecret)
	check(t, []change[*InternalSecret]{
		{"another type", func(s *InternalSecret) { s.Type = "other" }, "type", "cannot be changed"},
	}, stored(anInternalSecret), against(anInternalSecret, ValidateInternalSecretUpdate))
	check(t, []change[*ShootState]{
		{
			"extension without kind", func(s *ShootState) { s.Spec.Extensions[0].Kind = "" }, "spec.extensions[0].kind",
			"extension object",
		},
		{"copy without name", func(s *ShootState) {
			s.Spec.Resources = []ResourceData{{}}
			s.Spec.Resources[0].Kind, s.Spec.Resources[0].APIVersion = "Secret", "v1"
		}, "spec.resources[0].name", "name the object"},
	}, aShootState, ValidateShootState)
	check(t, []change[*ExposureClass]{
		{"another handler", func(c *ExposureClass) { c.Handler = "other" }, "handler", `it was "internet"`},
		{"other seeds", func(c *ExposureClass) { c.Scheduling = nil }, "scheduling", "cannot be changed"},
	}, stored(anExposureClass), against(anExposureClass, ValidateExposureClassUpdate))
	check(t, []change[*Quota]{
		{
			"unknown metric", func(q *Quota) { q.Spec.Metrics["pods"] = resource.MustParse("1") }, "spec.metrics[pods]",
			`"storage.premium"`,
		},
		{
			"negative metric", func(q *Quota) { q.Spec.Metrics["cpu"] = resource.MustParse("-1") }, "spec.metrics[cpu]",
			"not be negative",
		},
		{
			"no life", func(q *Quota) { q.Spec.ClusterLifetimeDays = new(int32(0)) }, "spec.clusterLifetimeDays",
			"at least 1",
		},
	}, aQuota, ValidateQuota)
	check(t, []change[*Quota]{
		{"another scope", func(q *Quota) {
			q.Spec.Scope = corev1.ObjectReference{APIVersion: SchemeGroupVersion.String(), Kind: "Project"}
		}, "spec.scope", "cannot be changed"},
	}, stored(aQuota), against(aQuota, ValidateQuotaUpdate))
	check(t, []change[*Project]{
		{
			"role with a slash", func(p *Project) { p.Spec.Members[0].Role = "extension:a/b" }, "spec.members[0].role",
			"may not contain",
		},
		{"creator of unknown kind", func(p *Project) {
			p.Spec.CreatedBy = &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Robot", Name: "r"}
		}, "spec.createdBy.kind", `"ServiceAccount"`},
	}, aProject, ValidateProject)
}
