package shoot

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/encryption"
)

// TestAttackWorksInEtcd plays the holder of a disk of etcd, or of a backup: what a fleet places in members lies there in Works.
func TestAttackWorksInEtcd(t *testing.T) {
	applied := func(in *Inputs) {
		workerless(in)
		in.Shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{EncryptionAtRest: &gardencorev1beta1.EncryptionAtRest{
			Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "aescbc"},
		}}
	}
	for name, test := range map[string]struct {
		change           func(*Inputs)
		encrypts, begins bool
	}{
		"a new fleet":                        {workerless, true, false},
		"a fleet that has them in clear":     {applied, true, true},
		"a shoot, which has none":            {func(*Inputs) {}, false, false},
		"a workerless shoot that is no more": {func(in *Inputs) { workerless(in); in.Shoot.Spec.Extensions = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := operation(t, test.change).Plan
			scheme, from := plan.APIServer.encryptionScheme(), plan.Rotation.Encryption.From
			if got := slices.Contains(scheme.Resources, "works.work.karmada.io"); got != test.encrypts {
				t.Errorf("encrypted are %v", scheme.Resources)
			}
			if (from != nil) != test.begins || from != nil && !from.Equal(encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"secrets"}}) {
				t.Errorf("a change from %v", from)
			}
		})
	}
}
