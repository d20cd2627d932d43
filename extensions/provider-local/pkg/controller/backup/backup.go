// Package backup has the BackupBucket and BackupEntry controllers of provider-local: buckets of the local cloud, and
// what is kept of shoots in them. Where the cloud has an object store, a bucket is reached by S3; else it is a folder,
// and what a shoot has in it a folder as well.
package backup

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/backupsecret"
	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/etcd/bucket"
)

// Add registers the controllers. The access to buckets is kept in Secrets of namespace.
func Add(mgr manager.Manager, source credentials.Source, namespace string) error {
	err := extension.Add(mgr, extension.Options[*extensionsv1alpha1.BackupBucket]{
		Kind: extensionsv1alpha1.BackupBucketResource, Type: apis.Type,
		Actuator: bucketActuator{mgr.GetClient(), source, namespace},
	})
	if err != nil {
		return err
	}
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.BackupEntry]{
		Kind: extensionsv1alpha1.BackupEntryResource, Type: apis.Type,
		Actuator: entryActuator{mgr.GetClient(), source},
	})
}

type bucketActuator struct {
	client      client.Client
	credentials credentials.Source
	namespace   string
}

// Reconcile implements extension.Actuator.
func (a bucketActuator) Reconcile(ctx context.Context, _ logr.Logger, bucket *extensionsv1alpha1.BackupBucket,
	_ *cluster.Cluster) error {
	return call(ctx, a.credentials, bucket.Spec.SecretRef, func(cloud *api.Client) error {
		access, err := cloud.PutBucket(ctx, bucket.Name)
		if err != nil || access.Endpoint == "" {
			return err
		}
		secret := a.secret(bucket.Name)
		secret.Labels = map[string]string{extensionsv1alpha1.LabelBackupBucket: bucket.Name}
		secret.Type, secret.Data = corev1.SecretTypeOpaque, access.SecretData()
		if err := apply.Objects(ctx, a.client, apply.Backups, secret); err != nil {
			return err
		}
		bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}
		return nil
	})
}

// Delete implements extension.Actuator.
func (a bucketActuator) Delete(ctx context.Context, _ logr.Logger, bucket *extensionsv1alpha1.BackupBucket,
	_ *cluster.Cluster) error {
	return call(ctx, a.credentials, bucket.Spec.SecretRef, func(cloud *api.Client) error {
		if err := cloud.DeleteBucket(ctx, bucket.Name); err != nil {
			return err
		}
		return client.IgnoreNotFound(a.client.Delete(ctx, a.secret(bucket.Name)))
	})
}

// secret is where the access to a bucket is kept.
func (a bucketActuator) secret(bucket string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.namespace, Name: gardencorev1beta1.GeneratedBackupBucketSecretPrefix + bucket,
	}}
}

type entryActuator struct {
	client      client.Client
	credentials credentials.Source
}

// Reconcile implements extension.Actuator: etcd gets access to the bucket, and a way to it.
func (a entryActuator) Reconcile(ctx context.Context, _ logr.Logger, entry *extensionsv1alpha1.BackupEntry,
	_ *cluster.Cluster) error {
	access, err := a.access(ctx, entry)
	if err != nil {
		return err
	}
	if access == nil {
		return call(ctx, a.credentials, entry.Spec.SecretRef, func(cloud *api.Client) error {
			return cloud.PutDirectory(ctx, entry.Spec.BucketName, entry.Name)
		})
	}
	namespace, err := backupsecret.Namespace(ctx, a.client, entry)
	if err != nil || namespace == "" {
		return err
	}
	policy, err := WayToStore(namespace, string(access[bucket.KeyEndpoint]))
	if err != nil {
		return err
	}
	if err := apply.Objects(ctx, a.client, apply.Backups, policy); err != nil {
		return err
	}
	return backupsecret.Write(ctx, a.client, namespace, entry, entry.Spec.BucketName, access)
}

// Delete implements extension.Actuator: it deletes all that was kept.
func (a entryActuator) Delete(ctx context.Context, _ logr.Logger, entry *extensionsv1alpha1.BackupEntry,
	_ *cluster.Cluster) error {
	access, err := a.access(ctx, entry)
	if err != nil {
		return err
	}
	if access != nil {
		return empty(ctx, access, entry.Spec.BucketName, entry.Name)
	}
	return call(ctx, a.credentials, entry.Spec.SecretRef, func(cloud *api.Client) error {
		return cloud.DeleteDirectory(ctx, entry.Spec.BucketName, entry.Name)
	})
}

// access are the keys by which the bucket of an entry is reached by S3; nil if it is a folder.
func (a entryActuator) access(ctx context.Context, entry *extensionsv1alpha1.BackupEntry) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: entry.Spec.SecretRef.Namespace, Name: entry.Spec.SecretRef.Name}
	err := a.credentials.Reader.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the credentials %s: %w", key, err)
	}
	if len(secret.Data[bucket.KeyAccessKeyID]) == 0 {
		return nil, nil
	}
	return onlyAccess(secret.Data), nil
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
