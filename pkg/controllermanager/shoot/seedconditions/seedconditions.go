// Package seedconditions shows the conditions of a seed on the shoot that it is made of, so that who looks after the
// shoot sees what it means for others.
package seedconditions

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
)

// types are the conditions that seeds have and shoots do not.
var types = []gardencorev1beta1.ConditionType{
	gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.SeedBackupBucketsReady,
	gardencorev1beta1.SeedExtensionsReady,
	gardencorev1beta1.SeedSystemComponentsHealthy, gardencorev1beta1.SeedEmergencyStopShootReconciliations,
}

// Reconciler copies conditions from the seeds of managed seeds to their shoots.
type Reconciler struct {
	Client client.Client
	Now    func() time.Time
}

// SetupWithManager registers the controller. Requests are managed seeds; their seeds have the same names.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-seed-conditions").
		For(&gardencorev1beta1.Seed{}).
		Watches(&seedmanagementv1alpha1.ManagedSeed{}, handler.EnqueueRequestsFromMapFunc(seedOf)).
		Watches(&gardencorev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.seedsOfShoot)).
		Complete(r)
}

func seedOf(_ context.Context, managedSeed client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: managedSeed.GetName()}}}
}

// seedsOfShoot leads from a shoot to its managed seed: its gardenlet may have written the conditions without those of
// the seed.
func (r *Reconciler) seedsOfShoot(ctx context.Context, shoot client.Object) []reconcile.Request {
	if shoot.GetNamespace() != gardencorev1beta1.GardenNamespace {
		return nil
	}
	managedSeeds := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := r.Client.List(ctx, managedSeeds, index.OfShoot(shoot.GetName()),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list managed seeds")
		return nil
	}
	var requests []reconcile.Request
	for i := range managedSeeds.Items {
		requests = append(requests, seedOf(ctx, &managedSeeds.Items[i])...)
	}
	return requests
}

// Reconcile copies the conditions of one seed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: gardencorev1beta1.GardenNamespace, Name: request.Name},
		managedSeed)
	if err != nil || managedSeed.Spec.Shoot == nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	seed := &gardencorev1beta1.Seed{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: request.Name}, seed); err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("seed %s: %w", request.Name, err)
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name},
		shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if managedSeed.DeletionTimestamp != nil {
		seed.Status.Conditions = nil // the shoot is on its way to be a plain one again
	}
	before := shoot.DeepCopy()
	shoot.Status.Conditions = merge(shoot.Status.Conditions, seed.Status.Conditions, r.Now())
	if apiequality.Semantic.DeepEqual(before.Status, shoot.Status) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, shoot, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("conditions of the shoot of managed seed %s: %w", request.Name, err)
	}
	return reconcile.Result{}, nil
}

// merge returns a shoot's conditions with those of its seed in place of the ones that it had of a seed.
func merge(shoot, seed []gardencorev1beta1.Condition, now time.Time) []gardencorev1beta1.Condition {
	result := shoot
	for _, t := range types {
		if found := conditions.Get(seed, t); found != nil {
			result = conditions.Set(result, *found, now)
		} else {
			result = conditions.Remove(result, t)
		}
	}
	return result
}
