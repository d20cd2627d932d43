package shoot

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// As long as the ManagedResource is there, the registration of the API would come back.
func TestNothingAppliesMetricsServerWhenItIsDeleted(t *testing.T) {
	o := &Operation{Plan: &Plan{Namespace: "ns"}}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: o.meta(resourceMetricsServer)}
	resource.Finalizers = []string{"resources.gardener.cloud/resource-manager"}
	o.Seed = fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(resource).Build()
	for range 2 {
		if err := o.deleteMetricsServer(t.Context()); err == nil || !strings.Contains(err.Error(), resourceMetricsServer) {
			t.Fatalf("got %v", err)
		}
	}
	if err := o.Seed.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
		t.Fatal(err)
	}
	resource.Finalizers = nil
	if err := o.Seed.Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	if err := o.deleteMetricsServer(t.Context()); err != nil {
		t.Error(err)
	}
}
