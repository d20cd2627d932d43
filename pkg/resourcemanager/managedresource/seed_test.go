package managedresource

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

func namespaceOf(role string) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{gardencorev1beta1.GardenRole: role}},
	}
}

func TestOnlyNamespacesOfShootsAndExtensionsAreGivenRights(t *testing.T) {
	for role, want := range map[string]bool{
		gardencorev1beta1.GardenRoleShoot: true, gardencorev1beta1.GardenRoleExtension: true, "infra": false, "": false,
	} {
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(namespaceOf(role)).Build()
		r := &Reconciler{Client: c, Reader: c}
		for range 2 {
			if err := r.grant(t.Context(), "ns"); err != nil {
				t.Fatalf("%s: %v", role, err)
			}
		}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: SeedRole}, &rbacv1.RoleBinding{})
		if (err == nil) != want {
			t.Errorf("role %q: bound %v, want %v", role, err, want)
		}
	}
}

// The rights in a namespace that is deleted go before the ManagedResources in it.
func TestWhatGoesWithItsNamespaceIsNotWaitedFor(t *testing.T) {
	ref := func(namespace string) resourcesv1alpha1.ObjectReference {
		return resourcesv1alpha1.ObjectReference{
			ObjectReference: corev1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: "a"},
		}
	}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mr"}}
	mr.Spec.Class = new(resourcesv1alpha1.ClassSeed)
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{ref("ns"), ref("other"), ref("")}
	terminating := namespaceOf(gardencorev1beta1.GardenRoleShoot)
	terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"kubernetes"}
	for namespace, want := range map[*corev1.Namespace]int{
		terminating: 2, namespaceOf(gardencorev1beta1.GardenRoleShoot): 3,
	} {
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(namespace).Build()
		got, err := (&Reconciler{Client: c, Reader: c}).leftBehind(t.Context(), mr)
		if err != nil || len(got) != want {
			t.Errorf("terminating %v: %v, %v; want %d", namespace.DeletionTimestamp, got, err, want)
		}
	}
}
