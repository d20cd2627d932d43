package plan_test

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// TestAttackWorksInEtcd plays the holder of a disk of etcd, or of a backup: what a fleet places in members lies there
// in Works.
func TestAttackWorksInEtcd(t *testing.T) {
	applied := func(in *plan.Inputs) {
		plantest.Workerless(in)
		in.Shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{
			EncryptionAtRest: &gardencorev1beta1.EncryptionAtRest{
				Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "aescbc"},
			},
		}
	}
	for name, test := range map[string]struct {
		change           func(*plan.Inputs)
		encrypts, begins bool
	}{
		"a new fleet":                    {plantest.Workerless, true, false},
		"a fleet that has them in clear": {applied, true, true},
		"a shoot, which has none":        {func(*plan.Inputs) {}, false, false},
		"a workerless shoot that is no more": {
			func(in *plan.Inputs) { plantest.Workerless(in); in.Shoot.Spec.Extensions = nil }, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plantest.New(t, test.change)
			scheme, from := p.APIServer().Encryption.Scheme(), p.Rotation.Encryption.From
			if got := slices.Contains(scheme.Resources, "works.work.karmada.io"); got != test.encrypts {
				t.Errorf("encrypted are %v", scheme.Resources)
			}
			if (from != nil) != test.begins ||
				from != nil && !from.Equal(encryption.Scheme{
					Provider: encryption.AESCBC, Resources: []string{"secrets"},
				}) {
				t.Errorf("a change from %v", from)
			}
		})
	}
}
