package deletion

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// As long as the ManagedResource is there, the registration of the API would come back.
func TestNothingAppliesMetricsServerWhenItIsDeleted(t *testing.T) {
	d := &Deletion{Plan: &plan.Deletion{Identity: plan.Identity{Namespace: "ns"}}}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: d.Plan.Meta(components.MetricsServer)}
	resource.Finalizers = []string{"resources.gardener.cloud/resource-manager"}
	d.Seed = fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(resource).Build()
	for range 2 {
		if err := d.deleteMetricsServer(t.Context()); err == nil ||
			!strings.Contains(err.Error(), components.MetricsServer) {
			t.Fatalf("got %v", err)
		}
	}
	if err := d.Seed.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
		t.Fatal(err)
	}
	resource.Finalizers = nil
	if err := d.Seed.Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	if err := d.deleteMetricsServer(t.Context()); err != nil {
		t.Error(err)
	}
}
