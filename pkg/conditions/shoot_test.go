package conditions

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestOfShoot(t *testing.T) {
	shoot := func(state gardencorev1beta1.LastOperationState,
		statuses ...gardencorev1beta1.ConditionStatus) *gardencorev1beta1.Shoot {
		s := &gardencorev1beta1.Shoot{
			Status: gardencorev1beta1.ShootStatus{LastOperation: &gardencorev1beta1.LastOperation{State: state}},
		}
		for _, status := range statuses {
			s.Status.Conditions = append(s.Status.Conditions, gardencorev1beta1.Condition{Status: status})
		}
		return s
	}
	failed := shoot("Error", "True")
	failed.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "no credentials"}}
	tests := map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  string
	}{
		"all is well":                   {shoot("Succeeded", "True", "True"), Healthy},
		"recovering":                    {shoot("Succeeded", "True", "Progressing"), Progressing},
		"a failing condition":           {shoot("Succeeded", "Progressing", "False"), Unhealthy},
		"failing counts before unknown": {shoot("Succeeded", "Unknown", "False"), Unhealthy},
		"not checked":                   {shoot("Succeeded", "Progressing", "Unknown"), Unknown},
		"an operation is at work":       {shoot("Processing", "True"), Progressing},
		"an error":                      {failed, Unhealthy},
		"nobody has worked on it":       {&gardencorev1beta1.Shoot{}, Progressing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := OfShoot(test.shoot); got != test.want {
				t.Errorf("status = %s, want %s", got, test.want)
			}
		})
	}
}
