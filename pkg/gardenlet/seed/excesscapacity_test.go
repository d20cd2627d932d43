package seed

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

func aReservation() *gardencorev1beta1.SeedSettingExcessCapacityReservation {
	return &gardencorev1beta1.SeedSettingExcessCapacityReservation{Enabled: new(true),
		Configs: []gardencorev1beta1.SeedSettingExcessCapacityReservationConfig{
			{
				Resources: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("6Gi"),
				},
			},
			{
				Resources:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
				NodeSelector: map[string]string{"pool": "control-planes"},
				Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
			},
		}}
}

func TestReservation(t *testing.T) {
	golden.Check(t, "reservation", reservation(aReservation(), "pause:1")...)
	off := aReservation()
	off.Enabled = new(false)
	if len(reservation(off, "pause:1")) != 0 || len(reservation(nil, "pause:1")) != 0 {
		t.Error("capacity is reserved that nobody asks for")
	}
}

func TestReservationIsGivenUp(t *testing.T) {
	images, err := imagevector.Load()
	if err != nil {
		t.Fatal(err)
	}
	system := &System{Seed: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), Images: images}
	for _, step := range []struct {
		change func(*gardencorev1beta1.SeedSettingExcessCapacityReservation)
		want   int
	}{
		{func(*gardencorev1beta1.SeedSettingExcessCapacityReservation) {}, 2},
		{func(s *gardencorev1beta1.SeedSettingExcessCapacityReservation) { s.Configs = s.Configs[:1] }, 1},
		{func(s *gardencorev1beta1.SeedSettingExcessCapacityReservation) { s.Enabled = new(false) }, 0},
	} {
		setting := aReservation()
		step.change(setting)
		seed := &gardencorev1beta1.Seed{
			Spec: gardencorev1beta1.SeedSpec{
				Settings: &gardencorev1beta1.SeedSettings{ExcessCapacityReservation: setting},
			},
		}
		if err := system.reserveCapacity(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
		list := &appsv1.DeploymentList{}
		if err := system.Seed.List(t.Context(), list, client.InNamespace("garden")); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != step.want {
			t.Errorf("%d Deployments, want %d", len(list.Items), step.want)
		}
	}
}
