package admission

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestNeededTasks(t *testing.T) {
	hibernated := &gardencorev1beta1.Shoot{
		Spec: gardencorev1beta1.ShootSpec{Hibernation: &gardencorev1beta1.Hibernation{Enabled: new(true)}},
	}
	awake := &gardencorev1beta1.Shoot{}
	renamed := &gardencorev1beta1.Shoot{
		Spec: gardencorev1beta1.ShootSpec{DNS: &gardencorev1beta1.DNS{Domain: new("a.example")}},
	}
	dns := []string{taskDNSInternal, taskDNSExternal, taskDNSIngress}
	tests := map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       []string
	}{
		"new":          {awake, nil, nil},
		"unchanged":    {awake, awake, nil},
		"wakes up":     {awake, hibernated, append([]string{taskInfrastructure}, dns...)},
		"falls asleep": {hibernated, awake, nil},
		"renamed":      {renamed, awake, dns},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := neededTasks(test.shoot, test.old); !slices.Equal(got, test.want) {
				t.Errorf("tasks = %v, want %v", got, test.want)
			}
		})
	}
	if got, want := joinTasks("b, a", []string{"c", "a"}), "a,b,c"; got != want {
		t.Errorf("joined = %q, want %q", got, want)
	}
}
