package etcd

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

const (
	storeVolume = "store"
	storeMount  = "/etc/etcd/store"
	// storeProvider is what etcd-steward calls stores that speak S3, the only ones that shoots have.
	storeProvider = "S3"
)

// storeKeys are those of the Secret without which there is no access to an S3 store.
var storeKeys = []string{extensionsv1alpha1.BackupSecretBucketName, "accessKeyID", "secretAccessKey"}

// Store is where backups are kept outside of the seed. What gives access to it is in the Secret that the extension of
// the store writes, extensionsv1alpha1.BackupSecretName. Its content may change while etcd runs.
type Store struct {
	// Prefix of the names of objects.
	Prefix string
	// bucket is what the Secret says; Deploy finds it.
	bucket string
}

// storeOf is where an etcd is backed up. Events may be lost.
func storeOf(role Role, prefix string) *Store {
	if role != Main || prefix == "" {
		return nil
	}
	return &Store{Prefix: prefix + "/" + Name(role)}
}

// restoreOf is the point in time that an etcd restores; none where there is no store.
func restoreOf(role Role, f component.Facts) request.Restore {
	if storeOf(role, f.BackupPrefix) == nil {
		return request.Restore{}
	}
	return f.RestoreETCD
}

// findStore reads which bucket the extension has made for the store. Without a store there is none.
func findStore(ctx context.Context, c client.Client, namespace string, store *Store) (*Store, error) {
	if store == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: extensionsv1alpha1.BackupSecretName}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s, which the extension writes for the BackupEntry: %w", key, err)
	}
	for _, name := range storeKeys {
		if len(secret.Data[name]) == 0 {
			return nil, fmt.Errorf("Secret %s has no key %s: etcd is backed up to stores that speak S3, and that is "+
				"for the extension of the store to say", key, name)
		}
	}
	found := *store
	found.bucket = string(secret.Data[extensionsv1alpha1.BackupSecretBucketName])
	return &found, nil
}

// labels let the pod out to the store.
func (s *Store) labels() map[string]string {
	if s == nil {
		return nil
	}
	return map[string]string{
		gardencorev1beta1.LabelNetworkPolicyToBackupStore: gardencorev1beta1.LabelNetworkPolicyAllowed,
	}
}

func (s *Store) arguments() []string {
	if s == nil {
		return nil
	}
	return []string{
		"--store-provider=" + storeProvider,
		"--store-bucket=" + s.bucket,
		"--store-prefix=" + s.Prefix,
		"--store-credentials-dir=" + storeMount,
	}
}

// volume has all keys of the Secret, as which of the optional ones are there may change.
func (s *Store) volume() corev1.Volume {
	return corev1.Volume{Name: storeVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: extensionsv1alpha1.BackupSecretName, DefaultMode: new(int32(0o440)),
	}}}
}

func (s *Store) mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: storeVolume, MountPath: storeMount, ReadOnly: true}
}
