package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// Extensions read the Shoot with its kind and without the notes of field managers, and keep what they were told beside
// it.
func TestClusterHasTheObjectsOfTheGarden(t *testing.T) {
	const namespace = "shoot--demo--member1"
	seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).Build()
	in := plantest.Inputs()
	if err := Refresh(t.Context(), seed, namespace, in.Shoot); err != nil {
		t.Errorf("without a Cluster there is nothing to do, but: %v", err)
	}
	in.Shoot.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	if err := Write(t.Context(), seed, namespace, in); err != nil {
		t.Fatal(err)
	}
	if err := Annotate(t.Context(), seed, namespace, "kubeconfig", "egress"); err != nil {
		t.Fatal(err)
	}
	in.Shoot.Labels = map[string]string{"changed": "yes"}
	if err := Refresh(t.Context(), seed, namespace, in.Shoot); err != nil {
		t.Fatal(err)
	}
	got := &extensionsv1alpha1.Cluster{}
	if err := seed.Get(t.Context(), client.ObjectKey{Name: namespace}, got); err != nil {
		t.Fatal(err)
	}
	shoot := string(got.Spec.Shoot.Raw)
	if !strings.Contains(shoot, `"kind":"Shoot"`) || !strings.Contains(shoot, `"changed":"yes"`) ||
		strings.Contains(shoot, "kubectl") {
		t.Errorf("the Shoot is %s", shoot)
	}
	if len(got.Annotations) != 2 {
		t.Errorf("annotations are %v", got.Annotations)
	}
	for range 2 {
		if err := Delete(t.Context(), seed, namespace); err != nil {
			t.Error(err)
		}
	}
}

// Extensions get to know whether replicas share the one node of the seed, and that they do so no longer.
func TestClusterTellsOfTheOneNode(t *testing.T) {
	const namespace = "shoot--demo--member1"
	seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).Build()
	in := plantest.Inputs()
	for _, single := range []bool{false, true, true, false} {
		in.IsSeedSingle = single
		if err := Write(t.Context(), seed, namespace, in); err != nil {
			t.Fatal(err)
		}
		got := &extensionsv1alpha1.Cluster{}
		if err := seed.Get(t.Context(), client.ObjectKey{Name: namespace}, got); err != nil {
			t.Fatal(err)
		}
		if _, told := got.Annotations[gardencorev1beta1.AnnotationSingleNodeSeed]; told != single {
			t.Errorf("single is %v, and annotations are %v", single, got.Annotations)
		}
	}
}
