// Package bastion deletes bastions that nobody needs any more. Bastions are doors into the networks of shoots, so they
// are kept open no longer than somebody says, again and again, that they are in use.
package bastion

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
)

// DefaultMaxLifetime is how long a bastion lives at most, however often it is kept alive.
const DefaultMaxLifetime = 24 * time.Hour

// Reconciler deletes bastions when they expire, when they are too old, and when their shoot goes or moves.
type Reconciler struct {
	Client      client.Client
	MaxLifetime time.Duration
	Now         func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.MaxLifetime == 0 {
		r.MaxLifetime = DefaultMaxLifetime
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("bastion").
		For(&operationsv1alpha1.Bastion{}).
		Watches(&gardencorev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.bastionsOf),
			builder.WithPredicates(leaves())).
		Complete(r)
}

// leaves lets pass shoots that go away or move to another seed.
func leaves() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetDeletionTimestamp() != nil },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*gardencorev1beta1.Shoot)
			after, isShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
			return ok && isShoot && ((before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
				!ptr.Equal(before.Spec.SeedName, after.Spec.SeedName))
		},
	}
}

func (r *Reconciler) bastionsOf(ctx context.Context, shoot client.Object) []reconcile.Request {
	bastions := &operationsv1alpha1.BastionList{}
	if err := r.Client.List(ctx, bastions, client.InNamespace(shoot.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list bastions")
		return nil
	}
	var requests []reconcile.Request
	for i := range bastions.Items {
		if bastions.Items[i].Spec.ShootRef.Name == shoot.GetName() {
			requests = append(requests, reconcile.Request{
				NamespacedName: client.ObjectKeyFromObject(&bastions.Items[i]),
			})
		}
	}
	return requests
}

// Reconcile deletes one bastion if it is time, and comes back when it will be otherwise.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := r.Client.Get(ctx, request.NamespacedName, bastion); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if bastion.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	shoot := &gardencorev1beta1.Shoot{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}, shoot)
	if apierrors.IsNotFound(err) {
		shoot, err = nil, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("shoot of bastion %s: %w", request, err)
	}
	now := r.Now()
	reason, end := expiry(bastion, shoot, r.MaxLifetime, now)
	if reason == "" {
		return reconcile.Result{RequeueAfter: end.Sub(now)}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Deleting a bastion", "reason", reason)
	if err := r.Client.Delete(ctx, bastion,
		client.Preconditions{UID: &bastion.UID}); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting bastion %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}

// expiry returns why a bastion has to go; else no reason, and when it will have to. A shoot that does not exist is
// nil.
func expiry(bastion *operationsv1alpha1.Bastion, shoot *gardencorev1beta1.Shoot, maxLifetime time.Duration,
	now time.Time) (reason string, end time.Time) {
	end = bastion.CreationTimestamp.Add(maxLifetime)
	expiration := bastion.Status.ExpirationTimestamp
	switch {
	case shoot == nil || shoot.DeletionTimestamp != nil:
		return "the shoot goes away", end
	case bastion.Spec.SeedName != nil && !ptr.Equal(bastion.Spec.SeedName, shoot.Spec.SeedName):
		return "the shoot moved to another seed", end
	case !now.Before(end):
		return fmt.Sprintf("it reached its maximum lifetime of %s", maxLifetime), end
	case expiration != nil && !now.Before(expiration.Time):
		return "it was not kept alive", end
	}
	if expiration != nil && expiration.Time.Before(end) {
		end = expiration.Time
	}
	return "", end
}
