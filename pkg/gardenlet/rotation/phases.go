package rotation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// twoPhases is the status of a rotation in two halves, whatever its type.
type twoPhases struct {
	credential Credential
	phase      *gardencorev1beta1.CredentialsRotationPhase
	// initiated and prepared, completing and completed: the begin and the end of each half.
	initiated, prepared, completing, completed **metav1.Time
	// pending are the pools whose machines do not know of the rotation; nil for what machines do not hold.
	pending *[]gardencorev1beta1.PendingWorkersRollout
}

func (b beginning) authorities() twoPhases {
	if b.rotation.CertificateAuthorities == nil {
		b.rotation.CertificateAuthorities = &gardencorev1beta1.CARotation{}
	}
	return ofAuthorities(b.rotation.CertificateAuthorities)
}

func (b beginning) serviceAccountKey() twoPhases {
	if b.rotation.ServiceAccountKey == nil {
		b.rotation.ServiceAccountKey = &gardencorev1beta1.ServiceAccountKeyRotation{}
	}
	return ofServiceAccountKey(b.rotation.ServiceAccountKey)
}

func (b beginning) encryptionKey() twoPhases {
	if b.rotation.ETCDEncryptionKey == nil {
		b.rotation.ETCDEncryptionKey = &gardencorev1beta1.ETCDEncryptionKeyRotation{}
	}
	return ofEncryptionKey(b.rotation.ETCDEncryptionKey)
}

// find returns a rotation; nil if it was never asked for.
func find(rotation *gardencorev1beta1.ShootCredentialsRotation, of Credential) *twoPhases {
	for _, r := range present(rotation) {
		if r.credential == of {
			return &r
		}
	}
	return nil
}

// present are the rotations in two halves that were ever asked for.
func present(rotation *gardencorev1beta1.ShootCredentialsRotation) []twoPhases {
	var all []twoPhases
	if rotation == nil {
		return nil
	}
	if rotation.CertificateAuthorities != nil {
		all = append(all, ofAuthorities(rotation.CertificateAuthorities))
	}
	if rotation.ServiceAccountKey != nil {
		all = append(all, ofServiceAccountKey(rotation.ServiceAccountKey))
	}
	if rotation.ETCDEncryptionKey != nil {
		all = append(all, ofEncryptionKey(rotation.ETCDEncryptionKey))
	}
	return all
}

func ofAuthorities(r *gardencorev1beta1.CARotation) twoPhases {
	return twoPhases{
		credential: CertificateAuthorities, phase: &r.Phase, pending: &r.PendingWorkersRollouts,
		initiated: &r.LastInitiationTime, prepared: &r.LastInitiationFinishedTime,
		completing: &r.LastCompletionTriggeredTime, completed: &r.LastCompletionTime,
	}
}

func ofServiceAccountKey(r *gardencorev1beta1.ServiceAccountKeyRotation) twoPhases {
	return twoPhases{
		credential: ServiceAccountKey, phase: &r.Phase, pending: &r.PendingWorkersRollouts,
		initiated: &r.LastInitiationTime, prepared: &r.LastInitiationFinishedTime,
		completing: &r.LastCompletionTriggeredTime, completed: &r.LastCompletionTime,
	}
}

func ofEncryptionKey(r *gardencorev1beta1.ETCDEncryptionKeyRotation) twoPhases {
	return twoPhases{
		credential: ETCDEncryptionKey, phase: &r.Phase,
		initiated: &r.LastInitiationTime, prepared: &r.LastInitiationFinishedTime,
		completing: &r.LastCompletionTriggeredTime, completed: &r.LastCompletionTime,
	}
}

// forgetPools drops pools that the shoot has no more: nobody waits for their machines.
func (r twoPhases) forgetPools(workers []gardencorev1beta1.Worker) {
	if r.pending == nil {
		return
	}
	*r.pending = slices.DeleteFunc(*r.pending, func(p gardencorev1beta1.PendingWorkersRollout) bool {
		return !slices.ContainsFunc(workers,
			func(worker gardencorev1beta1.Worker) bool { return worker.Name == p.Name })
	})
}

// finish enters the phase that follows when what the present one stands for has been brought about. Machines hold what
// has pools that could be pending; with some that are to be updated still, it waits for these.
func (r twoPhases) finish(now metav1.Time, machinesWait bool) {
	if machinesWait && r.pending != nil && *r.phase != gardencorev1beta1.RotationCompleting {
		if *r.phase == gardencorev1beta1.RotationPreparing ||
			*r.phase == gardencorev1beta1.RotationPreparingWithoutWorkersRollout {
			*r.phase = gardencorev1beta1.RotationWaitingForWorkersRollout
		}
		return
	}
	switch *r.phase {
	case gardencorev1beta1.RotationPreparing:
		r.enterPrepared(now)
	case gardencorev1beta1.RotationPreparingWithoutWorkersRollout, gardencorev1beta1.RotationWaitingForWorkersRollout:
		*r.phase = gardencorev1beta1.RotationWaitingForWorkersRollout
		if r.pending == nil || len(*r.pending) == 0 {
			r.enterPrepared(now)
		}
	case gardencorev1beta1.RotationCompleting:
		*r.phase, *r.completed = gardencorev1beta1.RotationCompleted, now.DeepCopy()
		*r.prepared, *r.completing = nil, nil
	}
}

func (r twoPhases) enterPrepared(now metav1.Time) {
	*r.phase, *r.prepared = gardencorev1beta1.RotationPrepared, now.DeepCopy()
}
