// Package backupentry gives the backups of a shoot whose control plane is restored on another seed to that seed. They
// stay in the bucket in which they are. Gardenlets may not do so: who cares for a BackupEntry reads its bucket.
package backupentry

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Reconciler follows the seeds of shoots.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller. To be bound to another seed changes the generation of a shoot.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-backup-entry").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile gives the BackupEntry of one shoot that is restored to the shoot's seed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !gardencorev1beta1.IsRestoring(shoot) || shoot.Spec.SeedName == nil {
		return reconcile.Result{}, nil
	}
	entry := &gardencorev1beta1.BackupEntry{}
	key := client.ObjectKey{
		Namespace: shoot.Namespace,
		Name:      gardencorev1beta1.BackupEntryName(shoot.Status.TechnicalID, string(shoot.UID)),
	}
	if err := r.Client.Get(ctx, key, entry); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading BackupEntry %s: %w", key, err)
	}
	if err := r.give(ctx, entry, *shoot.Spec.SeedName); err != nil {
		return reconcile.Result{}, fmt.Errorf("giving BackupEntry %s to seed %s: %w", key, *shoot.Spec.SeedName, err)
	}
	return reconcile.Result{}, nil
}

// give changes the seed of an entry. With the status the seed before loses what rights it had because of it.
func (r *Reconciler) give(ctx context.Context, entry *gardencorev1beta1.BackupEntry, seed string) error {
	if ptr.Deref(entry.Spec.SeedName, "") != seed {
		patch := client.MergeFromWithOptions(entry.DeepCopy(), client.MergeFromWithOptimisticLock{})
		entry.Spec.SeedName = &seed
		if err := r.Client.Patch(ctx, entry, patch); err != nil {
			return err
		}
	}
	if name := ptr.Deref(entry.Status.SeedName, ""); name == "" || name == seed {
		return nil
	}
	patch := client.MergeFrom(entry.DeepCopy())
	entry.Status.SeedName = nil
	return r.Client.Status().Patch(ctx, entry, patch)
}
