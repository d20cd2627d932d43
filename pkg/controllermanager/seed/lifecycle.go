// Package seed gives seeds their namespaces in the garden and watches over the heartbeats of their gardenlets.
package seed

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
)

const (
	// DefaultGracePeriod is how long a gardenlet may be silent.
	DefaultGracePeriod = 40 * time.Second
	// DefaultShootGracePeriod is how long a gardenlet may be silent before its shoots count as unknown, too.
	DefaultShootGracePeriod = 5 * DefaultGracePeriod
	// reasonUnknown is the reason of the condition of a silent gardenlet.
	reasonUnknown = "SeedStatusUnknown"
)

// Reconciler marks seeds whose gardenlet has fallen silent and, after a while, their shoots. Only gardenlet marks them
// ready again.
type Reconciler struct {
	Client client.Client
	// Leases reads without a cache: leases change too often to be watched.
	Leases                        client.Reader
	GracePeriod, ShootGracePeriod time.Duration
	Now                           func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Leases == nil {
		r.Leases = mgr.GetAPIReader()
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.GracePeriod == 0 {
		r.GracePeriod = DefaultGracePeriod
	}
	if r.ShootGracePeriod == 0 {
		r.ShootGracePeriod = DefaultShootGracePeriod
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("seed-lifecycle").
		For(&gardencorev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile looks at the heartbeat of one seed, and comes back when the next one is overdue.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Client.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	silence, err := r.silence(ctx, seed)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("lease of seed %s: %w", seed.Name, err)
	}
	if silence < r.GracePeriod {
		return reconcile.Result{RequeueAfter: r.GracePeriod - silence}, nil
	}
	if err := r.markUnknown(ctx, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("status of seed %s: %w", seed.Name, err)
	}
	if silence >= r.ShootGracePeriod {
		if err := r.markShoots(ctx, seed); err != nil {
			return reconcile.Result{}, fmt.Errorf("shoots of seed %s: %w", seed.Name, err)
		}
	}
	return reconcile.Result{RequeueAfter: r.GracePeriod}, nil
}

// markShoots marks the shoots of a seed of which nothing is known any more.
func (r *Reconciler) markShoots(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Client.List(ctx, shoots, index.OfSeed(seed.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing shoots: %w", err)
	}
	var errs []error
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if ptr.Deref(shoot.Status.SeedName, ptr.Deref(shoot.Spec.SeedName, "")) != seed.Name {
			continue
		}
		updated := shoot.DeepCopy()
		updated.Status.Conditions = allUnknown(shoot.Status.Conditions, r.Now())
		updated.Status.Constraints = allUnknown(shoot.Status.Constraints, r.Now())
		if apiequality.Semantic.DeepEqual(shoot.Status, updated.Status) {
			continue
		}
		patch := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
		errs = append(errs, client.IgnoreNotFound(r.Client.Status().Patch(ctx, updated, patch)))
	}
	return errors.Join(errs...)
}

// allUnknown returns the conditions with nothing known about any of them.
func allUnknown(list []gardencorev1beta1.Condition, now time.Time) []gardencorev1beta1.Condition {
	result := list
	for _, condition := range list {
		unknown := conditions.New(condition.Type, gardencorev1beta1.ConditionUnknown, "StatusUnknown",
			"Gardenlet stopped sending heartbeats.")
		result = conditions.Set(result, unknown, now)
	}
	return result
}

// silence is how long nothing has been heard: since the last heartbeat, or since the seed was registered.
func (r *Reconciler) silence(ctx context.Context, seed *gardencorev1beta1.Seed) (time.Duration, error) {
	last := seed.CreationTimestamp.Time
	lease := &coordinationv1.Lease{}
	err := r.Leases.Get(ctx, client.ObjectKey{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: seed.Name},
		lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	if err == nil && lease.Spec.RenewTime != nil {
		last = lease.Spec.RenewTime.Time
	}
	return r.Now().Sub(last), nil
}

func (r *Reconciler) markUnknown(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	updated := seed.DeepCopy()
	list, changed := withUnknown(updated.Status.Conditions, r.Now())
	if !changed {
		return nil
	}
	updated.Status.Conditions = list
	ctrl.LoggerFrom(ctx).Info("Gardenlet has fallen silent", "seed", seed.Name)
	return r.Client.Status().Patch(ctx, updated,
		client.MergeFromWithOptions(seed, client.MergeFromWithOptimisticLock{}))
}

// withUnknown returns the conditions with GardenletReady unknown, and whether it was not before.
func withUnknown(list []gardencorev1beta1.Condition, now time.Time) ([]gardencorev1beta1.Condition, bool) {
	before := conditions.Get(list, gardencorev1beta1.SeedGardenletReady)
	if before != nil && before.Status == gardencorev1beta1.ConditionUnknown {
		return list, false
	}
	unknown := conditions.New(gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.ConditionUnknown, reasonUnknown,
		"Gardenlet stopped posting seed status.")
	return conditions.Set(list, unknown, now), true
}
