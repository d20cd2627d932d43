package care

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// unsavedAge is from which age on changes that are not in the store are a problem, also where nothing fails.
const unsavedAge = 10 * time.Minute

// storeProblem is what a reason of a store's failures is called in conditions, and what to do about it.
type storeProblem struct{ reason, advice string }

// storeProblems by the reason that etcd-steward gives.
var storeProblems = map[string]storeProblem{
	status.Permission: {
		"CredentialsRefused", "Correct the Secret that spec.backup.credentialsRef of the Seed names.",
	},
	status.FullStore:   {"StoreFull", "Give the bucket more room."},
	status.Immutable:   {"StoreImmutable", "Look at the retention of the bucket."},
	status.Key:         {"EncryptionKeyUnusable", "Bring the key back with which the backups are encrypted."},
	status.Damaged:     {"BackupsDamaged", "They are replaced by a full snapshot; look at the store."},
	status.Behind:      {"Behind", "Delete the data to have the backups restored, or move the backups away."},
	status.Room:        {"NoRoom", "Delete objects of the cluster that nobody needs."},
	status.Timeout:     {"StoreUnavailable", "Look at the store and at the way to it."},
	status.Unavailable: {"StoreUnavailable", "Look at the store and at the way to it."},
}

// isBackedUp tells whether the etcds of the seed's shoots have a store.
func (c *Reconciler) isBackedUp(ctx context.Context) (bool, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := c.Seeds.Get(ctx, client.ObjectKey{Name: c.Config.SeedConfig.Name}, seed); err != nil {
		return false, fmt.Errorf("reading Seed %s: %w", c.Config.SeedConfig.Name, err)
	}
	return seed.Spec.Backup != nil, nil
}

// attempts are what fails when an operation does on which a backup, or a restore, depends.
var attempts = []struct{ operation, what string }{
	{status.Start, "Restoring"},
	{status.Delta, "Saving the changes"},
	{status.Full, "Saving a full snapshot"},
	{status.Verification, "Verifying the backups"},
}

// backupConditions say whether etcd-main is backed up. Events may be lost.
func backupConditions(etcds []etcdView) []gardencorev1beta1.Condition {
	for _, etcd := range etcds {
		if etcd.name == etcdcomponent.Name(etcdcomponent.Main) {
			return backupReady(etcd)
		}
	}
	return nil
}

// backupReady says whether all changes of an etcd come to the store of its seed. Nothing is said of an older steward.
func backupReady(etcd etcdView) []gardencorev1beta1.Condition {
	const t = gardencorev1beta1.ShootEtcdBackupReady
	told, err := etcd.saving()
	switch {
	case errors.Is(err, status.ErrNotServed):
		return nil
	case err != nil:
		return []gardencorev1beta1.Condition{unknown(t, errors.New(status.Text(err.Error())))}
	}
	state, reason, message := backupState(etcd.name, told)
	return []gardencorev1beta1.Condition{conditions.New(t, state, reason, message)}
}

// saving is what the member tells that saves the changes: of several, the one that leads.
func (e etcdView) saving() (*status.Status, error) {
	if len(e.members) == 1 {
		return e.members[0].told, e.members[0].err
	}
	all := []error{fmt.Errorf("no member of %s says that it leads, which the one does that saves the changes", e.name)}
	var told []*status.Status
	for _, member := range e.members {
		if member.told != nil {
			told = append(told, member.told)
		}
		if member.err != nil {
			all = append(all, fmt.Errorf("%s: %w", member.name, member.err))
		}
	}
	if saving := status.Saving(told); saving != nil {
		return saving, nil
	}
	return nil, errors.Join(all...)
}

func backupState(name string, told *status.Status) (state gardencorev1beta1.ConditionStatus, reason, message string) {
	if told.Store == nil {
		return gardencorev1beta1.ConditionFalse, "BackupNotConfigured", fmt.Sprintf("%s runs without the store that "+
			"the seed has for it. The next reconciliation of the shoot restarts it with that.", name)
	}
	if failure, what := weighty(told.Store); failure != nil {
		known := storeProblemOf(failure)
		return gardencorev1beta1.ConditionFalse, known.reason, fmt.Sprintf("%s of %s fails since %s: %s. %s", what,
			name, stamp(failure.Since), failure.Message, known.advice)
	}
	saved := told.Store.Delta.Succeeded
	since := saved
	if told.PhaseSince.After(since) {
		since = told.PhaseSince
	}
	switch {
	case told.Phase != status.Serving:
		return gardencorev1beta1.ConditionProgressing, "EtcdNotServing",
			fmt.Sprintf("%s does not serve yet: %s.", name, told.Phase)
	case told.Time.Sub(since) > unsavedAge:
		return gardencorev1beta1.ConditionFalse, "ChangesNotSaved",
			fmt.Sprintf("%s has saved no changes to the store of backups since %s.", name, stamp(since))
	case saved.IsZero():
		return gardencorev1beta1.ConditionProgressing, "ChangesNotSavedYet",
			fmt.Sprintf("%s has just begun to save its changes to the store of backups.", name)
	}
	return gardencorev1beta1.ConditionTrue, "ChangesSaved", fmt.Sprintf("All changes of %s are saved to the store of "+
		"backups.%s", name, lesser(told.Store))
}

// weighty returns the failure that keeps an etcd from being backed up, or restored, if there is one, and what fails.
func weighty(store *status.Store) (failure *status.Failure, what string) {
	for _, attempt := range attempts {
		failure := store.Failure(attempt.operation)
		// Without room to restore them on trial, the backups are verified as far as that goes.
		if failure != nil && (attempt.operation != status.Verification || failure.Reason != status.Room) {
			return failure, attempt.what
		}
	}
	return nil, ""
}

func storeProblemOf(failure *status.Failure) storeProblem {
	if known, found := storeProblems[failure.Reason]; found {
		return known
	}
	return storeProblems[status.Unavailable]
}

// lesser says of an etcd that is backed up when that was verified last, and what else fails.
func lesser(store *status.Store) string {
	var text string
	if last := store.Verification; !last.Succeeded.IsZero() {
		text += fmt.Sprintf(" The newest were verified and %s%s, in %s.", gardencorev1beta1.EtcdRestoredOnTrial,
			stamp(last.Succeeded), time.Duration(last.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	if failure := store.Failure(status.Verification); failure != nil {
		text += fmt.Sprintf(" They cannot be restored on trial: %s.", failure.Message)
	}
	// What is immutable is deleted later.
	if failure := store.Failure(status.Prune); failure != nil && failure.Reason != status.Immutable {
		text += fmt.Sprintf(" Old ones cannot be deleted: %s.", failure.Message)
	}
	return text
}

// storeWords says why an etcd cannot be restored from its store yet.
func storeWords(store *status.Store) string {
	if store == nil {
		return ""
	}
	failure := store.Failure(status.Start)
	if failure == nil {
		return ""
	}
	return fmt.Sprintf(" It cannot be used: %s. %s", failure.Message, storeProblemOf(failure).advice)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
