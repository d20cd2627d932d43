// Package status sums up every shoot in a label, so that lists can be filtered by it.
package status

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// Reconciler keeps the label shoot.gardener.cloud/status.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-status").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(predicate.NewPredicateFuncs(isOutdated))).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(r)
}

// isOutdated is false for a shoot that nobody has worked on: there is nothing to sum up.
func isOutdated(object client.Object) bool {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	return ok && shoot.Status.LastOperation != nil &&
		shoot.Labels[gardencorev1beta1.LabelShootStatus] != conditions.OfShoot(shoot)
}

// Reconcile sets the label of one shoot.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isOutdated(shoot) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFrom(shoot.DeepCopy())
	if shoot.Labels == nil {
		shoot.Labels = map[string]string{}
	}
	shoot.Labels[gardencorev1beta1.LabelShootStatus] = conditions.OfShoot(shoot)
	if err := r.Client.Patch(ctx, shoot, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("status label of shoot %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}
