package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsSeedLost tells whether an operator has confirmed that the cluster of a seed is gone for good, and said why.
func IsSeedLost(seed *Seed) bool {
	return strings.TrimSpace(seed.Annotations[AnnotationConfirmationSeedLost]) != ""
}

// IsRestoring tells whether the control plane of a shoot that was lost with its seed is not whole again yet.
func IsRestoring(shoot *Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.Type == LastOperationTypeRestore && last.State != LastOperationStateSucceeded
}

// BeginRestore is the status of a shoot from when its control plane is to be restored on another seed: no gardenlet has
// it. That it was moved once is remembered, as its etcd must not begin empty from then on.
func (s *ShootStatus) BeginRestore(from, to string, now metav1.Time) {
	s.SeedName, s.LastErrors, s.RetryCycleStartTime = nil, nil, nil
	s.MigrationStartTime = &now
	s.LastOperation = &LastOperation{
		Type: LastOperationTypeRestore, State: LastOperationStatePending, LastUpdateTime: now,
		Description: "The control plane, which was on seed " + from + ", is to be restored on seed " + to + ".",
	}
}
