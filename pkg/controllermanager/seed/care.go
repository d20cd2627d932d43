package seed

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
)

// CareReconciler writes the conditions of seeds that can be told from the garden: whether their extensions and their
// buckets for backups are ready. gardenlet writes the others.
type CareReconciler struct {
	Client client.Client
	Now    func() time.Time
}

// SetupWithManager registers the controller.
func (r *CareReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("seed-care").
		For(&gardencorev1beta1.Seed{}).
		Watches(&gardencorev1beta1.BackupBucket{}, handler.EnqueueRequestsFromMapFunc(seedOfBucket)).
		Watches(&gardencorev1beta1.ControllerInstallation{}, handler.EnqueueRequestsFromMapFunc(seedOfInstallation)).
		Complete(r)
}

func seedOfBucket(_ context.Context, object client.Object) []reconcile.Request {
	bucket, ok := object.(*gardencorev1beta1.BackupBucket)
	if !ok || bucket.Spec.SeedName == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: *bucket.Spec.SeedName}}}
}

func seedOfInstallation(_ context.Context, object client.Object) []reconcile.Request {
	installation, ok := object.(*gardencorev1beta1.ControllerInstallation)
	if !ok || installation.Spec.SeedRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: installation.Spec.SeedRef.Name}}}
}

// Reconcile looks at one seed.
func (r *CareReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Client.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := seed.DeepCopy()
	if err := r.look(ctx, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("conditions of seed %s: %w", seed.Name, err)
	}
	if apiequality.Semantic.DeepEqual(before.Status, seed.Status) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, seed, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("writing conditions of seed %s: %w", seed.Name, err)
	}
	return reconcile.Result{}, nil
}

func (r *CareReconciler) look(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	installations := &gardencorev1beta1.ControllerInstallationList{}
	if err := r.Client.List(ctx, installations, index.OfSeed(seed.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing controller installations: %w", err)
	}
	buckets := &gardencorev1beta1.BackupBucketList{}
	if err := r.Client.List(ctx, buckets, index.OfSeed(seed.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing backup buckets: %w", err)
	}
	list := conditions.Set(seed.Status.Conditions, ExtensionsReady(installations.Items), r.Now())
	if seed.Spec.Backup == nil {
		list = conditions.Remove(list, gardencorev1beta1.SeedBackupBucketsReady)
	} else {
		list = conditions.Set(list, BackupBucketsReady(buckets.Items), r.Now())
	}
	seed.Status.Conditions = list
	return nil
}
