package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

// BucketReconciler makes and removes the buckets of a seed.
type BucketReconciler struct{ Clients }

// Reconcile brings one BackupBucket into its desired state, or removes it.
func (r *BucketReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	bucket := &gardencorev1beta1.BackupBucket{}
	if err := r.Garden.Get(ctx, req.NamespacedName, bucket); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(bucket.Spec.SeedName, "") != r.SeedName {
		return ctrl.Result{}, nil
	}
	before := bucket.DeepCopy()
	var cause error
	if bucket.DeletionTimestamp != nil {
		if !controllerutil.ContainsFinalizer(bucket, gardencorev1beta1.GardenerName) {
			return ctrl.Result{}, nil
		}
		if cause = r.delete(ctx, bucket); cause == nil {
			return ctrl.Result{}, finalizer.Remove(ctx, r.Garden, bucket, gardencorev1beta1.GardenerName)
		}
	} else {
		if err := finalizer.Ensure(ctx, r.Garden, bucket, gardencorev1beta1.GardenerName); err != nil {
			return ctrl.Result{}, err
		}
		before = bucket.DeepCopy()
		cause = r.reconcile(ctx, bucket)
	}
	if err := r.report(ctx, before, bucket, cause); err != nil {
		return ctrl.Result{}, errors.Join(cause, err)
	}
	return next(cause)
}

// reconcile asks the extension for the bucket, and takes what it says into the status.
func (r *BucketReconciler) reconcile(ctx context.Context, bucket *gardencorev1beta1.BackupBucket) error {
	secret := bucketSecretPrefix + bucket.Name
	changed, err := r.copyCredentials(ctx, ptr.Deref(bucket.Spec.CredentialsRef, corev1.ObjectReference{}), secret)
	if err != nil {
		return err
	}
	config, err := sorted(bucket.Spec.ProviderConfig)
	if err != nil {
		return &mistake{fmt.Errorf("spec.providerConfig: %w", err)}
	}
	spec := extensionsv1alpha1.BackupBucketSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: bucket.Spec.Provider.Type, ProviderConfig: config},
		Region:      bucket.Spec.Provider.Region, SecretRef: secretRef(secret),
	}
	if err := r.bind(ctx, extensionsv1alpha1.BackupBucketResource, spec.Type, spec.SecretRef); err != nil {
		return err
	}
	object := extensionBucket(bucket.Name)
	err = r.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading BackupBucket %s of the seed: %w", bucket.Name, err)
	}
	force := changed || bucket.Status.ObservedGeneration != bucket.Generation
	if err != nil || force || !apiequality.Semantic.DeepEqual(object.Spec, spec) {
		if err := extension.Deploy(ctx, r.Seed, object, force, func() { object.Spec = spec }); err != nil {
			return err
		}
	}
	bucket.Status.ObservedGeneration = bucket.Generation
	if err := check(object); err != nil {
		return err
	}
	bucket.Status.ProviderStatus = object.Status.ProviderStatus
	return r.publish(ctx, bucket, object.Status.GeneratedSecretRef)
}

// publish copies the access to the bucket that the extension made into the garden, or removes what was there.
func (r *BucketReconciler) publish(ctx context.Context, bucket *gardencorev1beta1.BackupBucket,
	made *corev1.SecretReference) error {
	published := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: gardencorev1beta1.GardenNamespace,
		Name:      gardencorev1beta1.GeneratedBackupBucketSecretPrefix + bucket.Name,
	}}
	if made == nil {
		if bucket.Status.GeneratedSecretRef == nil {
			return nil
		}
		bucket.Status.GeneratedSecretRef = nil
		return component.Delete(ctx, r.Garden, published)
	}
	source := &corev1.Secret{}
	key := client.ObjectKey{Namespace: made.Namespace, Name: made.Name}
	err := r.Seed.Get(ctx, key, source)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s, which the extension made for BackupBucket %s: %w", key, bucket.Name, err)
	}
	if err != nil || !isMadeFor(source, bucket.Name) {
		return &mistake{
			fmt.Errorf("the extension names Secret %s of the seed in status.generatedSecretRef, and there is none "+
				"of that name with label %s=%s",
				key, extensionsv1alpha1.LabelBackupBucket, bucket.Name),
		}
	}
	_, err = controllerutil.CreateOrPatch(ctx, r.Garden, published, func() error {
		published.Data = source.Data
		return nil
	})
	if err != nil {
		return fmt.Errorf("Secret %s of the garden: %w", client.ObjectKeyFromObject(published), err)
	}
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: published.Namespace, Name: published.Name}
	return nil
}

// isMadeFor tells whether a Secret of the seed holds the access to a bucket, by what is known of the Secret itself:
// whoever writes the status of the extension's object could name any Secret, and gardenlet reads all of them. Published
// extensions use the name that is this bucket's.
func isMadeFor(secret *corev1.Secret, bucket string) bool {
	known := []string{bucketSecretPrefix + bucket, gardencorev1beta1.GeneratedBackupBucketSecretPrefix + bucket}
	return secret.Labels[extensionsv1alpha1.LabelBackupBucket] == bucket ||
		secret.Namespace == gardencorev1beta1.GardenNamespace && slices.Contains(known, secret.Name)
}

// delete removes the bucket unless it is used.
func (r *BucketReconciler) delete(ctx context.Context, bucket *gardencorev1beta1.BackupBucket) error {
	entries := &gardencorev1beta1.BackupEntryList{}
	if err := r.Garden.List(ctx, entries, client.MatchingFields{"spec.seedName": r.SeedName}); err != nil {
		return fmt.Errorf("listing the BackupEntries of the seed: %w", err)
	}
	for i := range entries.Items {
		if entry := &entries.Items[i]; entry.Spec.BucketName == bucket.Name {
			return &mistake{
				fmt.Errorf("the bucket is used by BackupEntry %s; delete that first",
					client.ObjectKeyFromObject(entry)),
			}
		}
	}
	secret := secretRef(bucketSecretPrefix + bucket.Name)
	if err := r.bind(ctx, extensionsv1alpha1.BackupBucketResource, bucket.Spec.Provider.Type, secret); err != nil {
		return err
	}
	if err := r.removed(ctx, extensionBucket(bucket.Name)); err != nil {
		return err
	}
	if err := r.forget(ctx, secret); err != nil {
		return err
	}
	if bucket.Status.GeneratedSecretRef == nil {
		return nil
	}
	return r.publish(ctx, bucket, nil)
}

// report writes the status if it has changed.
func (r *BucketReconciler) report(ctx context.Context, before, bucket *gardencorev1beta1.BackupBucket,
	cause error) error {
	result := outcomeOf("The bucket", bucket.DeletionTimestamp != nil, cause,
		outcome{before.Status.LastOperation, before.Status.LastError}, metav1.NewTime(r.Now()))
	bucket.Status.LastOperation, bucket.Status.LastError = result.last, result.err
	if apiequality.Semantic.DeepEqual(before.Status, bucket.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Garden.Status().Patch(ctx, bucket, client.MergeFrom(before)))
}

func extensionBucket(name string) *extensionsv1alpha1.BackupBucket {
	return &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
