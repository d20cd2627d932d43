package care

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/inplace"
)

// updatedInPlace looks which pools have had the update in place that they wait for, and returns what that changes of
// the status. During an operation that is for the operation to say: it notes what is to be updated before it asks for
// it.
func (c *Reconciler) updatedInPlace(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (func(*gardencorev1beta1.Shoot, time.Time), error) {
	if !inplace.Pending(&shoot.Status) ||
		shoot.Status.LastOperation.State == gardencorev1beta1.LastOperationStateProcessing {
		return tellAwaiting, nil
	}
	worker := &extensionsv1alpha1.Worker{}
	key := client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: shoot.Name}
	if err := client.IgnoreNotFound(c.Seed.Get(ctx, key, worker)); err != nil {
		return nil, fmt.Errorf("reading Worker %s: %w", key, err)
	}
	updated, err := inplace.Updated(ctx, c.Seed, worker)
	return func(shoot *gardencorev1beta1.Shoot, now time.Time) {
		inplace.Settle(&shoot.Status, shoot.Spec.Provider.Workers, updated)
		rotation.MachinesUpdated(&shoot.Status, metav1.NewTime(now))
		tellAwaiting(shoot, now)
	}, err
}

// tellAwaiting says in a constraint which pools wait for their owner, where there are pools that could.
func tellAwaiting(shoot *gardencorev1beta1.Shoot, now time.Time) {
	const t = gardencorev1beta1.ShootManualInPlaceWorkersUpdated
	if !slices.ContainsFunc(shoot.Spec.Provider.Workers, func(worker gardencorev1beta1.Worker) bool {
		return worker.UpdateStrategy != nil && *worker.UpdateStrategy == gardencorev1beta1.ManualInPlaceUpdate
	}) {
		shoot.Status.Constraints = conditions.Remove(shoot.Status.Constraints, t)
		return
	}
	found := conditions.New(t, gardencorev1beta1.ConditionTrue, "WorkersUpdated",
		"All machines that are updated by hand are up to date.")
	if waiting := inplace.AwaitingOwner(&shoot.Status); len(waiting) > 0 {
		found = conditions.New(t, gardencorev1beta1.ConditionFalse, "WorkersPendingUpdate",
			fmt.Sprintf("Machines of worker pools %s wait to be updated: give nodes that are to be updated the label "+
				"%s=true.", strings.Join(waiting, ", "), machinev1alpha1.LabelKeyNodeSelectedForUpdate))
	}
	shoot.Status.Constraints = conditions.Set(shoot.Status.Constraints, found, now)
}

// admitUpdatedNodes lets pods on nodes that were updated in place, as long as no operation does.
func (c *Reconciler) admitUpdatedNodes(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	clientset kubernetes.Interface, nodes []corev1.Node) {
	var pools []string
	for i := range shoot.Spec.Provider.Workers {
		if worker := &shoot.Spec.Provider.Workers[i]; gardencorev1beta1.IsUpdatedInPlace(worker) {
			pools = append(pools, worker.Name)
		}
	}
	if len(pools) == 0 {
		return
	}
	if err := inplace.AdmitNodes(ctx, clientset, nodes, pools); err != nil {
		ctrl.LoggerFrom(ctx).Info("Nodes that were updated do not take pods yet", "reason", err.Error())
	}
}
