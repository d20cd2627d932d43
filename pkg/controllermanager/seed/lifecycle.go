// Package seed gives seeds their namespaces in the garden and watches over the heartbeats of their gardenlets.
package seed

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// LeaseNamespace holds one Lease per seed, which its gardenlet renews.
	LeaseNamespace = "gardener-system-seed-lease"
	// DefaultGracePeriod is how long a gardenlet may be silent.
	DefaultGracePeriod = 40 * time.Second
	// reasonUnknown is the reason of the condition of a silent gardenlet.
	reasonUnknown = "SeedStatusUnknown"
)

// Reconciler marks seeds whose gardenlet has fallen silent. Only gardenlet marks them ready again.
type Reconciler struct {
	Client client.Client
	// Leases reads without a cache: leases change too often to be watched.
	Leases      client.Reader
	GracePeriod time.Duration
	Now         func() time.Time
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
	return ctrl.NewControllerManagedBy(mgr).
		Named("seed-lifecycle").
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile looks at the heartbeat of one seed, and comes back when the next one is overdue.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
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
	return reconcile.Result{RequeueAfter: r.GracePeriod}, nil
}

// silence is how long nothing has been heard: since the last heartbeat, or since the seed was registered.
func (r *Reconciler) silence(ctx context.Context, seed *corev1beta1.Seed) (time.Duration, error) {
	last := seed.CreationTimestamp.Time
	lease := &coordinationv1.Lease{}
	err := r.Leases.Get(ctx, client.ObjectKey{Namespace: LeaseNamespace, Name: seed.Name}, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	if err == nil && lease.Spec.RenewTime != nil {
		last = lease.Spec.RenewTime.Time
	}
	return r.Now().Sub(last), nil
}

func (r *Reconciler) markUnknown(ctx context.Context, seed *corev1beta1.Seed) error {
	updated := seed.DeepCopy()
	conditions, changed := withUnknown(updated.Status.Conditions, metav1.NewTime(r.Now()))
	if !changed {
		return nil
	}
	updated.Status.Conditions = conditions
	ctrl.LoggerFrom(ctx).Info("Gardenlet has fallen silent", "seed", seed.Name)
	return r.Client.Status().Patch(ctx, updated, client.MergeFromWithOptions(seed, client.MergeFromWithOptimisticLock{}))
}

// withUnknown returns the conditions with GardenletReady unknown, and whether it was not before.
func withUnknown(conditions []corev1beta1.Condition, now metav1.Time) ([]corev1beta1.Condition, bool) {
	unknown := corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionUnknown,
		Reason: reasonUnknown, Message: "Gardenlet stopped posting seed status.",
		LastTransitionTime: now, LastUpdateTime: now,
	}
	for i := range conditions {
		if conditions[i].Type != unknown.Type {
			continue
		}
		if conditions[i].Status == corev1beta1.ConditionUnknown {
			return conditions, false
		}
		conditions[i] = unknown
		return conditions, true
	}
	return append(conditions, unknown), true
}
