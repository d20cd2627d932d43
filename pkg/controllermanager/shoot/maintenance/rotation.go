package maintenance

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// dueRotations returns the operations that replace the credentials whose time has come by
// spec.maintenance.autoRotation. What the API would refuse now waits for the next window.
func dueRotations(shoot *gardencorev1beta1.Shoot, now time.Time) []string {
	if shoot.Spec.Maintenance == nil || shoot.Spec.Maintenance.AutoRotation == nil ||
		shoot.Spec.Maintenance.AutoRotation.Credentials == nil {
		return nil
	}
	periods, done := shoot.Spec.Maintenance.AutoRotation.Credentials, &gardencorev1beta1.ShootCredentialsRotation{}
	if credentials := shoot.Status.Credentials; credentials != nil && credentials.Rotation != nil {
		done = credentials.Rotation
	}
	var encryptionKey, sshKeypair *metav1.Time
	if done.ETCDEncryptionKey != nil {
		encryptionKey = done.ETCDEncryptionKey.LastInitiationTime
	}
	if done.SSHKeypair != nil {
		sshKeypair = done.SSHKeypair.LastInitiationTime
	}
	keypairPeriod := periods.SSHKeypair
	if gardencorev1beta1.IsWorkerless(shoot) || !gardencorev1beta1.SSHAccessEnabled(&shoot.Spec) {
		keypairPeriod = nil
	}
	var due []string
	for _, one := range []struct {
		operation string
		config    *gardencorev1beta1.MaintenanceRotationConfig
		last      *metav1.Time
	}{
		{gardencorev1beta1.OperationRotateETCDEncryptionKey, periods.ETCDEncryptionKey, encryptionKey},
		{gardencorev1beta1.ShootOperationRotateSSHKeypair, keypairPeriod, sshKeypair},
	} {
		if isDue(one.config, one.last, shoot.CreationTimestamp, now) &&
			gardencorev1beta1.OperationProblem(shoot, one.operation) == "" {
			due = append(due, one.operation)
		}
	}
	return due
}

// isDue tells whether a credential is older than its period; one that was never rotated is as old as the shoot.
func isDue(config *gardencorev1beta1.MaintenanceRotationConfig, last *metav1.Time, created metav1.Time,
	now time.Time) bool {
	if config == nil || config.RotationPeriod == nil || config.RotationPeriod.Duration <= 0 {
		return false
	}
	if last == nil {
		last = &created
	}
	return !last.IsZero() && !now.Before(last.Add(config.RotationPeriod.Duration))
}

// rotate starts the rotations that are due, and tells which.
func rotate(shoot *gardencorev1beta1.Shoot, now time.Time) []string {
	var told []string
	for _, operation := range dueRotations(shoot, now) {
		add(shoot, operation)
		told = append(told, fmt.Sprintf("Operation %q started: its rotation period is over", operation))
	}
	return told
}
