package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
)

// EntryReconciler makes and removes the directories of shoots in buckets.
type EntryReconciler struct {
	Clients
	// Config says for how long the backups of deleted entries are kept.
	Config config.BackupEntryController
}

// Reconcile brings one BackupEntry into its desired state, or removes it.
func (r *EntryReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	entry := &gardencorev1beta1.BackupEntry{}
	if err := r.Garden.Get(ctx, req.NamespacedName, entry); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(entry.Spec.SeedName, "") != r.SeedName {
		return ctrl.Result{}, nil
	}
	if entry.DeletionTimestamp != nil {
		return r.delete(ctx, entry)
	}
	if err := finalizer.Ensure(ctx, r.Garden, entry, gardencorev1beta1.GardenerName); err != nil {
		return ctrl.Result{}, err
	}
	before := entry.DeepCopy()
	cause := r.reconcile(ctx, entry)
	entry.Status.SeedName = &r.SeedName
	if err := r.report(ctx, before, entry, cause); err != nil {
		return ctrl.Result{}, errors.Join(cause, err)
	}
	return next(cause)
}

// reconcile asks the extension for the directory.
func (r *EntryReconciler) reconcile(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	bucket, err := r.bucketOf(ctx, entry)
	if err != nil {
		return err
	}
	object := extensionEntry(entry.Name)
	err = r.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading BackupEntry %s of the seed: %w", entry.Name, err)
	}
	if err == nil {
		if err := owned(object, entry); err != nil {
			return err
		}
	}
	absent := err != nil
	secret := entrySecretPrefix + entry.Name
	changed, err := r.copyCredentials(ctx, credentialsOf(bucket), secret)
	if err != nil {
		return err
	}
	status, err := sorted(bucket.Status.ProviderStatus)
	if err != nil {
		return fmt.Errorf("status.providerStatus of BackupBucket %s: %w", bucket.Name, err)
	}
	spec := extensionsv1alpha1.BackupEntrySpec{
		DefaultSpec:                extensionsv1alpha1.DefaultSpec{Type: bucket.Spec.Provider.Type},
		BackupBucketProviderStatus: status,
		Region:                     bucket.Spec.Provider.Region, BucketName: bucket.Name, SecretRef: secretRef(secret),
	}
	if err := r.bindEntry(ctx, entry.Name, spec, absent); err != nil {
		return err
	}
	force := changed || entry.Status.ObservedGeneration != entry.Generation
	if absent || force || !apiequality.Semantic.DeepEqual(object.Spec, spec) {
		err := extension.Deploy(ctx, r.Seed, object, force, func() {
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, annotationOwner,
				client.ObjectKeyFromObject(entry).String())
			object.Spec = spec
		})
		if err != nil {
			return err
		}
	}
	entry.Status.ObservedGeneration = entry.Generation
	return check(object)
}

// bindEntry lets the extension read the credentials, and write those for etcd into the namespace of the shoot, if there
// is one: entries outlive their shoots.
func (r *EntryReconciler) bindEntry(ctx context.Context, name string, spec extensionsv1alpha1.BackupEntrySpec,
	fresh bool) error {
	if err := r.bind(ctx, extensionsv1alpha1.BackupEntryResource, spec.Type, spec.SecretRef); err != nil {
		return err
	}
	namespace, _, _ := gardencorev1beta1.ShootOfBackupEntry(name)
	pair := extensionrights.Pair(extensionsv1alpha1.BackupEntryResource, spec.Type)
	return extensionrights.Bind(ctx, r.Seed, namespace, pair, fresh)
}

// owned refuses an object of the seed that belongs to an entry of the same name in another namespace.
func owned(object *extensionsv1alpha1.BackupEntry, entry *gardencorev1beta1.BackupEntry) error {
	if owner := object.Annotations[annotationOwner]; owner != client.ObjectKeyFromObject(entry).String() {
		return &mistake{fmt.Errorf("the directory %s belongs to BackupEntry %s", entry.Name, owner)}
	}
	return nil
}

// bucketOf returns the bucket of an entry once it is ready.
func (r *EntryReconciler) bucketOf(ctx context.Context,
	entry *gardencorev1beta1.BackupEntry) (*gardencorev1beta1.BackupBucket, error) {
	bucket := &gardencorev1beta1.BackupBucket{}
	err := r.Garden.Get(ctx, client.ObjectKey{Name: entry.Spec.BucketName}, bucket)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &mistake{fmt.Errorf("spec.bucketName: there is no BackupBucket %s", entry.Spec.BucketName)}
	case err != nil:
		return nil, fmt.Errorf("reading BackupBucket %s: %w", entry.Spec.BucketName, err)
	case bucket.DeletionTimestamp != nil:
		return nil, &mistake{fmt.Errorf("spec.bucketName: BackupBucket %s is being deleted", bucket.Name)}
	}
	if last := bucket.Status.LastOperation; last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return nil, &unfinished{fmt.Errorf("waiting until BackupBucket %s is ready", bucket.Name)}
	}
	return bucket, nil
}

// credentialsOf prefers the access that the extension made.
func credentialsOf(bucket *gardencorev1beta1.BackupBucket) corev1.ObjectReference {
	if made := bucket.Status.GeneratedSecretRef; made != nil {
		return corev1.ObjectReference{Kind: "Secret", Namespace: made.Namespace, Name: made.Name}
	}
	return ptr.Deref(bucket.Spec.CredentialsRef, corev1.ObjectReference{})
}

// delete removes the directory when its time has come, then lets the BackupEntry go.
func (r *EntryReconciler) delete(ctx context.Context, entry *gardencorev1beta1.BackupEntry) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(entry, gardencorev1beta1.GardenerName) {
		return ctrl.Result{}, nil
	}
	before := entry.DeepCopy()
	if left := r.graceLeft(entry); left > 0 {
		at := r.Now().Add(left).UTC().Format(time.RFC3339)
		cause := &unfinished{
			fmt.Errorf("the backups are kept until %s; annotation %s=true deletes them at once", at,
				gardencorev1beta1.BackupEntryForceDeletion),
		}
		return ctrl.Result{RequeueAfter: left}, r.report(ctx, before, entry, cause)
	}
	cause := r.remove(ctx, entry)
	if cause == nil {
		return ctrl.Result{}, finalizer.Remove(ctx, r.Garden, entry, gardencorev1beta1.GardenerName)
	}
	if err := r.report(ctx, before, entry, cause); err != nil {
		return ctrl.Result{}, errors.Join(cause, err)
	}
	return next(cause)
}

// remove removes the directory with its credentials, which may have changed since they were last copied. A directory
// that belongs to another entry stays.
func (r *EntryReconciler) remove(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	object := extensionEntry(entry.Name)
	err := r.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading BackupEntry %s of the seed: %w", entry.Name, err)
	case err == nil && owned(object, entry) != nil:
		return nil
	case err == nil:
		// Without the bucket's credentials of now those of then are tried.
		if bucket, err := r.bucketOf(ctx, entry); err == nil {
			if _, err := r.copyCredentials(ctx, credentialsOf(bucket), entrySecretPrefix+entry.Name); err != nil &&
				!isMistake(err) {
				return err
			}
			if err := r.bind(ctx, extensionsv1alpha1.BackupEntryResource, bucket.Spec.Provider.Type,
				secretRef(entrySecretPrefix+entry.Name)); err != nil {
				return err
			}
		}
		if err := r.removed(ctx, object); err != nil {
			return err
		}
	}
	return r.forget(ctx, secretRef(entrySecretPrefix+entry.Name))
}

// graceLeft says for how long the backups of a deleted entry are kept.
func (r *EntryReconciler) graceLeft(entry *gardencorev1beta1.BackupEntry) time.Duration {
	if forced, err := strconv.ParseBool(entry.Annotations[gardencorev1beta1.BackupEntryForceDeletion]); err == nil &&
		forced {
		return 0
	}
	if r.Config.DeletionGracePeriodHours == 0 {
		return 0 // also if the garden's clock is ahead of this one
	}
	purposes := r.Config.DeletionGracePeriodShootPurposes
	if len(purposes) > 0 && !slices.Contains(purposes,
		gardencorev1beta1.ShootPurpose(entry.Annotations[gardencorev1beta1.AnnotationShootPurpose])) {
		return 0
	}
	end := entry.DeletionTimestamp.Add(time.Duration(r.Config.DeletionGracePeriodHours) * time.Hour)
	return max(0, end.Sub(r.Now()))
}

// report writes the status if it has changed.
func (r *EntryReconciler) report(ctx context.Context, before, entry *gardencorev1beta1.BackupEntry, cause error) error {
	result := outcomeOf("The entry", entry.DeletionTimestamp != nil, cause,
		outcome{before.Status.LastOperation, before.Status.LastError}, metav1.NewTime(r.Now()))
	entry.Status.LastOperation, entry.Status.LastError = result.last, result.err
	if apiequality.Semantic.DeepEqual(before.Status, entry.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Garden.Status().Patch(ctx, entry, client.MergeFrom(before)))
}

func extensionEntry(name string) *extensionsv1alpha1.BackupEntry {
	return &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
