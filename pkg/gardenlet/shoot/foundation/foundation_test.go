package foundation

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func TestPodsOfShootsWithoutWorkersAreHeldToTheRestrictedLevel(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		want   string
	}{
		"with workers":    {func(*plan.Inputs) {}, component.PodSecurityPrivileged},
		"without workers": {plantest.Workerless, component.PodSecurityRestricted},
	} {
		in := plantest.Inputs()
		test.change(in)
		f := &Foundation{Plan: plantest.Plan(t, in), SeedSpec: &in.Seed.Spec}
		if got := f.namespace().Labels[component.LabelPodSecurity]; got != test.want {
			t.Errorf("%s: level %q, want %q", name, got, test.want)
		}
	}
}
