package trellisctl

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestWakefulness(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		wanted     *bool
		hibernated bool
		want       string
		nodes      string
	}{
		{nil, false, "awake", "1-3"}, {&no, false, "awake", "1-3"}, {&yes, false, "hibernating", "hibernating"},
		{&yes, true, "hibernated", "hibernated"}, {&no, true, "waking up", "waking up"},
	} {
		shoot := &gardencorev1beta1.Shoot{
			Spec: gardencorev1beta1.ShootSpec{Hibernation: &gardencorev1beta1.Hibernation{Enabled: test.wanted}},
		}
		shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Minimum: 1, Maximum: 3}}
		shoot.Status.IsHibernated = test.hibernated
		if got := wakefulness(shoot); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
		if got := nodes(shoot); got != test.nodes {
			t.Errorf("nodes: got %q, want %q", got, test.nodes)
		}
	}
}
