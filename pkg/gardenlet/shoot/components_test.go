package shoot

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// One line in a list brings a component into the plan with its image, into the flow, and among what must be healthy.
func TestAComponentIsOneLine(t *testing.T) {
	nothing := func(context.Context, *components.Builder, any) ([]client.Object, error) { return nil, nil }
	decide := func(f component.Facts) any { return "decided for " + f.Namespace }
	controlPlane, system := components.ControlPlane, components.System
	t.Cleanup(func() { components.ControlPlane, components.System = controlPlane, system })
	components.ControlPlane = append(slices.Clip(controlPlane), components.Component{
		Name: "pretended", Images: []string{"pretended"}, Companion: true,
		Recipe: components.Recipe{
			Decide: decide, Build: func(*components.Builder, any) component.Component { return nil },
		},
		LeftOut: func(shoot *gardencorev1beta1.ShootSpec) bool { return len(shoot.Provider.Workers) == 0 },
	})
	components.System = append(slices.Clip(system),
		components.Component{
			Name: "shoot-core-pretended", Recipe: components.Recipe{Decide: decide, Objects: nothing},
		})
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		inFlow string
		isPart bool
	}{
		"workers":    {func(*plan.Inputs) {}, "Waiting until pretended is ready <- ", true},
		"workerless": {plantest.Workerless, "Waiting until pretended is ready (skipped) <- ", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := operation(t, test.change)
			if o.Plan.Images["pretended"] == "" || o.Plan.Has("pretended") != test.isPart ||
				!o.Plan.Has("shoot-core-pretended") {
				t.Errorf("planned: %q, images %q", o.Plan.Components, o.Plan.Images)
			}
			if _, decided := o.Plan.Values["pretended"]; decided != test.isPart ||
				o.Plan.Values["shoot-core-pretended"] != "decided for "+o.Plan.Namespace {
				t.Errorf("decided: %v", o.Plan.Values)
			}
			graph, err := o.ReconcileFlow()
			if err != nil {
				t.Fatal(err)
			}
			if flow := graph.String(); !strings.Contains(flow, test.inFlow) ||
				!strings.Contains(flow, "Deploying shoot-core-pretended <- ") {
				t.Errorf("the flow is\n%s", flow)
			}
		})
	}
}
