// Package backup asks for the directory that a shoot's etcd is backed up to, before there is an etcd, and gives it up
// with the shoot. What is in it stays as long as gardenlet's configuration says.
package backup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// recheck is how often a BackupEntry is looked at that is not ready yet.
const recheck = time.Second

// Backup is that of one shoot.
type Backup struct {
	Plan *plan.Plan
	// Garden and Seed are clients.
	Garden, Seed client.Client
	SeedName     string
}

// Add adds the tasks that make the BackupEntry of the shoot. Once it is ready, its extension has written the Secret for
// etcd into the namespace. Seeds without spec.backup skip them.
func (b *Backup) Add(g *flow.Graph, f foundation.Tasks) flow.TaskID {
	skip := b.Plan.Seed.Backup == nil
	deployed := g.Add(flow.Task{
		Name: "Deploying backup entry", Fn: tasks.Retried(b.deploy), SkipIf: skip,
		Dependencies: []flow.TaskID{f.Namespace},
	})
	return g.Add(flow.Task{
		Name: "Waiting until the backup entry is ready", SkipIf: skip,
		Fn:           flow.TaskFn(b.check).RetryUntilTimeout(recheck, tasks.RolloutTimeout),
		Dependencies: []flow.TaskID{deployed},
	})
}

// deploy makes the BackupEntry. One that is there stays as it is: it may be in the bucket of a seed that was lost, and
// which seed cares for it the garden says.
func (b *Backup) deploy(ctx context.Context) error {
	entry := &gardencorev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Plan.ShootNamespace, Name: b.Plan.Seed.Backup.Entry},
		Spec:       gardencorev1beta1.BackupEntrySpec{BucketName: b.Plan.Seed.Backup.Bucket, SeedName: &b.SeedName},
	}
	if b.Plan.Purpose != nil {
		entry.Annotations = map[string]string{gardencorev1beta1.AnnotationShootPurpose: string(*b.Plan.Purpose)}
	}
	err := b.Garden.Get(ctx, client.ObjectKeyFromObject(entry), &gardencorev1beta1.BackupEntry{})
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(b.Garden.Create(ctx, entry))
	}
	if err != nil {
		return fmt.Errorf("making BackupEntry %s: %w", client.ObjectKeyFromObject(entry), err)
	}
	return nil
}

// check says what is missing until the shoot can be backed up.
func (b *Backup) check(ctx context.Context) error {
	entry := &gardencorev1beta1.BackupEntry{}
	key := client.ObjectKey{Namespace: b.Plan.ShootNamespace, Name: b.Plan.Seed.Backup.Entry}
	if err := b.Garden.Get(ctx, key, entry); err != nil {
		return fmt.Errorf("reading BackupEntry %s: %w", key, err)
	}
	last := entry.Status.LastOperation
	switch {
	case ptr.Deref(entry.Spec.SeedName, "") != b.SeedName:
		return fmt.Errorf("BackupEntry %s: the garden has not given it to this seed yet", key)
	case entry.DeletionTimestamp != nil:
		return fmt.Errorf("BackupEntry %s is being deleted, and with it the backups of the shoot", key)
	case entry.Status.LastError != nil:
		return &extension.Error{
			Kind: extensionsv1alpha1.BackupEntryResource, Name: key.String(),
			Description: entry.Status.LastError.Description, Codes: entry.Status.LastError.Codes,
		}
	case last == nil:
		return fmt.Errorf("BackupEntry %s: nothing is known of it yet", key)
	case last.State != gardencorev1beta1.LastOperationStateSucceeded ||
		entry.Status.ObservedGeneration != entry.Generation:
		return fmt.Errorf("BackupEntry %s: %s", key, last.Description)
	}
	return b.checkAccess(ctx)
}

// checkAccess makes sure that the extension has given access to the namespace. It had nowhere to write that where it
// worked before the namespace was there, as it may in a restore; then it is asked once more.
func (b *Backup) checkAccess(ctx context.Context) error {
	err := b.Seed.Get(ctx, b.Plan.Key(extensionsv1alpha1.BackupSecretName), &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	object := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: b.Plan.Seed.Backup.Entry}}
	if err := b.Seed.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("reading BackupEntry %s of the seed: %w", object.Name, err)
	}
	if err := extension.Check(object); err != nil {
		return fmt.Errorf("BackupEntry %s: %w", object.Name, err)
	}
	if err := extension.Deploy(ctx, b.Seed, object, true, func() {}); err != nil {
		return err
	}
	return fmt.Errorf("BackupEntry %s: its extension is asked once more for access to the backups", object.Name)
}

// Remove deletes the BackupEntry of a shoot, if it has one. gardenlet's controller of BackupEntries lets it go when its
// backups have been kept long enough.
func Remove(ctx context.Context, garden client.Client, shoot plan.Identity) error {
	entry := &gardencorev1beta1.BackupEntry{}
	key := client.ObjectKey{Namespace: shoot.ShootNamespace, Name: shoot.BackupEntry()}
	err := garden.Get(ctx, key, entry)
	if err == nil && entry.DeletionTimestamp == nil {
		err = garden.Delete(ctx, entry)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting BackupEntry %s: %w", key, err)
	}
	return nil
}
