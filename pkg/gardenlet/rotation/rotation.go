// Package rotation decides how far the rotations of a shoot's credentials are: what an operation that was asked for
// begins, and what the end of a reconciliation completes. It computes statuses only; what a phase means for
// certificates, keys and machines is said by gardenlet's plan of the shoot.
package rotation

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Operations returns which of the operations that are asked of a shoot belong to this package.
func Operations(shoot *gardencorev1beta1.Shoot) []string {
	all := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	return slices.DeleteFunc(all, func(operation string) bool { return !strings.HasPrefix(operation, "rotate-") })
}

// Begin enters the first phase of everything that the operations ask for, and the second half of what completes by
// itself. What is under way already stays as it is, so that operations may be begun twice.
func Begin(shoot *gardencorev1beta1.Shoot, operations []string, now metav1.Time) func(*gardencorev1beta1.ShootStatus) {
	return func(status *gardencorev1beta1.ShootStatus) {
		if len(operations) > 0 && status.Credentials == nil {
			status.Credentials = &gardencorev1beta1.ShootCredentials{}
		}
		if len(operations) > 0 && status.Credentials.Rotation == nil {
			status.Credentials.Rotation = &gardencorev1beta1.ShootCredentialsRotation{}
		}
		if status.Credentials == nil || status.Credentials.Rotation == nil {
			return
		}
		b := beginning{shoot: shoot, rotation: status.Credentials.Rotation, now: now}
		for _, operation := range operations {
			b.begin(operation)
		}
		if key := b.rotation.ETCDEncryptionKey; key != nil && ptr.Deref(key.AutoCompleteAfterPrepared, false) {
			b.complete(ETCDEncryptionKey)
		}
	}
}

// beginning is the start of rotations at one time.
type beginning struct {
	shoot    *gardencorev1beta1.Shoot
	rotation *gardencorev1beta1.ShootCredentialsRotation
	now      metav1.Time
}

func (b beginning) begin(operation string) {
	if name, pools, found := strings.Cut(operation, "="); found &&
		name == gardencorev1beta1.OperationRotateRolloutWorkers {
		b.rollOut(strings.Split(pools, ","))
		return
	}
	switch operation {
	case gardencorev1beta1.OperationRotateCredentialsStart,
		gardencorev1beta1.OperationRotateCredentialsStartWithoutWorkersRollout:
		withRollout := operation == gardencorev1beta1.OperationRotateCredentialsStart
		b.start(b.authorities(), withRollout)
		b.start(b.serviceAccountKey(), withRollout)
		b.startEncryptionKey(true)
		b.startSSHKeypair()
	case gardencorev1beta1.OperationRotateCredentialsComplete:
		b.complete(CertificateAuthorities, ServiceAccountKey, ETCDEncryptionKey)
	case gardencorev1beta1.OperationRotateCAStart, gardencorev1beta1.OperationRotateCAStartWithoutWorkersRollout:
		b.start(b.authorities(), operation == gardencorev1beta1.OperationRotateCAStart)
	case gardencorev1beta1.OperationRotateCAComplete:
		b.complete(CertificateAuthorities)
	case gardencorev1beta1.OperationRotateServiceAccountKeyStart,
		gardencorev1beta1.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
		b.start(b.serviceAccountKey(), operation == gardencorev1beta1.OperationRotateServiceAccountKeyStart)
	case gardencorev1beta1.OperationRotateServiceAccountKeyComplete:
		b.complete(ServiceAccountKey)
	case gardencorev1beta1.OperationRotateETCDEncryptionKey, gardencorev1beta1.OperationRotateETCDEncryptionKeyStart:
		b.startEncryptionKey(operation == gardencorev1beta1.OperationRotateETCDEncryptionKey)
	case gardencorev1beta1.OperationRotateETCDEncryptionKeyComplete:
		b.complete(ETCDEncryptionKey)
	case gardencorev1beta1.ShootOperationRotateSSHKeypair:
		b.startSSHKeypair()
	}
}

// start begins a rotation unless it is under way.
func (b beginning) start(r twoPhases, rollOutWorkers bool) {
	if *r.phase != "" && *r.phase != gardencorev1beta1.RotationCompleted {
		return
	}
	*r.phase = gardencorev1beta1.RotationPreparing
	if !rollOutWorkers && r.pending != nil {
		*r.phase = gardencorev1beta1.RotationPreparingWithoutWorkersRollout
		*r.pending = b.everyPool(*r.initiated)
	}
	*r.initiated, *r.prepared, *r.completing = b.now.DeepCopy(), nil, nil
}

// everyPool lists all pools, with the rotation that their machines know of.
func (b beginning) everyPool(initiated *metav1.Time) []gardencorev1beta1.PendingWorkersRollout {
	var pending []gardencorev1beta1.PendingWorkersRollout
	for _, worker := range b.shoot.Spec.Provider.Workers {
		pending = append(pending, gardencorev1beta1.PendingWorkersRollout{
			Name: worker.Name, LastInitiationTime: initiated.DeepCopy(),
		})
	}
	return pending
}

// startEncryptionKey begins the rotation of the key for encryption at rest, whose second half may follow by itself.
func (b beginning) startEncryptionKey(completesByItself bool) {
	r := b.encryptionKey()
	if *r.phase != "" && *r.phase != gardencorev1beta1.RotationCompleted {
		return
	}
	b.start(r, true)
	b.rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared = &completesByItself
}

func (b beginning) startSSHKeypair() {
	if gardencorev1beta1.IsWorkerless(b.shoot) || !gardencorev1beta1.SSHAccessEnabled(&b.shoot.Spec) {
		return
	}
	if b.rotation.SSHKeypair == nil {
		b.rotation.SSHKeypair = &gardencorev1beta1.ShootSSHKeypairRotation{}
	}
	if r := b.rotation.SSHKeypair; !isUnderWay(r.LastInitiationTime, r.LastCompletionTime) {
		r.LastInitiationTime = b.now.DeepCopy()
	}
}

// complete begins the second half of rotations whose first half is done.
func (b beginning) complete(credentials ...Credential) {
	for _, r := range present(b.rotation) {
		if slices.Contains(credentials, r.credential) && *r.phase == gardencorev1beta1.RotationPrepared {
			*r.phase, *r.completing = gardencorev1beta1.RotationCompleting, b.now.DeepCopy()
		}
	}
}

// rollOut has the machines of pools replaced that a start without workers' rollout spared; "*" stands for all of them.
func (b beginning) rollOut(pools []string) {
	for _, r := range present(b.rotation) {
		if r.pending == nil {
			continue
		}
		*r.pending = slices.DeleteFunc(*r.pending, func(p gardencorev1beta1.PendingWorkersRollout) bool {
			return slices.Contains(pools, p.Name) || slices.Contains(pools, "*")
		})
	}
}

// Finish is the change of the status after a reconciliation without errors: it has brought about what the phases stand
// for.
func Finish(shoot *gardencorev1beta1.Shoot, now metav1.Time) func(*gardencorev1beta1.ShootStatus) {
	return func(status *gardencorev1beta1.ShootStatus) {
		if status.Credentials == nil || status.Credentials.Rotation == nil {
			return
		}
		rotation := status.Credentials.Rotation
		for _, r := range present(rotation) {
			r.forgetPools(shoot.Spec.Provider.Workers)
			r.finish(now, machinesWait(status))
		}
		if ssh := rotation.SSHKeypair; ssh != nil && isUnderWay(ssh.LastInitiationTime, ssh.LastCompletionTime) {
			ssh.LastCompletionTime = now.DeepCopy()
		}
	}
}

// MachinesUpdated is the change of the status when the last machine is updated of pools that are updated in place:
// rotations that waited for just that are prepared.
func MachinesUpdated(status *gardencorev1beta1.ShootStatus, now metav1.Time) {
	if status.Credentials == nil || machinesWait(status) {
		return
	}
	for _, r := range present(status.Credentials.Rotation) {
		if *r.phase == gardencorev1beta1.RotationWaitingForWorkersRollout {
			r.finish(now, false)
		}
	}
}

// machinesWait tells whether machines of some pool are to be updated in place still.
func machinesWait(status *gardencorev1beta1.ShootStatus) bool {
	if status.InPlaceUpdates == nil || status.InPlaceUpdates.PendingWorkerUpdates == nil {
		return false
	}
	pending := status.InPlaceUpdates.PendingWorkerUpdates
	return len(pending.AutoInPlaceUpdate)+len(pending.ManualInPlaceUpdate) > 0
}

// isUnderWay tells whether a rotation in one go has begun and not ended.
func isUnderWay(initiated, completed *metav1.Time) bool {
	return initiated != nil && (completed == nil || completed.Before(initiated))
}

// Phase returns how far a rotation in two halves is; empty if there never was one.
func Phase(rotation *gardencorev1beta1.ShootCredentialsRotation,
	of Credential) gardencorev1beta1.CredentialsRotationPhase {
	if r := find(rotation, of); r != nil {
		return *r.phase
	}
	return ""
}

// Initiated returns when the last rotation began; nil if there never was one.
func Initiated(rotation *gardencorev1beta1.ShootCredentialsRotation, of Credential) *metav1.Time {
	if r := find(rotation, of); r != nil {
		return *r.initiated
	}
	return nil
}

// InitiatedFor returns when the last rotation began that the machines of a pool are to know of; nil if there is none.
func InitiatedFor(rotation *gardencorev1beta1.ShootCredentialsRotation, of Credential, pool string) *metav1.Time {
	r := find(rotation, of)
	if r == nil {
		return nil
	}
	if r.pending != nil {
		for _, p := range *r.pending {
			if p.Name == pool {
				return p.LastInitiationTime
			}
		}
	}
	return *r.initiated
}

// Credential is one that is rotated in two halves.
type Credential string

// The credentials that are rotated in two halves.
const (
	CertificateAuthorities Credential = "certificateAuthorities"
	ServiceAccountKey      Credential = "serviceAccountKey"
	ETCDEncryptionKey      Credential = "etcdEncryptionKey"
)

// KeepsOld tells whether the old credential is still accepted in a phase.
func KeepsOld(phase gardencorev1beta1.CredentialsRotationPhase) bool {
	switch phase {
	case "", gardencorev1beta1.RotationCompleting, gardencorev1beta1.RotationCompleted:
		return false
	}
	return true
}

// Introduces tells whether the new credential is made known in a phase, beside the old one.
func Introduces(phase gardencorev1beta1.CredentialsRotationPhase) bool {
	return phase == gardencorev1beta1.RotationPreparing ||
		phase == gardencorev1beta1.RotationPreparingWithoutWorkersRollout
}
