package admission

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// TestAttackForgedStatus plays a seed that writes into the status of its shoot whose control plane it is.
func TestAttackForgedStatus(t *testing.T) {
	plugin := newShootValidator()
	plugin.SetDependencies(&Dependencies{Reader: objects{"projects /demo": aProject()}})
	tests := map[string]struct {
		change func(*gardencorev1beta1.Shoot)
		want   string
	}{
		"what gardenlet writes": {func(s *gardencorev1beta1.Shoot) {
			s.Status = gardencorev1beta1.ShootStatus{
				TechnicalID: "shoot--demo--member1", UID: s.UID, SeedName: s.Spec.SeedName,
			}
		}, ""},
		"nothing": {func(*gardencorev1beta1.Shoot) {}, ""},
		"namespace of the seed's system": {
			func(s *gardencorev1beta1.Shoot) { s.Status.TechnicalID = "garden" },
			`status.technicalID: Invalid value: "garden": must be "shoot--demo--member1"`,
		},
		"namespace of another's shoot": {
			func(s *gardencorev1beta1.Shoot) { s.Status.TechnicalID = "shoot--other--member1" },
			`"shoot--other--member1": must be "shoot--demo--member1"`,
		},
		"namespace of another own shoot": {
			func(s *gardencorev1beta1.Shoot) { s.Status.TechnicalID = "shoot--demo--member2" },
			`"shoot--demo--member2": must be "shoot--demo--member1"`,
		},
		"backups of another's shoot": {
			func(s *gardencorev1beta1.Shoot) { s.Status.UID = "theirs" },
			`status.uid: Invalid value: "theirs": must be metadata.uid, own`,
		},
		"rights of a seed that has it not": {
			func(s *gardencorev1beta1.Shoot) { s.Status.SeedName = new("accomplice") },
			`status.seedName: Invalid value: "accomplice": must be spec.seedName, "one"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := aShoot(func(s *gardencorev1beta1.Shoot) { s.UID, s.Spec.SeedName = "own", new("one") })
			shoot := old.DeepCopy()
			test.change(shoot)
			asked := write{gardencorev1beta1.Resource("shoots"), "status", shoot, old, ""}.attributes()
			checkRefusal(t, plugin.Validate(t.Context(), asked, nil), test.want)
		})
	}
}
