package admission

import (
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// TestAttackForgedStatus plays a seed that writes into the status of its shoot whose control plane it is.
func TestAttackForgedStatus(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1beta1.Shoot)
		want   []string
	}{
		"what gardenlet writes": {func(s *corev1beta1.Shoot) {
			s.Status = corev1beta1.ShootStatus{TechnicalID: "shoot--demo--member1", UID: s.UID, SeedName: s.Spec.SeedName}
		}, nil},
		"nothing":                          {func(*corev1beta1.Shoot) {}, nil},
		"namespace of the seed's system":   {func(s *corev1beta1.Shoot) { s.Status.TechnicalID = "garden" }, []string{`status.technicalID "shoot--demo--member1"`}},
		"namespace of another's shoot":     {func(s *corev1beta1.Shoot) { s.Status.TechnicalID = "shoot--other--member1" }, []string{"status.technicalID must be"}},
		"namespace of another own shoot":   {func(s *corev1beta1.Shoot) { s.Status.TechnicalID = "shoot--demo--member2" }, []string{"status.technicalID must be"}},
		"backups of another's shoot":       {func(s *corev1beta1.Shoot) { s.Status.UID = "theirs" }, []string{"status.uid must be metadata.uid"}},
		"rights of a seed that has it not": {func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("accomplice") }, []string{`status.seedName must be spec.seedName, "one"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := aShoot(func(s *corev1beta1.Shoot) { s.UID, s.Spec.SeedName = "own", ptr.To("one") })
			shoot := old.DeepCopy()
			test.change(shoot)
			errs := validateStatusIdentity(shoot, old, true)
			if shoot.Status.TechnicalID != "" {
				errs = append(errs, validateTechnicalID(shoot, aProject())...)
			}
			checkErrors(t, errs, test.want...)
		})
	}
}
