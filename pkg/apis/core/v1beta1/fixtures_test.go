package v1beta1

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Objects that are accepted as they are; tests change one thing of them.

func aShoot() *Shoot {
	shoot := &Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec: ShootSpec{
			CloudProfile:           &CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			CredentialsBindingName: new("local"),
			Region:                 "local",
			Kubernetes:             Kubernetes{Version: "1.36.3"},
			Networking: &Networking{
				Type: new("flannel"), Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16"),
				Nodes: new("10.180.0.0/24"),
			},
			Provider: Provider{Type: "local", Workers: []Worker{aWorker("pool")}},
		},
	}
	SetDefaultsShoot(shoot)
	return shoot
}

func aWorker(name string) Worker {
	return Worker{
		Name: name, Minimum: 1, Maximum: 3, Zones: []string{"a"},
		Machine: Machine{Type: "small", Image: &ShootMachineImage{Name: "debian", Version: new("12.5.0")}},
	}
}

func aWorkerlessShoot() *Shoot {
	shoot := &Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "fleet"},
		Spec: ShootSpec{
			CloudProfile: &CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Region:       "local",
			Kubernetes:   Kubernetes{Version: "1.36.3"},
			Extensions:   []Extension{{Type: "federation"}},
			Provider:     Provider{Type: "local"},
		},
	}
	SetDefaultsShoot(shoot)
	return shoot
}

func aProfile() *CloudProfile {
	return &CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: CloudProfileSpec{
			Type: "local",
			Kubernetes: KubernetesSettings{Versions: []ExpirableVersion{
				{Version: "1.36.3"}, {Version: "1.36.2", Classification: new(ClassificationDeprecated)},
				{Version: "1.35.4"}, {Version: "1.37.0", Classification: new(ClassificationPreview)},
			}},
			MachineImages: []MachineImage{
				{Name: "debian", Versions: []MachineImageVersion{
					{ExpirableVersion: ExpirableVersion{Version: "12.5.0"}},
					{ExpirableVersion: ExpirableVersion{Version: "12.4.0"}},
					{ExpirableVersion: ExpirableVersion{Version: "13.0.0", Classification: new(ClassificationPreview)}},
					{ExpirableVersion: ExpirableVersion{Version: "12.6.0"}, Architectures: []string{"arm64"}},
				}},
				{
					Name: "old", Versions: []MachineImageVersion{
						{ExpirableVersion: ExpirableVersion{Version: "1.0.0"}, KubeletVersionConstraint: new("< 1.30")},
					},
				},
			},
			MachineTypes: []MachineType{
				{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi")},
				{
					Name: "arm", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi"),
					Architecture: new("arm64"),
				},
				{Name: "gone", Usable: new(false)},
			},
			VolumeTypes: []VolumeType{{Name: "ssd", Class: "premium"}},
			Regions: []Region{{Name: "local", Zones: []AvailabilityZone{
				{Name: "a"}, {Name: "b", UnavailableMachineTypes: []string{"small"}},
			}}},
		},
	}
}

func aSeed() *Seed {
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	return &Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: SeedSpec{
			Provider: SeedProvider{Type: "local", Region: "local", Zones: []string{"a"}},
			Networks: SeedNetworks{
				Nodes: new("172.18.0.0/24"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16",
				ShootDefaults: &ShootNetworks{Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")},
			},
			DNS: SeedDNS{
				Internal: &SeedDNSProviderConfig{
					Type: "local", Domain: "internal.local.trellis.garden", CredentialsRef: credentials,
				},
				Defaults: []SeedDNSProviderConfig{
					{Type: "local", Domain: "local.trellis.garden", CredentialsRef: credentials},
				},
			},
			Ingress: &Ingress{Domain: "ingress.local.trellis.garden", Controller: IngressController{Kind: "nginx"}},
		},
	}
}

func aProject() *Project {
	alice := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}
	return &Project{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"},
		Spec: ProjectSpec{
			Namespace: new("garden-demo"), Owner: &alice,
			Members: []ProjectMember{{Subject: alice, Role: ProjectMemberAdmin, Roles: []string{ProjectMemberOwner}}},
		},
	}
}

func aQuota() *Quota {
	return &Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "trial"},
		Spec: QuotaSpec{
			ClusterLifetimeDays: new(int32(14)),
			Metrics: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("20"), QuotaMetricLoadbalancer: resource.MustParse("2"),
			},
			Scope: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret"},
		},
	}
}

func aSecretBinding() *SecretBinding {
	return &SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "local"},
		SecretRef:  corev1.SecretReference{Name: "credentials"}, Provider: &SecretBindingProvider{Type: "aws,gcp"},
	}
}

func aBackupBucket() *BackupBucket {
	return &BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "4d1e6a2c"},
		Spec: BackupBucketSpec{
			Provider: BackupBucketProvider{Type: "local", Region: "local"}, SeedName: new("local"),
			CredentialsRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup",
			},
		},
	}
}

func aBackupEntry() *BackupEntry {
	return &BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "shoot--demo--member1--1"},
		Spec:       BackupEntrySpec{BucketName: "4d1e6a2c", SeedName: new("local")},
	}
}

func aRegistration() *ControllerRegistration {
	registration := &ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "provider-local"},
		Spec: ControllerRegistrationSpec{
			Resources: []ControllerResource{
				{Kind: "Infrastructure", Type: "local"}, {Kind: "Extension", Type: "federation"},
			},
			Deployment: &ControllerRegistrationDeployment{DeploymentRefs: []DeploymentRef{{Name: "provider-local"}}},
		},
	}
	SetDefaultsControllerRegistration(registration)
	return registration
}

func aDeployment() *ControllerDeployment {
	return &ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "provider-local"}, Type: "helm",
		ProviderConfig: runtime.RawExtension{Raw: []byte(`{"chart":"H4sI"}`)},
	}
}

func anInstallation() *ControllerInstallation {
	return &ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "provider-local-x"},
		Spec: ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "provider-local"},
			SeedRef:         &corev1.ObjectReference{Name: "local"},
		},
	}
}

func anExposureClass() *ExposureClass {
	return &ExposureClass{
		ObjectMeta: metav1.ObjectMeta{Name: "internet"}, Handler: "internet",
		Scheduling: &ExposureClassScheduling{Tolerations: []Toleration{{Key: "public"}}},
	}
}

func anInternalSecret() *InternalSecret {
	return &InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1.ca-client"}, Type: SecretTypeCAClient,
		Data: map[string][]byte{DataKeyCACert: []byte("certificate"), DataKeyCAKey: []byte("key")},
	}
}

func aShootState() *ShootState {
	return &ShootState{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec: ShootStateSpec{
			Gardener: []GardenerResourceData{
				{Name: "ca", Type: "secret", Data: runtime.RawExtension{Raw: []byte(`{"ca.crt":"YQ=="}`)}},
			},
			Extensions: []ExtensionResourceState{
				{Kind: "Infrastructure", State: &runtime.RawExtension{Raw: []byte(`{"vpc":"1"}`)}},
			},
		},
	}
}

func aNamespacedProfile() *NamespacedCloudProfile {
	return &NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "local"},
		Spec: NamespacedCloudProfileSpec{
			Parent: CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Kubernetes: &KubernetesSettings{
				Versions: []ExpirableVersion{{Version: "1.35.4", ExpirationDate: &metav1.Time{Time: time.Unix(1, 0)}}},
			},
			MachineTypes: []MachineType{
				{Name: "huge", CPU: resource.MustParse("64"), Memory: resource.MustParse("256Gi")},
			},
		},
	}
}

// stored returns the object as it is when it is changed: with a resource version.
func stored[T metav1.Object](make func() T) func() T {
	return func() T {
		object := make()
		object.SetResourceVersion("1")
		return object
	}
}

// against returns a check of a change of the stored object.
func against[T metav1.Object](make func() T, validate func(object, old T) field.ErrorList) func(T) field.ErrorList {
	return func(object T) field.ErrorList { return validate(object, stored(make)()) }
}

// change is one row of a table: what is changed, and the field and a part of the message of the one error that follows;
// no error when the field is empty.
type change[T any] struct {
	name    string
	change  func(T)
	field   string
	message string
}

// check runs a table. The object is made anew for every row.
func check[T any](t *testing.T, table []change[T], object func() T, validate func(T) field.ErrorList) {
	t.Helper()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			o := object()
			row.change(o)
			expectError(t, validate(o), row.field, row.message)
		})
	}
}

func expectError(t *testing.T, errs field.ErrorList, path, message string) {
	t.Helper()
	if path == "" {
		if len(errs) > 0 {
			t.Fatalf("is refused: %v", errs.ToAggregate())
		}
		return
	}
	if len(errs) != 1 {
		t.Fatalf("want one error at %s, got %v", path, errs)
	}
	if errs[0].Field != path || !strings.Contains(errs[0].Error(), message) {
		t.Fatalf("want %s: …%s…, got %v", path, message, errs[0])
	}
}
