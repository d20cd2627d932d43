package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func registering(resources ...gardencorev1beta1.ControllerResource) gardencorev1beta1.ControllerRegistration {
	return gardencorev1beta1.ControllerRegistration{
		Spec: gardencorev1beta1.ControllerRegistrationSpec{Resources: resources},
	}
}

func TestAutomaticExtensions(t *testing.T) {
	in := plantest.Inputs()
	in.Registrations = append(in.Registrations, registering(gardencorev1beta1.ControllerResource{
		Kind: "Extension", Type: "audit",
		AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeShoot},
	}))
	if p := plantest.Plan(t, in); len(p.Extensions) != 1 || p.Extensions[0].Type != "audit" {
		t.Errorf("extensions are %v", p.Extensions)
	}
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "audit", Disabled: new(true)}}
	if p := plantest.Plan(t, in); len(p.Extensions) != 0 {
		t.Errorf("extensions are %v although it is disabled", p.Extensions)
	}
}

func TestExtensionsAreTreatedAsRegistered(t *testing.T) {
	in := plantest.Inputs()
	in.Registrations = append(in.Registrations, registering(
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "plain"},
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "special",
			ReconcileTimeout: &metav1.Duration{Duration: time.Minute},
			Lifecycle: &gardencorev1beta1.ControllerResourceLifecycle{
				Reconcile: new(gardencorev1beta1.AfterWorker), Delete: new(gardencorev1beta1.AfterKubeAPIServer),
			}},
	))
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "special"}, {Type: "plain"}}
	got := plantest.Plan(t, in).Extensions
	want := []plan.Extension{
		{
			Type: "plain", Lifecycle: gardencorev1beta1.AfterKubeAPIServer,
			DeleteLifecycle: gardencorev1beta1.BeforeKubeAPIServer, Timeout: 3 * time.Minute,
		},
		{
			Type: "special", Lifecycle: gardencorev1beta1.AfterWorker,
			DeleteLifecycle: gardencorev1beta1.AfterKubeAPIServer, Timeout: time.Minute,
		},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v", got)
	}
}
