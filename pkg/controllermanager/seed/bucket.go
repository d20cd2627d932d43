package seed

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// BucketReconciler gives every seed with spec.backup its BackupBucket, which has the name of the Seed's UID, and
// deletes it with the seed. Gardenlets may not: a bucket lets its seed read the credentials that it refers to.
type BucketReconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller. A bucket that somebody else deletes is made again.
func (r *BucketReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("seed-bucket").
		For(&gardencorev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&gardencorev1beta1.BackupBucket{}, handler.EnqueueRequestsFromMapFunc(seedOfBucket)).
		Complete(r)
}

// Reconcile makes, changes or deletes the bucket of one seed. The garden refuses to delete one with backups.
func (r *BucketReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Client.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if seed.Spec.Backup == nil {
		return reconcile.Result{}, nil
	}
	if err := r.reconcile(ctx, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("BackupBucket %s of seed %s: %w", seed.UID, seed.Name, err)
	}
	return reconcile.Result{}, nil
}

func (r *BucketReconciler) reconcile(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	bucket := &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: string(seed.UID)}}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(bucket), bucket)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case bucket.DeletionTimestamp != nil:
		return nil
	case seed.DeletionTimestamp != nil && err != nil:
		return nil
	case seed.DeletionTimestamp != nil:
		return client.IgnoreNotFound(r.Client.Delete(ctx, bucket))
	}
	_, err = controllerutil.CreateOrPatch(ctx, r.Client, bucket, func() error {
		spec := bucketSpec(seed)
		if !apiequality.Semantic.DeepEqual(bucket.Spec, spec) {
			bucket.Spec = spec
		}
		return nil
	})
	return err
}

// bucketSpec is what a Seed says about its bucket. Without a region it is in that of the seed.
func bucketSpec(seed *gardencorev1beta1.Seed) gardencorev1beta1.BackupBucketSpec {
	backup := seed.Spec.Backup
	return gardencorev1beta1.BackupBucketSpec{
		SeedName: &seed.Name,
		Provider: gardencorev1beta1.BackupBucketProvider{
			Type: backup.Provider, Region: ptr.Deref(backup.Region, seed.Spec.Provider.Region),
		},
		ProviderConfig: backup.ProviderConfig, CredentialsRef: backup.CredentialsRef,
	}
}
