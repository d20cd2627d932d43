// Package backup has the BackupBucket and BackupEntry controllers of provider-local: buckets of the local cloud, and
// directories in them.
package backup

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Add registers the controllers.
func Add(mgr manager.Manager, source credentials.Source) error {
	err := extension.Add(mgr, extension.Options[*extensionsv1alpha1.BackupBucket]{
		Kind: extensionsv1alpha1.BackupBucketResource, Type: apis.Type, Actuator: bucketActuator{source},
	})
	if err != nil {
		return err
	}
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.BackupEntry]{
		Kind: extensionsv1alpha1.BackupEntryResource, Type: apis.Type, Actuator: entryActuator{source},
	})
}

type bucketActuator struct{ credentials credentials.Source }

// Reconcile implements extension.Actuator.
func (a bucketActuator) Reconcile(ctx context.Context, _ logr.Logger, bucket *extensionsv1alpha1.BackupBucket,
	_ *cluster.Cluster) error {
	return call(ctx, a.credentials, bucket.Spec.SecretRef,
		func(cloud *api.Client) error { return cloud.PutBucket(ctx, bucket.Name) })
}

// Delete implements extension.Actuator.
func (a bucketActuator) Delete(ctx context.Context, _ logr.Logger, bucket *extensionsv1alpha1.BackupBucket,
	_ *cluster.Cluster) error {
	return call(ctx, a.credentials, bucket.Spec.SecretRef,
		func(cloud *api.Client) error { return cloud.DeleteBucket(ctx, bucket.Name) })
}

type entryActuator struct{ credentials credentials.Source }

// Reconcile implements extension.Actuator.
func (a entryActuator) Reconcile(ctx context.Context, _ logr.Logger, entry *extensionsv1alpha1.BackupEntry,
	_ *cluster.Cluster) error {
	return call(ctx, a.credentials, entry.Spec.SecretRef, func(cloud *api.Client) error {
		return cloud.PutDirectory(ctx, entry.Spec.BucketName, entry.Name)
	})
}

// Delete implements extension.Actuator.
func (a entryActuator) Delete(ctx context.Context, _ logr.Logger, entry *extensionsv1alpha1.BackupEntry,
	_ *cluster.Cluster) error {
	return call(ctx, a.credentials, entry.Spec.SecretRef, func(cloud *api.Client) error {
		return cloud.DeleteDirectory(ctx, entry.Spec.BucketName, entry.Name)
	})
}

// call calls the cloud of the Secret, and says what its errors mean.
func call(ctx context.Context, source credentials.Source, ref corev1.SecretReference,
	do func(*api.Client) error) error {
	cloud, err := source.Client(ctx, ref)
	if err != nil {
		return err
	}
	return api.WithCodes(do(cloud))
}
