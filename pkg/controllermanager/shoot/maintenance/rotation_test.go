package maintenance

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestDueRotations(t *testing.T) {
	const due, sshKeypair = "rotate-etcd-encryption-key", "rotate-ssh-keypair"
	every := func(days int) *gardencorev1beta1.MaintenanceRotationConfig {
		return &gardencorev1beta1.MaintenanceRotationConfig{
			RotationPeriod: &metav1.Duration{Duration: time.Duration(days) * 24 * time.Hour},
		}
	}
	ago := func(days int) *metav1.Time {
		at := metav1.NewTime(now.Add(-time.Duration(days) * 24 * time.Hour))
		return &at
	}
	for name, test := range map[string]struct {
		change func(*gardencorev1beta1.Shoot)
		want   string
	}{
		"as old as the shoot": {func(*gardencorev1beta1.Shoot) {}, due},
		"young shoot":         {func(s *gardencorev1beta1.Shoot) { s.CreationTimestamp = *ago(6) }, ""},
		"turned off": {func(s *gardencorev1beta1.Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials.ETCDEncryptionKey = every(0)
		}, ""},
		"rotated lately": {func(s *gardencorev1beta1.Shoot) {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					ETCDEncryptionKey: &gardencorev1beta1.ETCDEncryptionKeyRotation{
						LastInitiationTime: ago(6), Phase: gardencorev1beta1.RotationCompleted,
					},
				},
			}
		}, ""},
		"rotated long ago": {func(s *gardencorev1beta1.Shoot) {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					ETCDEncryptionKey: &gardencorev1beta1.ETCDEncryptionKeyRotation{
						LastInitiationTime: ago(8), Phase: gardencorev1beta1.RotationCompleted,
					},
				},
			}
		}, due},
		"under way": {func(s *gardencorev1beta1.Shoot) {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					ETCDEncryptionKey: &gardencorev1beta1.ETCDEncryptionKeyRotation{
						LastInitiationTime: ago(8), Phase: gardencorev1beta1.RotationPreparing,
					},
				},
			}
		}, ""},
		"SSH key pair": {
			func(s *gardencorev1beta1.Shoot) { s.Spec.Maintenance.AutoRotation.Credentials.SSHKeypair = every(7) },
			due + " " + sshKeypair,
		},
		"SSH key pair alone, never rotated": {func(s *gardencorev1beta1.Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials = &gardencorev1beta1.MaintenanceCredentialsAutoRotation{
				SSHKeypair: every(7),
			}
		}, sshKeypair},
		"SSH key pair rotated lately": {func(s *gardencorev1beta1.Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials = &gardencorev1beta1.MaintenanceCredentialsAutoRotation{
				SSHKeypair: every(7),
			}
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					SSHKeypair: &gardencorev1beta1.ShootSSHKeypairRotation{LastInitiationTime: ago(6)},
				},
			}
		}, ""},
		"SSH key pair, without access by SSH": {func(s *gardencorev1beta1.Shoot) {
			s.Spec.Maintenance.AutoRotation.Credentials = &gardencorev1beta1.MaintenanceCredentialsAutoRotation{
				SSHKeypair: every(7),
			}
			s.Spec.Provider.WorkersSettings = &gardencorev1beta1.WorkersSettings{
				SSHAccess: &gardencorev1beta1.SSHAccess{Enabled: false},
			}
		}, ""},
		"no rotations": {func(s *gardencorev1beta1.Shoot) { s.Spec.Maintenance.AutoRotation = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := newShoot()
			shoot.CreationTimestamp = *ago(100)
			shoot.Status.LastOperation.Type = gardencorev1beta1.LastOperationTypeReconcile
			shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "pool"}}
			shoot.Spec.Maintenance.AutoRotation = &gardencorev1beta1.MaintenanceAutoRotation{
				Credentials: &gardencorev1beta1.MaintenanceCredentialsAutoRotation{
					ETCDEncryptionKey: every(7),
				},
			}
			test.change(shoot)
			if got := strings.Join(dueRotations(shoot, now), " "); got != test.want {
				t.Errorf("due are %q, want %q", got, test.want)
			}
			Operate(shoot, now)
			for _, operation := range strings.Fields(test.want) {
				if !strings.Contains(shoot.Annotations[gardencorev1beta1.GardenerOperation], operation) {
					t.Errorf("%s was not started: %v", operation, shoot.Annotations)
				}
			}
		})
	}
}
