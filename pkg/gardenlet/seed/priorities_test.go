package seed

import (
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
)

// Classes that are there, from the chart of gardenlet or an earlier start, stay, with what others noted at them.
func TestPriorityClassesOfASeed(t *testing.T) {
	noted := &schedulingv1.PriorityClass{Value: 999998950}
	noted.Name, noted.Annotations = component.PrioritySeedSystemCritical, map[string]string{"meta.helm.sh/release": "g"}
	system := &System{Seed: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(noted).Build()}
	for range 2 {
		if err := system.InstallPriorityClasses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, wanted := range component.SeedPriorityClasses() {
		class := &schedulingv1.PriorityClass{}
		if err := system.Seed.Get(t.Context(), client.ObjectKeyFromObject(wanted), class); err != nil {
			t.Error(err)
		}
		if class.Name == noted.Name && len(class.Annotations) != 1 {
			t.Errorf("%s has the annotations %v", class.Name, class.Annotations)
		}
	}
}
