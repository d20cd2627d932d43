package charts_test

import (
	"slices"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
)

// What charts make for those who install them by hand is what gardenlet and landscapes make.
func TestPriorityClassesOfCharts(t *testing.T) {
	for chart, wanted := range map[string][]client.Object{
		"garden": component.GardenPriorityClasses(), "gardenlet": component.SeedPriorityClasses()[:1],
	} {
		classes := objectsWith[schedulingv1.PriorityClass](t, chart, "PriorityClass", nil)
		if len(classes) != len(wanted) {
			t.Errorf("chart %s has %d classes, want %d", chart, len(classes), len(wanted))
		}
		for _, object := range wanted {
			want := object.(*schedulingv1.PriorityClass)
			if !slices.ContainsFunc(classes, func(c *schedulingv1.PriorityClass) bool {
				return c.Name == want.Name && c.Value == want.Value && c.Description == want.Description &&
					c.PreemptionPolicy == want.PreemptionPolicy && c.Annotations["helm.sh/resource-policy"] == "keep"
			}) {
				t.Errorf("chart %s has no class %s as it is made elsewhere", chart, want.Name)
			}
		}
	}
}
