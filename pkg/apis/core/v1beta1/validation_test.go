package v1beta1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidateCloudProfile(t *testing.T) {
	check(t, []change[*CloudProfile]{
		{"as it is", func(*CloudProfile) {}, "", ""},
		{"no type", func(p *CloudProfile) { p.Spec.Type = "" }, "spec.type", "infrastructure"},
		{
			"no versions", func(p *CloudProfile) { p.Spec.Kubernetes.Versions = nil }, "spec.kubernetes.versions",
			"at least one",
		},
		{
			"version in part", func(p *CloudProfile) { p.Spec.Kubernetes.Versions[0].Version = "1.36" },
			"spec.kubernetes.versions[0].version", "full semantic version",
		},
		{
			"version twice", func(p *CloudProfile) { p.Spec.Kubernetes.Versions[2].Version = "1.36.3" },
			"spec.kubernetes.versions[2].version", "Duplicate",
		},
		{"newest version expires", func(p *CloudProfile) {
			p.Spec.Kubernetes.Versions[3].ExpirationDate = &metav1.Time{Time: time.Unix(1, 0)}
		}, "spec.kubernetes.versions[3].expirationDate", "add a newer one first"},
		{"two supported patches", func(p *CloudProfile) {
			p.Spec.Kubernetes.Versions[0].Classification = new(ClassificationSupported)
			p.Spec.Kubernetes.Versions[1].Classification = new(ClassificationSupported)
		}, "spec.kubernetes.versions[1].classification", "1.36.3 is supported already"},
		{"life cycle beside expiration", func(p *CloudProfile) {
			p.Spec.Kubernetes.Versions[1].Lifecycle = []LifecycleStage{{Classification: ClassificationPreview}}
		}, "spec.kubernetes.versions[1].lifecycle", "which it replaces"},
		{"no images", func(p *CloudProfile) { p.Spec.MachineImages = nil }, "spec.machineImages", "at least one"},
		{
			"image without versions", func(p *CloudProfile) { p.Spec.MachineImages[0].Versions = nil },
			"spec.machineImages[0].versions", "at least one",
		},
		{
			"unknown architecture", func(p *CloudProfile) {
				p.Spec.MachineImages[0].Versions[0].Architectures = []string{"x86"}
			}, "spec.machineImages[0].versions[0].architectures[0]", `"amd64"`,
		},
		{
			"constraint that is none", func(p *CloudProfile) {
				p.Spec.MachineImages[0].Versions[0].KubeletVersionConstraint = new("new")
			}, "spec.machineImages[0].versions[0].kubeletVersionConstraint", ">= 1.34",
		},
		{"no machine types", func(p *CloudProfile) { p.Spec.MachineTypes = nil }, "spec.machineTypes", "at least one"},
		{
			"negative CPU", func(p *CloudProfile) { p.Spec.MachineTypes[0].CPU = resource.MustParse("-1") },
			"spec.machineTypes[0].cpu", "negative",
		},
		{"storage without size", func(p *CloudProfile) {
			p.Spec.MachineTypes[0].Storage = &MachineTypeStorage{Class: "standard", Type: "ssd"}
		}, "spec.machineTypes[0].storage.size", "exactly one"},
		{"no regions", func(p *CloudProfile) { p.Spec.Regions = nil }, "spec.regions", "at least one"},
		{
			"zone twice", func(p *CloudProfile) { p.Spec.Regions[0].Zones[1].Name = "a" },
			"spec.regions[0].zones[1].name", "Duplicate",
		},
		{
			"bastion on an unknown type", func(p *CloudProfile) {
				p.Spec.Bastion = &Bastion{MachineType: &BastionMachineType{Name: "x"}}
			}, "spec.bastion.machineType.name", `"small"`,
		},
		{"capabilities without architecture", func(p *CloudProfile) {
			p.Spec.MachineCapabilities = []CapabilityDefinition{{Name: "gpu", Values: CapabilityValues{"yes"}}}
		}, "spec.machineCapabilities", "architecture"},
	}, aProfile, ValidateCloudProfile)
}

func TestValidateCloudProfileUpdate(t *testing.T) {
	old := func() *CloudProfile {
		profile := aProfile()
		profile.ResourceVersion = "1"
		profile.Spec.Limits = &Limits{MaxNodesTotal: new(int32(10))}
		return profile
	}
	check(t, []change[*CloudProfile]{
		{"as it is", func(*CloudProfile) {}, "", ""},
		{"another type", func(p *CloudProfile) { p.Spec.Type = "aws" }, "spec.type", `it was "local"`},
		{
			"fewer nodes", func(p *CloudProfile) { p.Spec.Limits.MaxNodesTotal = new(int32(9)) },
			"spec.limits.maxNodesTotal", "it was 10",
		},
	}, old, func(p *CloudProfile) field.ErrorList { return ValidateCloudProfileUpdate(p, old()) })
}

func TestValidateSeed(t *testing.T) {
	check(t, []change[*Seed]{
		{"as it is", func(*Seed) {}, "", ""},
		{"with defaults", SetDefaultsSeed, "", ""},
		{"no region", func(s *Seed) { s.Spec.Provider.Region = "" }, "spec.provider.region", "region of the seed"},
		{"no pods", func(s *Seed) { s.Spec.Networks.Pods = "" }, "spec.networks.pods", "10.1.0.0/16"},
		{
			"pods and services overlap", func(s *Seed) { s.Spec.Networks.Services = "10.1.128.0/17" },
			"spec.networks.services", "overlaps with spec.networks.pods",
		},
		{
			"shoots' pods overlap with the seed's",
			func(s *Seed) { s.Spec.Networks.ShootDefaults.Pods = new("10.1.0.0/16") },
			"spec.networks.shootDefaults.pods", "overlaps with spec.networks.pods",
		},
		{
			"no internal domain", func(s *Seed) { s.Spec.DNS.Internal = nil }, "spec.dns.internal",
			"API servers of shoots",
		},
		{
			"credentials of a wrong kind", func(s *Seed) { s.Spec.DNS.Internal.CredentialsRef.Kind = "ConfigMap" },
			"spec.dns.internal.credentialsRef", "v1/Secret",
		},
		{
			"other ingress controller", func(s *Seed) { s.Spec.Ingress.Controller.Kind = "traefik" },
			"spec.ingress.controller.kind", `"nginx"`,
		},
		{
			"backup without credentials", func(s *Seed) { s.Spec.Backup = &Backup{Provider: "local"} },
			"spec.backup.credentialsRef", "object store",
		},
		{
			"backup of no provider", func(s *Seed) { backedUp("Secret", "v1")(s); s.Spec.Backup.Provider = "" },
			"spec.backup.provider", "object store",
		},
		{
			"backup at another provider, nowhere",
			func(s *Seed) { backedUp("Secret", "v1")(s); s.Spec.Backup.Region = nil },
			"spec.backup.region", "another provider than the seed",
		},
		{
			"backup with credentials of no kind", func(s *Seed) {
				s.Spec.Backup = &Backup{Provider: "local", CredentialsRef: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "backup",
				}}
			}, "spec.backup.credentialsRef", "",
		},
		{
			"taint twice", func(s *Seed) { s.Spec.Taints = []SeedTaint{{Key: "a"}, {Key: "a"}} }, "spec.taints[1]",
			"Duplicate",
		},
	}, aSeed, ValidateSeed)
}

func TestValidateSeedUpdate(t *testing.T) {
	old := func() *Seed {
		seed := aSeed()
		seed.ResourceVersion = "1"
		return seed
	}
	check(t, []change[*Seed]{
		{"as it is", func(*Seed) {}, "", ""},
		{
			"other pods", func(s *Seed) { s.Spec.Networks.Pods = "10.9.0.0/16" }, "spec.networks.pods",
			`it was "10.1.0.0/16"`,
		},
		{
			"other ingress domain", func(s *Seed) { s.Spec.Ingress.Domain = "example.com" }, "spec.ingress.domain",
			"it was",
		},
		{
			"no default domains", func(s *Seed) { s.Spec.DNS.Defaults = nil }, "spec.dns.defaults",
			"at least one has to stay",
		},
	}, old, func(s *Seed) field.ErrorList { return ValidateSeedUpdate(s, old()) })
}

func TestValidateProject(t *testing.T) {
	check(t, []change[*Project]{
		{"as it is", func(*Project) {}, "", ""},
		{"long name", func(p *Project) { p.Name = "elevenchars" }, "metadata.name", "10"},
		{"two dashes", func(p *Project) { p.Name = "a--b" }, "metadata.name", `"--"`},
		{
			"namespace of another name", func(p *Project) { p.Spec.Namespace = new("demo") }, "spec.namespace",
			`begin with "garden-"`,
		},
		{"namespace of operators", func(p *Project) { p.Spec.Namespace = new("garden") }, "", ""},
		{"unknown role", func(p *Project) { p.Spec.Members[0].Role = "boss" }, "spec.members[0].role", `"viewer"`},
		{"role of an extension", func(p *Project) { p.Spec.Members[0].Role = "extension:auditor" }, "", ""},
		{
			"role of an extension with a long name",
			func(p *Project) { p.Spec.Members[0].Role = "extension:abcdefghijklmnopqrstuvw" }, "spec.members[0].role",
			"1 to 20",
		},
		{
			"role twice", func(p *Project) { p.Spec.Members[0].Roles = []string{"owner", "owner"} },
			"spec.members[0].roles[2]", "Duplicate",
		},
		{"two owners", func(p *Project) {
			p.Spec.Members = append(p.Spec.Members,
				ProjectMember{
					Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}, Role: "owner",
				})
		}, "spec.members[1].roles", "only one"},
		{"member twice", func(p *Project) {
			p.Spec.Members = append(p.Spec.Members, ProjectMember{Subject: p.Spec.Members[0].Subject, Role: "viewer"})
		}, "spec.members[1]", "Duplicate"},
		{"service account without namespace", func(p *Project) {
			p.Spec.Members = append(p.Spec.Members,
				ProjectMember{Subject: rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"}, Role: "admin"})
		}, "spec.members[1].namespace", "namespace of the service account"},
		{
			"consent for other kinds", func(p *Project) {
				p.Spec.DualApprovalForDeletion = []DualApprovalForDeletion{{Resource: "secrets"}}
			}, "spec.dualApprovalForDeletion[0].resource", `"shoots"`,
		},
	}, aProject, ValidateProject)
}

func TestValidateProjectUpdate(t *testing.T) {
	old := func() *Project {
		project := aProject()
		project.ResourceVersion = "1"
		return project
	}
	check(t, []change[*Project]{
		{
			"another namespace", func(p *Project) { p.Spec.Namespace = new("garden-other") }, "spec.namespace",
			`it was "garden-demo"`,
		},
		{"no owner", func(p *Project) { p.Spec.Owner = nil }, "spec.owner", "changed, not removed"},
	}, old, func(p *Project) field.ErrorList { return ValidateProjectUpdate(p, old()) })
}

func TestValidateControllerRegistration(t *testing.T) {
	object := func() *ControllerRegistration {
		registration := &ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "provider-local"},
			Spec: ControllerRegistrationSpec{
				Resources: []ControllerResource{
					{Kind: "Infrastructure", Type: "local"}, {Kind: "Extension", Type: "federation"},
				},
				Deployment: &ControllerRegistrationDeployment{
					DeploymentRefs: []DeploymentRef{{Name: "provider-local"}},
				},
			},
		}
		SetDefaultsControllerRegistration(registration)
		return registration
	}
	check(t, []change[*ControllerRegistration]{
		{"as it is", func(*ControllerRegistration) {}, "", ""},
		{
			"unknown kind", func(r *ControllerRegistration) { r.Spec.Resources[0].Kind = "Shoot" },
			"spec.resources[0].kind", `"Worker"`,
		},
		{
			"the same twice", func(r *ControllerRegistration) { r.Spec.Resources[1] = r.Spec.Resources[0] },
			"spec.resources[1]", "Duplicate",
		},
		{
			"life cycle of another kind", func(r *ControllerRegistration) {
				r.Spec.Resources[0].Lifecycle = &ControllerResourceLifecycle{}
			}, "spec.resources[0].lifecycle", "only kind Extension",
		},
		{
			"seed selector with primary resources",
			func(r *ControllerRegistration) { r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{} },
			"spec.deployment.seedSelector", "primary is false",
		},
		{
			"two deployments", func(r *ControllerRegistration) {
				r.Spec.Deployment.DeploymentRefs = []DeploymentRef{{"a"}, {"b"}}
			}, "spec.deployment.deploymentRefs", "at most 1",
		},
	}, object, ValidateControllerRegistration)

	old, changed := object(), object()
	old.ResourceVersion, changed.ResourceVersion = "1", "1"
	changed.Spec.Resources[0].Primary = new(false)
	expectError(t, ValidateControllerRegistrationUpdate(changed, old), "spec.resources[0].primary", "cannot be changed")
}

func TestValidateControllerInstallation(t *testing.T) {
	object := func() *ControllerInstallation {
		return &ControllerInstallation{
			ObjectMeta: metav1.ObjectMeta{Name: "provider-local-x", ResourceVersion: "1"},
			Spec: ControllerInstallationSpec{
				RegistrationRef: corev1.ObjectReference{Name: "provider-local"},
				SeedRef:         &corev1.ObjectReference{Name: "local"},
			},
		}
	}
	check(t, []change[*ControllerInstallation]{
		{"as it is", func(*ControllerInstallation) {}, "", ""},
		{
			"no registration", func(i *ControllerInstallation) { i.Spec.RegistrationRef.Name = "" },
			"spec.registrationRef.name", "ControllerRegistration",
		},
		{
			"neither seed nor shoot", func(i *ControllerInstallation) { i.Spec.SeedRef = nil }, "spec.seedRef",
			"either seedRef or shootRef",
		},
	}, object, ValidateControllerInstallation)
	check(t, []change[*ControllerInstallation]{
		{
			"another seed", func(i *ControllerInstallation) { i.Spec.SeedRef.Name = "other" }, "spec.seedRef.name",
			`it was "local"`,
		},
		{
			"another deployment", func(i *ControllerInstallation) {
				i.Spec.DeploymentRef = &corev1.ObjectReference{Name: "x"}
			}, "", "",
		},
	}, object, func(i *ControllerInstallation) field.ErrorList {
		return ValidateControllerInstallationUpdate(i, object())
	})
}

func TestValidateSecretBinding(t *testing.T) {
	object := func() *SecretBinding {
		return &SecretBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "local", ResourceVersion: "1"},
			SecretRef:  corev1.SecretReference{Name: "credentials"}, Provider: &SecretBindingProvider{Type: "aws,gcp"},
		}
	}
	check(t, []change[*SecretBinding]{
		{"as it is", func(*SecretBinding) {}, "", ""},
		{"no provider", func(b *SecretBinding) { b.Provider = nil }, "provider", "credentials are for"},
		{"empty provider", func(b *SecretBinding) { b.Provider.Type = "aws," }, "provider.type", "separated by commas"},
		{"no secret", func(b *SecretBinding) { b.SecretRef.Name = "" }, "secretRef.name", "Secret"},
	}, object, ValidateSecretBinding)
	check(t, []change[*SecretBinding]{
		{"another secret", func(b *SecretBinding) { b.SecretRef.Name = "other" }, "secretRef", "cannot be changed"},
		{"another provider", func(b *SecretBinding) { b.Provider.Type = "aws" }, "provider", "cannot be changed"},
	}, object, func(b *SecretBinding) field.ErrorList { return ValidateSecretBindingUpdate(b, object()) })
}

func TestValidateOthers(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "garden-demo", Name: "x"}
	cluster := metav1.ObjectMeta{Name: "x"}
	credentials := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}
	for name, test := range map[string]struct {
		errs           field.ErrorList
		field, message string
	}{
		"quota": {
			ValidateQuota(&Quota{
				ObjectMeta: meta, Spec: QuotaSpec{Scope: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret"}},
			}), "", "",
		},
		"quota of unknown scope": {
			ValidateQuota(&Quota{
				ObjectMeta: meta, Spec: QuotaSpec{Scope: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod"}},
			}), "spec.scope", "v1/Secret",
		},
		"backup bucket": {
			ValidateBackupBucket(&BackupBucket{
				ObjectMeta: cluster, Spec: BackupBucketSpec{
					Provider: BackupBucketProvider{Type: "local", Region: "local"}, SeedName: new("local"),
					CredentialsRef: credentials,
				},
			}), "", "",
		},
		"backup bucket for nobody": {
			ValidateBackupBucket(&BackupBucket{
				ObjectMeta: cluster, Spec: BackupBucketSpec{
					Provider: BackupBucketProvider{Type: "local", Region: "local"}, CredentialsRef: credentials,
				},
			}), "spec.seedName", "shootRef",
		},
		"backup entry": {
			ValidateBackupEntry(&BackupEntry{
				ObjectMeta: meta, Spec: BackupEntrySpec{BucketName: "b", SeedName: new("local")},
			}), "", "",
		},
		"backup entry nowhere": {
			ValidateBackupEntry(&BackupEntry{ObjectMeta: meta, Spec: BackupEntrySpec{SeedName: new("local")}}),
			"spec.bucketName", "BackupBucket",
		},
		"exposure class": {
			ValidateExposureClass(&ExposureClass{ObjectMeta: cluster, Handler: "internet"}), "", "",
		},
		"long handler": {
			ValidateExposureClass(&ExposureClass{ObjectMeta: cluster, Handler: "abcdefghijklmnopqrstuvwxyz123456789"}),
			"handler", "34",
		},
		"deployment without type": {
			ValidateControllerDeployment(&ControllerDeployment{ObjectMeta: cluster}), "type", "helm",
		},
		"internal secret": {
			ValidateInternalSecret(&InternalSecret{ObjectMeta: meta, Data: map[string][]byte{"a b": nil}}), "data[a b]",
			"valid config key",
		},
		"namespaced profile": {
			ValidateNamespacedCloudProfile(&NamespacedCloudProfile{
				ObjectMeta: meta, Spec: NamespacedCloudProfileSpec{
					Parent: CloudProfileReference{Kind: "CloudProfile", Name: "local"},
				},
			}), "", "",
		},
		"namespaced orphan": {
			ValidateNamespacedCloudProfile(&NamespacedCloudProfile{
				ObjectMeta: meta, Spec: NamespacedCloudProfileSpec{Parent: CloudProfileReference{Kind: "CloudProfile"}},
			}), "spec.parent.name", "extended",
		},
		"shoot state": {
			ValidateShootState(&ShootState{
				ObjectMeta: meta, Spec: ShootStateSpec{Gardener: []GardenerResourceData{{Name: "ca"}}},
			}), "spec.gardener[0].type", "secret",
		},
	} {
		t.Run(name, func(t *testing.T) { expectError(t, test.errs, test.field, test.message) })
	}
}

func TestImmutableInternalSecret(t *testing.T) {
	old := &InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "x", ResourceVersion: "1"}, Immutable: new(true),
		Data: map[string][]byte{"a": []byte("1")},
	}
	changed := old.DeepCopy()
	changed.Data["a"] = []byte("2")
	expectError(t, ValidateInternalSecretUpdate(changed, old), "data", "immutable is set")
}
