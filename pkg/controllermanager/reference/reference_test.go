package reference

import (
	"context"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func ref(apiVersion, kind, name string) autoscalingv1.CrossVersionObjectReference {
	return autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

func resources(references ...autoscalingv1.CrossVersionObjectReference) []gardencorev1beta1.NamedResourceReference {
	var result []gardencorev1beta1.NamedResourceReference
	for _, reference := range references {
		result = append(result, gardencorev1beta1.NamedResourceReference{Name: reference.Name, ResourceRef: reference})
	}
	return result
}

func TestByShoot(t *testing.T) {
	apiServer := func(config gardencorev1beta1.KubeAPIServerConfig) gardencorev1beta1.ShootSpec {
		return gardencorev1beta1.ShootSpec{Kubernetes: gardencorev1beta1.Kubernetes{KubeAPIServer: &config}}
	}
	credentials := ref("v1", "Secret", "dns")
	tests := map[string]struct {
		spec gardencorev1beta1.ShootSpec
		want []Object
	}{
		"nothing": {gardencorev1beta1.ShootSpec{}, nil},
		"resources": {
			gardencorev1beta1.ShootSpec{
				Resources: resources(ref("v1", "Secret", "a"), ref("v1", "ConfigMap", "b"), ref("v1", "Service", "c"),
					ref("x/v1", "Secret", "d")),
			}, []Object{
				{"Secret", "a"}, {"ConfigMap", "b"},
			},
		},
		"DNS": {
			gardencorev1beta1.ShootSpec{
				DNS: &gardencorev1beta1.DNS{
					Providers: []gardencorev1beta1.DNSProvider{
						{SecretName: new("old")}, {CredentialsRef: &credentials},
					},
				},
			}, []Object{
				{"Secret", "old"}, {"Secret", "dns"},
			},
		},
		"admission": {
			apiServer(gardencorev1beta1.KubeAPIServerConfig{
				AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{{KubeconfigSecretName: new("hook")}},
			}), []Object{
				{"Secret", "hook"},
			},
		},
		"audit": {
			apiServer(gardencorev1beta1.KubeAPIServerConfig{
				AuditConfig: &gardencorev1beta1.AuditConfig{
					AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
				},
			}), []Object{
				{"ConfigMap", "audit"},
			},
		},
		"authorizer": {
			apiServer(gardencorev1beta1.KubeAPIServerConfig{
				StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
					ConfigMapName: "z", Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{
						{SecretName: "k"},
					},
				},
			}), []Object{
				{"ConfigMap", "z"}, {"Secret", "k"},
			},
		},
		"identities": {
			apiServer(gardencorev1beta1.KubeAPIServerConfig{
				StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "n"},
			}), []Object{
				{"ConfigMap", "n"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ByShoot(&gardencorev1beta1.Shoot{Spec: test.spec}); !got.Equal(sets.New(test.want...)) {
				t.Errorf("references = %v, want %v", got.UnsortedList(), test.want)
			}
		})
	}
}

func newSeed() *gardencorev1beta1.Seed {
	secret := func(namespace, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
	}
	return &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: gardencorev1beta1.SeedSpec{
		Backup:    &gardencorev1beta1.Backup{CredentialsRef: new(secret("garden", "backup"))},
		Resources: resources(ref("v1", "ConfigMap", "b")),
		DNS: gardencorev1beta1.SeedDNS{
			Internal: &gardencorev1beta1.SeedDNSProviderConfig{CredentialsRef: secret("garden", "internal")},
			Defaults: []gardencorev1beta1.SeedDNSProviderConfig{{CredentialsRef: secret("elsewhere", "default")}},
		},
	}}
}

func TestBySeed(t *testing.T) {
	for namespace, want := range map[string][]Object{
		"garden":    {{"Secret", "backup"}, {"Secret", "internal"}, {"ConfigMap", "b"}},
		"elsewhere": {{"Secret", "default"}},
		"other":     nil,
	} {
		if got := BySeed(newSeed(), namespace); !got.Equal(sets.New(want...)) {
			t.Errorf("references in %s = %v, want %v", namespace, got.UnsortedList(), want)
		}
	}
	var namespaces []string
	for _, request := range namespacesOfSeed(context.Background(), newSeed()) {
		namespaces = append(namespaces, request.Name)
	}
	if !slices.Equal(namespaces, []string{"elsewhere", "garden"}) {
		t.Errorf("namespaces = %v", namespaces)
	}
}

func TestProtectionFollowsReferences(t *testing.T) {
	ctx := context.Background()
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Spec.Resources = resources(ref("v1", "Secret", "used"))
	secret := func(name string, finalizers ...string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: name, Finalizers: finalizers},
		}
	}
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).
		WithObjects(shoot, secret("used"), secret("left", gardencorev1beta1.FinalizerReferenceProtection),
			secret("other", "example.com/mine")).Build()
	r := &Reconciler{Client: c, Objects: c}
	finalizers := func(name string) []string {
		t.Helper()
		if _, err := r.Reconcile(ctx, reconcile.Request{
			NamespacedName: client.ObjectKey{Name: "garden-demo"},
		}); err != nil {
			t.Fatal(err)
		}
		found := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "garden-demo", Name: name}, found); err != nil {
			t.Fatal(err)
		}
		return found.Finalizers
	}
	for name, want := range map[string][]string{
		"used": {gardencorev1beta1.FinalizerReferenceProtection}, "left": nil, "other": {"example.com/mine"},
	} {
		if got := finalizers(name); !slices.Equal(got, want) {
			t.Errorf("finalizers of %s = %v, want %v", name, got, want)
		}
	}
	if err := c.Delete(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if got := finalizers("used"); len(got) > 0 {
		t.Errorf("finalizers without the shoot = %v, want none", got)
	}
}

func TestOnlyOtherReferencesMatter(t *testing.T) {
	before := &gardencorev1beta1.Shoot{
		Spec: gardencorev1beta1.ShootSpec{Resources: resources(ref("v1", "Secret", "a"))},
	}
	same, other := before.DeepCopy(), before.DeepCopy()
	same.Generation = 2
	other.Spec.Resources[0].ResourceRef.Name = "b"
	filter := referencesChanged()
	if filter.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: same}) {
		t.Error("a change of something else passes")
	}
	if !filter.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: other}) {
		t.Error("another reference does not pass")
	}
}
