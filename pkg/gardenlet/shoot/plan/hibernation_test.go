package plan

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestPlanHibernation(t *testing.T) {
	for _, test := range []struct {
		name   string
		wanted *bool
		status bool
		asleep bool
		want   Hibernation
	}{
		{"awake", nil, false, false, Awake},
		{"kept awake", new(false), false, false, Awake},
		{"created asleep", new(true), false, false, FallingAsleep},
		{"falls asleep", new(true), false, true, Asleep},
		{"sleeps", new(true), true, true, Asleep},
		{"wakes up", new(false), true, true, Awake},
		{"sleeps again before it was awake", new(true), true, false, FallingAsleep},
	} {
		shoot := &gardencorev1beta1.Shoot{
			Spec: gardencorev1beta1.ShootSpec{Hibernation: &gardencorev1beta1.Hibernation{Enabled: test.wanted}},
		}
		shoot.Status.IsHibernated = test.status
		if got := planHibernation(shoot, test.asleep); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
