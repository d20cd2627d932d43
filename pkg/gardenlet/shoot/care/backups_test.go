package care

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	etcdstatus "github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestBackupsAreToldOf(t *testing.T) {
	failing := func(operation, reason string) func(*etcdstatus.Status) {
		return func(told *etcdstatus.Status) {
			told.Store.Failures = append(told.Store.Failures, etcdstatus.Failure{
				Operation: operation, Reason: reason, Since: now.Time, Message: "403 Forbidden",
			})
		}
	}
	for _, test := range []struct {
		name   string
		change func(*etcdstatus.Status)
		status gardencorev1beta1.ConditionStatus
		reason string
		text   string
	}{
		{
			"wrong credentials", failing("delta", "permission"), "False", "CredentialsRefused",
			"Saving the changes of etcd-main fails since 2026-01-01T12:00:00Z: 403 Forbidden. Correct the Secret",
		},
		{"a full bucket", failing("delta", "full"), "False", "StoreFull", "Give the bucket more room"},
		{"no answer", failing("delta", "timeout"), "False", "StoreUnavailable", "403"},
		{"no network", failing("delta", "unavailable"), "False", "StoreUnavailable", "403"},
		{"another key", failing("delta", "key"), "False", "EncryptionKeyUnusable", "403"},
		{"a rolled back volume", failing("delta", "behind"), "False", "Behind", "move the backups away"},
		{"what nobody knows", failing("delta", "eclipse"), "False", "StoreUnavailable", "403"},
		{"a full snapshot", failing("full", "room"), "False", "NoRoom", "Saving a full snapshot of etcd-main"},
		{"a drill", failing("verification", "damaged"), "False", "BackupsDamaged", "Verifying the backups"},
		{
			"a drill without room", failing("verification", "room"), "True", "ChangesSaved",
			"They cannot be restored on trial: 403 Forbidden.",
		},
		{"pruning", failing("prune", "permission"), "True", "ChangesSaved", "Old ones cannot be deleted: 403"},
		{"what is immutable", failing("prune", "immutable"), "True", "ChangesSaved", "saved to the store of backups."},
		{"no store", func(told *etcdstatus.Status) { told.Store = nil }, "False", "BackupNotConfigured", "next reconc"},
		{
			"nothing saved for long", func(told *etcdstatus.Status) {
				told.Store.Delta.Succeeded = now.Add(-11 * time.Minute)
			},
			"False", "ChangesNotSaved", "since 2026-01-01T11:49:00Z",
		},
		{
			"nothing saved yet", func(told *etcdstatus.Status) {
				told.Store.Delta, told.PhaseSince = etcdstatus.Operation{}, now.Time
			},
			"Progressing", "ChangesNotSavedYet", "",
		},
		{
			"not serving", func(told *etcdstatus.Status) { told.Phase = etcdstatus.Restoring }, "Progressing",
			"EtcdNotServing", "restoring a backup",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLandscape(t)
			test.change(l.main)
			found := l.look(t).Status.Conditions
			check(t, found, gardencorev1beta1.ShootEtcdBackupReady, test.status, test.reason, test.text)
			// The control plane is none the worse for its store.
			if l.main.Phase == etcdstatus.Serving {
				check(t, found, gardencorev1beta1.ShootControlPlaneHealthy, "True", "ControlPlaneRunning", "")
			}
		})
	}
}

func TestFailuresOfTheStoreHaveTimeToPass(t *testing.T) {
	l := newLandscape(t)
	l.care.Config.Controllers.ShootCare.ConditionThresholds = &[]config.ConditionThreshold{
		{Type: string(gardencorev1beta1.ShootEtcdBackupReady), Duration: metav1.Duration{Duration: 5 * time.Minute}},
	}
	l.look(t)
	l.main.Store.Failures = []etcdstatus.Failure{{Operation: "delta", Reason: "full", Since: now.Time}}
	shoot := l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady, "Progressing", "StoreFull", "")
	l.care.Now = func() time.Time { return now.Add(5 * time.Minute) }
	shoot = l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady, "False", "StoreFull", "")
}

func TestSeedsWithoutBackup(t *testing.T) {
	l := newLandscape(t)
	seed := &gardencorev1beta1.Seed{}
	if err := l.garden.Get(t.Context(), client.ObjectKey{Name: "seed"}, seed); err != nil {
		t.Fatal(err)
	}
	seed.Spec.Backup = nil
	if err := l.garden.Update(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	l.main.Store = nil
	if got := conditions.Get(l.look(t).Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady); got != nil {
		t.Errorf("backups are told of: %+v", got)
	}
}

// The leader saves the changes; the others save none, and are no problem for that.
func TestTheLeaderIsBackedUp(t *testing.T) {
	failure := etcdstatus.Failure{Operation: "delta", Reason: "permission", Since: now.Time, Message: "403 Forbidden"}
	for _, test := range []struct {
		name   string
		change func(*landscape)
		status gardencorev1beta1.ConditionStatus
		reason string
		text   string
	}{
		{"well", func(*landscape) {}, "True", "ChangesSaved", "All changes of etcd-main are saved"},
		{
			"the leader fails", func(l *landscape) { l.others[1].Store.Failures = []etcdstatus.Failure{failure} },
			"False", "CredentialsRefused", "Saving the changes of etcd-main fails",
		},
		{
			"another failed before", func(l *landscape) { l.main.Store.Failures = []etcdstatus.Failure{failure} },
			"True", "ChangesSaved", "",
		},
		{"one does not answer", func(l *landscape) { l.others[0] = nil }, "True", "ChangesSaved", ""},
		{
			"the leader does not answer", func(l *landscape) { l.others[1] = nil }, "Unknown", reasonNotChecked,
			"no member of etcd-main says that it leads, which the one does that saves the changes etcd-main-2:",
		},
		{
			"nobody leads", func(l *landscape) { l.others[1].Leads = false }, "Unknown", reasonNotChecked,
			"says that it leads",
		},
		{
			"the leader has just become it", func(l *landscape) {
				l.others[1].Store = &etcdstatus.Store{}
				l.main.Store.Delta.Succeeded = now.Add(-2 * time.Minute)
				l.others[0].Store.Verification = etcdstatus.Operation{Succeeded: now.Add(-time.Hour), Seconds: 2.5}
			},
			"True", "ChangesSaved", "restored on trial at 2026-01-01T11:00:00Z, in 2.5s",
		},
		{
			"nobody has saved for long", func(l *landscape) {
				l.others[1].Store = &etcdstatus.Store{}
				l.main.Store.Delta.Succeeded = now.Add(-11 * time.Minute)
			},
			"False", "ChangesNotSaved", "since 2026-01-01T11:49:00Z",
		},
		{
			"without a store", func(l *landscape) { l.others[1].Store = nil }, "False", "BackupNotConfigured", "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLandscapeOfMembers(t)
			test.change(l)
			found := l.look(t).Status.Conditions
			check(t, found, gardencorev1beta1.ShootEtcdBackupReady, test.status, test.reason, test.text)
			check(t, found, gardencorev1beta1.ShootControlPlaneHealthy, "True", "ControlPlaneRunning", "")
		})
	}
}
