// Package backupsecret writes the Secret by which the etcd of a shoot gets to its backups.
package backupsecret

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// Namespace is that of the shoot whose backups an entry holds; empty if the seed does not have this shoot: entries
// outlive their shoots, and another shoot may have the name then.
func Namespace(ctx context.Context, reader client.Reader, entry *extensionsv1alpha1.BackupEntry) (string, error) {
	namespace, uid, _ := gardencorev1beta1.ShootOfBackupEntry(entry.Name)
	found, err := cluster.Get(ctx, reader, namespace)
	if err != nil || found == nil || found.Shoot == nil || string(found.Shoot.UID) != uid {
		return "", err
	}
	return namespace, nil
}

// Write writes the Secret of an entry into the namespace of its shoot. bucket is the name of the bucket in the store,
// data has what gives access to it, with the keys that are published for the type of store.
func Write(ctx context.Context, c client.Client, namespace string, entry *extensionsv1alpha1.BackupEntry,
	bucket string, data map[string][]byte) error {
	content := maps.Clone(data)
	if content == nil {
		content = map[string][]byte{}
	}
	content[extensionsv1alpha1.BackupSecretBucketName] = []byte(bucket)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: extensionsv1alpha1.BackupSecretName,
			Annotations: map[string]string{extensionsv1alpha1.AnnotationBackupSecretCreatedBy: entry.Name},
		},
		Type: corev1.SecretTypeOpaque, Data: content,
	}
	if err := apply.Objects(ctx, c, apply.Backups, secret); err != nil {
		return fmt.Errorf("access of etcd to BackupEntry %s: %w", entry.Name, err)
	}
	return nil
}
