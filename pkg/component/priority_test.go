package component

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Names end in the last digits of values, as those that are published do, and are in the order of the values: what
// shoots run themselves comes before the garden, and that before seeds.
func TestPriorityClasses(t *testing.T) {
	var names []string
	last := int32(1000000000)
	for _, object := range slices.Concat(ShootPriorityClasses(), GardenPriorityClasses(), SeedPriorityClasses()) {
		class := object.(*schedulingv1.PriorityClass)
		if class.Value >= last {
			t.Errorf("%s has %d, which is not below %d", class.Name, class.Value, last)
		}
		last = class.Value
		if suffix := fmt.Sprintf("-%d", class.Value%1000); !strings.HasSuffix(class.Name, suffix) &&
			!strings.HasSuffix(class.Name, "-critical") {
			t.Errorf("%s has %d", class.Name, class.Value)
		}
		if class.GlobalDefault || class.PreemptionPolicy != nil || class.Description == "" {
			t.Errorf("%s is %+v", class.Name, class)
		}
		names = append(names, class.Name)
	}
	if len(names) != 20 || slices.Contains(names, "") {
		t.Errorf("the classes are %q", names)
	}
}

// No pod of a control plane has another class than its list says.
func TestHardenedPodHasItsPriorityClass(t *testing.T) {
	deployment := ControlPlaneDeployment(ControlPlaneDeploymentValues{PriorityClass: PriorityControlPlane300})
	if got := deployment.Spec.Template.Spec.PriorityClassName; got != PriorityControlPlane300 {
		t.Errorf("the priority class is %q", got)
	}
}
