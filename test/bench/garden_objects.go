package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

const benchProfile = "bench"

func benchSeedName(number int) string    { return fmt.Sprintf("seed-%03d", number) }
func benchProjectName(number int) string { return fmt.Sprintf("bench%02d", number) }
func benchShootName(number int) string   { return fmt.Sprintf("s%05d", number) }

func benchNamespace(number int) string {
	return gardencorev1beta1.ProjectNamePrefix + benchProjectName(number)
}

// prepare creates all that Shoots need.
func (b *gardenBench) prepare(ctx context.Context) error {
	objects := append([]client.Object{benchCloudProfile(), benchExtensions()}, gardenletAccess()...)
	for number := range gardenProjects {
		objects = append(objects, benchProject(number)...)
	}
	for number := range gardenSeeds {
		objects = append(objects, benchSeed(number))
	}
	for _, object := range objects {
		if err := b.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// gardenletAccess lets gardenlets watch Shoots, whatever decides about more than that.
func gardenletAccess() []client.Object {
	const name = "bench:gardenlets"
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{gardencorev1beta1.SchemeGroupVersion.Group}, Resources: []string{"shoots"},
				Verbs: []string{"get", "list", "watch"},
			},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: gardencorev1beta1.SeedsGroup},
			},
		},
	}
}

// benchExtensions offers every type that Seeds and Shoots ask for.
func benchExtensions() *gardencorev1beta1.ControllerRegistration {
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	for _, offered := range [][2]string{
		{"Infrastructure", "local"}, {"ControlPlane", "local"}, {"Worker", "local"}, {"DNSRecord", "local"},
		{"BackupBucket", "local"},
		{"BackupEntry", "local"}, {"Network", "flannel"}, {"OperatingSystemConfig", "debian"},
	} {
		registration.Spec.Resources = append(registration.Spec.Resources,
			gardencorev1beta1.ControllerResource{Kind: offered[0], Type: offered[1]})
	}
	return registration
}

func benchCloudProfile() *gardencorev1beta1.CloudProfile {
	return &gardencorev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: benchProfile},
		Spec: gardencorev1beta1.CloudProfileSpec{
			Type: "local",
			Kubernetes: gardencorev1beta1.KubernetesSettings{
				Versions: []gardencorev1beta1.ExpirableVersion{{Version: "1.36.3"}},
			},
			MachineImages: []gardencorev1beta1.MachineImage{
				{
					Name: "debian", Versions: []gardencorev1beta1.MachineImageVersion{
						{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.12.0"}},
					},
				},
			},
			MachineTypes: []gardencorev1beta1.MachineType{
				{
					Name: "local", CPU: resource.MustParse("1"), GPU: resource.MustParse("0"),
					Memory: resource.MustParse("2Gi"),
				},
			},
			Regions: []gardencorev1beta1.Region{
				{Name: "local", Zones: []gardencorev1beta1.AvailabilityZone{{Name: "0"}}},
			},
		},
	}
}

func benchProject(number int) []client.Object {
	name, namespace := benchProjectName(number), benchNamespace(number)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "local"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			gardencorev1beta1.ProjectName: name, gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleProject,
		}}},
		&gardencorev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gardencorev1beta1.ProjectSpec{Namespace: &namespace},
		},
		&corev1.Secret{ObjectMeta: meta},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: meta, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "local",
			},
		},
	}
}

func benchSeed(number int) *gardencorev1beta1.Seed {
	name := benchSeedName(number)
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	return &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: "local", Zones: []string{"0"}},
			Networks: gardencorev1beta1.SeedNetworks{
				Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: new("172.18.0.0/24"),
			},
			Ingress: &gardencorev1beta1.Ingress{
				Domain: "ingress." + name + ".example", Controller: gardencorev1beta1.IngressController{Kind: "nginx"},
			},
			DNS: gardencorev1beta1.SeedDNS{
				Internal: &gardencorev1beta1.SeedDNSProviderConfig{
					Type: "local", Domain: "internal.example", CredentialsRef: credentials,
				},
				Defaults: []gardencorev1beta1.SeedDNSProviderConfig{
					{Type: "local", Domain: "shoots.example", CredentialsRef: credentials},
				},
			},
		},
	}
}

// benchShootOf spreads Shoots evenly over projects and Seeds.
func benchShootOf(number int) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: benchNamespace(number % gardenProjects), Name: benchShootName(number)},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: benchProfile},
			CredentialsBindingName: new("local"),
			Region:                 "local",
			SeedName:               new(benchSeedName(number % gardenSeeds)),
			Kubernetes:             gardencorev1beta1.Kubernetes{Version: "1.36.3"},
			Networking: &gardencorev1beta1.Networking{
				Type: new("flannel"), Nodes: new("10.180.0.0/16"), Pods: new("10.3.0.0/16"),
				Services: new("10.4.0.0/16"),
			},
			Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 2, Machine: gardencorev1beta1.Machine{Type: "local"},
				Zones: []string{"0"},
			}}},
		},
	}
}

// benchStatus is a merge patch of a Shoot's status as gardenlet writes it. The marker tells one patch from another.
func benchStatus(marker string) []byte {
	const now = "2026-01-01T00:00:00Z"
	conditions := ""
	for i, kind := range []string{
		"APIServerAvailable", "ControlPlaneHealthy", "ObservabilityComponentsHealthy", "EveryNodeReady",
		"SystemComponentsHealthy",
	} {
		if i > 0 {
			conditions += ","
		}
		conditions +=
			fmt.Sprintf(`{"type":%q,"status":"True","reason":"Healthy","message":"Everything of it works.","lastTransitionTime":%q,"lastUpdateTime":%q}`, kind, now, now)
	}
	return fmt.Appendf(nil,
		`{"status":{"conditions":[%s],"lastOperation":{"type":"Reconcile","state":"Processing","progress":50,"lastUpdateTime":%q,"description":%q}}}`,
		conditions, now, marker)
}
