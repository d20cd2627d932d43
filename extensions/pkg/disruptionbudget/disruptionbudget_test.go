package disruptionbudget

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// There is one in highly available control planes only, and it is put back when somebody changes it.
func TestBudgetOfReplicas(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	labels := component.Labels("kubernetes", "part")
	key := client.ObjectKey{Namespace: "ns", Name: "part"}
	apply := func(availability component.Availability) {
		t.Helper()
		if err := Apply(t.Context(), c, availability, key.Namespace, key.Name, labels); err != nil {
			t.Fatal(err)
		}
	}
	got := &policyv1.PodDisruptionBudget{}
	apply(component.Availability{})
	if err := c.Get(t.Context(), key, got); !apierrors.IsNotFound(err) {
		t.Fatalf("without availability: %v", err)
	}
	for range 2 {
		apply(component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode})
		if err := c.Get(t.Context(), key, got); err != nil {
			t.Fatal(err)
		}
		want := component.DisruptionBudget(key.Namespace, key.Name, labels)
		if !apiequality.Semantic.DeepEqual(got.Spec, want.Spec) ||
			!apiequality.Semantic.DeepEqual(got.Labels, want.Labels) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		got.Spec.MaxUnavailable = nil
		if err := c.Update(t.Context(), got); err != nil {
			t.Fatal(err)
		}
	}
}
