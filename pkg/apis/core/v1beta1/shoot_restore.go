package v1beta1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestoreOperation returns the operation of a Shoot that asks for the state that its etcd had at a time, and that time;
// an empty one if there is none.
func RestoreOperation(shoot *Shoot) (operation string, to time.Time, err error) {
	for _, operation := range SplitOperations(shoot.Annotations[GardenerOperation]) {
		if text, ok := restoredTime(operation); ok {
			to, err := time.Parse(time.RFC3339, text)
			return operation, to, err
		}
	}
	return "", time.Time{}, nil
}

// IsRestoreOperation tells whether an operation asks for the state that etcd had at a time.
func IsRestoreOperation(operation string) bool {
	_, ok := restoredTime(operation)
	return ok
}

func restoredTime(operation string) (string, bool) {
	return strings.CutPrefix(operation, ShootOperationRestoreETCD+"=")
}

// restoreProblem tells why the state of a time cannot be restored; nothing when it can.
func (v operationsValidator) restoreProblem(text string) string {
	to, err := time.Parse(time.RFC3339, text)
	switch {
	case !v.atOnce:
		return "cannot wait for maintenance; use annotation " + GardenerOperation
	case err != nil:
		return fmt.Sprintf("names %q, which is no time such as 2006-01-02T15:04:05Z", text)
	case v.shoot.DeletionTimestamp != nil:
		return "is not possible: the shoot is being deleted"
	case sleeps(v.shoot) || v.shoot.Status.IsHibernated:
		return "is not possible while the cluster sleeps; wake it up first"
	case !hasBeenCreated(v.shoot.Status.LastOperation):
		return "is possible once the cluster has been created; wait until status.lastOperation is Create Succeeded"
	case to.Before(v.shoot.CreationTimestamp.Time):
		return "names a time before the shoot was created, " + rfc3339(v.shoot.CreationTimestamp)
	}
	return v.otherKeyProblem(to)
}

// otherKeyProblem: what was stored before the key for encryption at rest was replaced cannot be read any more.
func (v operationsValidator) otherKeyProblem(to time.Time) string {
	key := rotationOf(v.shoot).ETCDEncryptionKey
	if key == nil {
		return ""
	}
	if key.Phase != "" && key.Phase != RotationCompleted {
		return fmt.Sprintf("is possible when the key for encryption at rest is not being rotated; that is %s",
			key.Phase)
	}
	for _, at := range []*metav1.Time{key.LastInitiationTime, key.LastCompletionTime} {
		if at != nil && to.Before(at.Time) {
			return fmt.Sprintf("names a time before the key for encryption at rest was replaced, %s: what was stored "+
				"then cannot be read", rfc3339(*at))
		}
	}
	return ""
}

func rfc3339(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }
