package shoot

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/vpnshoot"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// The records of a shoot lead to where its exposure class is served, and its machines connect to there.
func TestGatewayOf(t *testing.T) {
	class := func(name, handler string) *gardencorev1beta1.ExposureClass {
		return &gardencorev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler}
	}
	garden := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).
		WithObjects(class("public", "internet"), class("other", "unknown"))
	r := &Reconciler{
		Garden: garden.Build(),
		Config: &config.Configuration{
			SeedConfig: &config.SeedConfig{}, Gateway: plantest.Gateway(),
			ExposureClassHandlers: []config.ExposureClassHandler{{Name: "internet", Address: "lb.example"}},
		},
	}
	for _, test := range []struct {
		name  string
		class *string
		want  string
		err   string
	}{
		{"no class", nil, plantest.Gateway().Address, ""},
		{"a class", new("public"), "lb.example", ""},
		{
			"a class that the seed does not have", new("other"), "",
			`spec.exposureClassName "other": exposureClassHandlers`,
		},
		{"a class that is not there", new("none"), "", "reading ExposureClass none"},
	} {
		in := plantest.Inputs()
		in.Shoot.Spec.ExposureClassName = test.class
		got, err := r.gatewayOf(t.Context(), in.Shoot)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(in, got, plantest.Images())
		if err != nil {
			t.Fatal(err)
		}
		machines := components.ValuesOf[vpnshoot.Values](p.Values, components.VPNShoot).Endpoint
		if p.External.Value != test.want || !strings.HasPrefix(machines, test.want+":") {
			t.Errorf("%s: records lead to %s, machines to %s", test.name, p.External.Value, machines)
		}
	}
}
