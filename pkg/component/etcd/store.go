package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
)

// storeProviders are the kinds of stores, as etcd-steward calls them. Each is known by the keys of the Secret without
// which there is no access to one.
var storeProviders = []struct {
	name string
	keys []string
}{
	{"S3", []string{"accessKeyID", "secretAccessKey"}},
	{"ABS", []string{"storageAccount", "storageKey"}},
	{"GCS", []string{"serviceaccount.json"}},
	{"Swift", []string{"authURL"}},
}

// Store is where backups are kept outside of the seed. What gives access to it is in the Secret that the extension of
// the store writes, extensionsv1alpha1.BackupSecretName. Its content may change while etcd runs.
type Store struct {
	// Prefix of the names of objects.
	Prefix string
	// Claim is the number by which etcd takes over backups of another seed: without data it begins with these only. 0
	// if it never was on another one.
	Claim int64
	// Backup says how often is saved, and for how long that is kept.
	Backup component.ETCDBackup
	// provider and bucket are what the Secret says; Deploy finds them.
	provider, bucket string
}

// storeOf is where an etcd is backed up. Events may be lost.
func storeOf(role Role, f component.Facts) *Store {
	if role != Main || f.BackupPrefix == "" {
		return nil
	}
	return &Store{Prefix: f.BackupPrefix + "/" + Name(role), Claim: f.BackupClaim, Backup: f.ETCDBackup}
}

// restoreOf is the point in time that an etcd restores; none where there is no store. Of several members, each is
// asked: the first one restores when all are.
func restoreOf(role Role, f component.Facts) request.Restore {
	if storeOf(role, f) == nil {
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
	if len(secret.Data[extensionsv1alpha1.BackupSecretBucketName]) == 0 {
		return nil, fmt.Errorf("Secret %s has no key %s, which the extension of the store writes", key,
			extensionsv1alpha1.BackupSecretBucketName)
	}
	provider, err := storeProvider(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("Secret %s, which the extension of the store writes: %w", key, err)
	}
	found := *store
	found.provider, found.bucket = provider, string(secret.Data[extensionsv1alpha1.BackupSecretBucketName])
	return &found, nil
}

// storeProvider is the only kind of store that the keys of a Secret give access to.
func storeProvider(data map[string][]byte) (string, error) {
	var found, lacking, all []string
	for _, provider := range storeProviders {
		all = append(all, fmt.Sprintf("%s (%s)", provider.name, strings.Join(provider.keys, ", ")))
		var has, lacks []string
		for _, key := range provider.keys {
			if len(data[key]) > 0 {
				has = append(has, key)
			} else {
				lacks = append(lacks, key)
			}
		}
		if len(lacks) == 0 {
			found = append(found, provider.name)
		} else if len(has) > 0 {
			lacking = append(lacking, fmt.Sprintf("it has no key %s beside %s", strings.Join(lacks, " and "),
				strings.Join(has, " and ")))
		}
	}
	switch {
	case len(lacking) > 0:
		return "", errors.New(strings.Join(lacking, "; "))
	case len(found) == 0:
		return "", fmt.Errorf("it has the keys of none of the stores that etcd is backed up to: %s",
			strings.Join(all, ", "))
	case len(found) > 1:
		return "", fmt.Errorf("it has the keys of several stores: %s", strings.Join(found, ", "))
	}
	return found[0], nil
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
	arguments := []string{
		"--store-provider=" + s.provider,
		"--store-bucket=" + s.bucket,
		"--store-prefix=" + s.Prefix,
		"--store-credentials-dir=" + storeMount,
		"--delta-snapshot-period=" + s.Backup.DeltaSnapshotPeriod.String(),
		"--store-snapshot-retention=" + strconv.Itoa(s.Backup.FullSnapshots),
		"--snapshot-retention-age=" + s.Backup.FullSnapshotAge.String(),
		"--verify-period=" + s.Backup.VerificationPeriod.String(),
	}
	if s.Claim > 0 {
		arguments = append(arguments, "--store-claim="+strconv.FormatInt(s.Claim, 10))
	}
	return arguments
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
