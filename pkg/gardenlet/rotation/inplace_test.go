package rotation

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// A rotation is prepared only when machines know of it that are updated when their owner says so, or have just ceased
// to be: with the old authority forgotten, their kubelets would be locked out.
func TestRotationsWaitForMachinesThatAreUpdatedInPlace(t *testing.T) {
	for operation, waiting := range map[string]gardencorev1beta1.PendingWorkerUpdates{
		"rotate-credentials-start":                         {ManualInPlaceUpdate: []string{"a"}},
		"rotate-credentials-start-without-workers-rollout": {AutoInPlaceUpdate: []string{"a"}},
	} {
		shoot := shootWith("a")
		status := &gardencorev1beta1.ShootStatus{
			InPlaceUpdates: &gardencorev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &waiting},
		}
		Begin(shoot, []string{operation}, at(0))(status)
		Begin(shoot, []string{"rotate-rollout-workers=*"}, at(0))(status)
		for range 2 {
			Finish(shoot, at(1))(status)
			Begin(shoot, []string{"rotate-credentials-complete"}, at(1))(status)
		}
		MachinesUpdated(status, at(2))
		if got := describe(status); got != "WaitingForWorkersRollout 0 . . ." {
			t.Errorf("%s: got %s", operation, got)
		}
		if phase := Phase(status.Credentials.Rotation,
			ETCDEncryptionKey); phase != gardencorev1beta1.RotationCompleted {
			t.Errorf("%s: what machines do not hold waits for them: %s", operation, phase)
		}
		status.InPlaceUpdates = nil
		MachinesUpdated(status, at(3))
		if got := describe(status); got != "Prepared 0 3 . ." {
			t.Errorf("%s: got %s", operation, got)
		}
	}
}

// Pools that are rolled out later by an operation of their own are still waited for when all others are updated.
func TestMachinesUpdatedDoesNotReplaceARollout(t *testing.T) {
	shoot, status := shootWith("a"), &gardencorev1beta1.ShootStatus{}
	Begin(shoot, []string{"rotate-ca-start-without-workers-rollout"}, at(0))(status)
	Finish(shoot, at(1))(status)
	MachinesUpdated(status, at(2))
	if got := describe(status); got != "WaitingForWorkersRollout 0 . . . a@." {
		t.Errorf("got %s", got)
	}
	MachinesUpdated(&gardencorev1beta1.ShootStatus{}, at(0)) // never rotated
}
