package care

import (
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// A pool that its owner updates by hand is told to wait until the last machine is updated; then the rotation that
// waited for it is prepared. Operations say that by themselves.
func TestUpdatesByHandAreSeen(t *testing.T) {
	const manual, hash = gardencorev1beta1.ManualInPlaceUpdate, gardencorev1beta1.AnnotationWorkerInPlaceUpdate
	told := map[string]string{hash: "2"}
	worker := &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "one"},
		Spec: extensionsv1alpha1.WorkerSpec{
			Pools: []extensionsv1alpha1.WorkerPool{{Name: "hand", UpdateStrategy: new(manual), Annotations: told}},
		},
	}
	for name, test := range map[string]struct {
		state   gardencorev1beta1.LastOperationState
		updated int32
		want    gardencorev1beta1.ConditionStatus
		phase   gardencorev1beta1.CredentialsRotationPhase
	}{
		"one is left": {
			gardencorev1beta1.LastOperationStateSucceeded, 1, gardencorev1beta1.ConditionFalse,
			gardencorev1beta1.RotationWaitingForWorkersRollout,
		},
		"all": {
			gardencorev1beta1.LastOperationStateSucceeded, 2, gardencorev1beta1.ConditionTrue,
			gardencorev1beta1.RotationPrepared,
		},
		"all, in an operation": {
			gardencorev1beta1.LastOperationStateProcessing, 2, gardencorev1beta1.ConditionFalse,
			gardencorev1beta1.RotationWaitingForWorkersRollout,
		},
	} {
		deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: worker.Namespace, Name: "hand",
			Labels: map[string]string{gardencorev1beta1.LabelWorkerPool: "hand"},
		}}
		deployment.Spec.Replicas = 2
		deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = told
		deployment.Status.Replicas, deployment.Status.UpdatedReplicas = 2, test.updated
		seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(worker.DeepCopy(), deployment).Build()
		shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "hand", UpdateStrategy: new(manual)}}
		shoot.Status = gardencorev1beta1.ShootStatus{
			TechnicalID: worker.Namespace, LastOperation: &gardencorev1beta1.LastOperation{State: test.state},
			InPlaceUpdates: &gardencorev1beta1.InPlaceUpdatesStatus{
				PendingWorkerUpdates: &gardencorev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"hand"}},
			},
			Credentials: &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
				CertificateAuthorities: &gardencorev1beta1.CARotation{
					Phase: gardencorev1beta1.RotationWaitingForWorkersRollout,
				},
			}},
		}
		c := &Reconciler{Seed: seed}
		change, err := c.updatedInPlace(t.Context(), shoot)
		if err != nil {
			t.Fatal(err)
		}
		change(shoot, time.Unix(1, 0))
		got := conditions.Get(shoot.Status.Constraints, gardencorev1beta1.ShootManualInPlaceWorkersUpdated)
		waits := test.want == gardencorev1beta1.ConditionFalse
		if got == nil || got.Status != test.want ||
			strings.Contains(got.Message, "selected-for-update=true") != waits {
			t.Errorf("%s: got %v", name, got)
		}
		if phase := shoot.Status.Credentials.Rotation.CertificateAuthorities.Phase; phase != test.phase {
			t.Errorf("%s: the rotation is %s", name, phase)
		}
		shoot.Spec.Provider.Workers = nil
		change(shoot, time.Unix(2, 0))
		if len(shoot.Status.Constraints) > 0 || shoot.Status.InPlaceUpdates != nil &&
			test.state != gardencorev1beta1.LastOperationStateProcessing {
			t.Errorf("%s: of a pool that is gone is told %v", name, shoot.Status)
		}
	}
}

// What care has read is no reason to say of a Shoot that has changed meanwhile that its pools wait no more.
func TestPoolsOfAnotherOperationStayPending(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one"}}
	shoot.Status.InPlaceUpdates = &gardencorev1beta1.InPlaceUpdatesStatus{
		PendingWorkerUpdates: &gardencorev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"hand"}},
	}
	garden := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(shoot).
		WithStatusSubresource(shoot).Build()
	key := client.ObjectKeyFromObject(shoot)
	read := &gardencorev1beta1.Shoot{}
	if err := garden.Get(t.Context(), key, read); err != nil {
		t.Fatal(err)
	}
	begun := read.DeepCopy()
	begun.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateProcessing}
	if err := garden.Status().Update(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	settled := func(shoot *gardencorev1beta1.Shoot, _ time.Time) { shoot.Status.InPlaceUpdates = nil }
	c := &Reconciler{Garden: garden}
	if err := c.report(t.Context(), read, nil, nil, settled); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	after := &gardencorev1beta1.Shoot{}
	if err := garden.Get(t.Context(), key, after); err != nil || after.Status.InPlaceUpdates == nil {
		t.Errorf("got %v, %v", after.Status, err)
	}
}
