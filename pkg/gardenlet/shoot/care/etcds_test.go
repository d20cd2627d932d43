package care

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	etcdstatus "github.com/trellis-garden/trellis/pkg/etcd/status"
)

func TestEtcdsThatAreWell(t *testing.T) {
	l := newLandscape(t)
	l.main.Store.Verification = etcdstatus.Operation{Succeeded: now.Add(-time.Hour), Seconds: 2.5}
	shoot := l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "True", "ControlPlaneRunning", "")
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady, "True", "ChangesSaved",
		"verified and restored on trial at 2026-01-01T11:00:00Z, in 2.5s.")
	check(t, shoot.Status.Constraints, gardencorev1beta1.ShootEtcdSpaceSufficient, "True", "SpaceSufficient", "")
	if events := l.eventsOf(t); len(events) > 0 {
		t.Errorf("there are events: %+v", events)
	}
	// What goes on being well writes nothing: the garden has many shoots.
	l.main.Time, l.main.Store.Delta.Succeeded, l.main.Store.Delta.Revision = now.Add(time.Minute), now.Time, 9
	if again := l.look(t); again.ResourceVersion != shoot.ResourceVersion {
		t.Errorf("the Shoot was written again: %+v", again.Status)
	}
}

func TestEtcdsThatCannotBeAsked(t *testing.T) {
	l := newLandscape(t)
	l.main, l.events = nil, nil
	shoot := l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady, "Unknown", reasonNotChecked,
		"connection refused")
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "True", "ControlPlaneRunning", "")
	if got := conditions.Get(shoot.Status.Constraints, gardencorev1beta1.ShootEtcdSpaceSufficient); got != nil {
		t.Errorf("space is told of: %+v", got)
	}
	// Those of before this version say nothing.
	l = newLandscape(t)
	l.care.Ask = func(context.Context, string) (*etcdstatus.Status, error) { return nil, etcdstatus.ErrNotServed }
	if got := conditions.Get(l.look(t).Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady); got != nil {
		t.Errorf("backups are told of: %+v", got)
	}
}

func TestEtcdsThatDoNotServe(t *testing.T) {
	for _, test := range []struct {
		name         string
		change       func(*etcdstatus.Status)
		reason, text string
	}{
		{
			"waiting", func(told *etcdstatus.Status) {
				told.Phase = etcdstatus.Awaiting
				told.Store.Failures = []etcdstatus.Failure{
					{Operation: "start", Reason: "permission", Message: "denied"},
				}
			},
			"EtcdAwaitsBackups", "It cannot be used: denied. Correct the Secret",
		},
		{
			"waiting, not known why",
			func(told *etcdstatus.Status) { told.Phase, told.Store = etcdstatus.Awaiting, nil },
			"EtcdAwaitsBackups", "rather than to begin without them.",
		},
		{
			"restoring", func(told *etcdstatus.Status) {
				told.Phase = etcdstatus.Restoring
				told.Recovering = &etcdstatus.Recovery{Cause: etcdstatus.LogDamaged, Reason: "record 9"}
			},
			"EtcdRestoring", "etcd-main found its write-ahead log damaged, but not its database (record 9). It rest",
		},
		{
			"restoring, not known why", func(told *etcdstatus.Status) { told.Phase = etcdstatus.Restoring },
			"EtcdRestoring", "etcd-main restores its data.",
		},
		{
			"verifying", func(told *etcdstatus.Status) { told.Phase = etcdstatus.Verifying }, "EtcdNotServing",
			"verifying the data",
		},
		{
			"with data that differs", func(told *etcdstatus.Status) {
				told.Differs = &etcdstatus.Difference{
					From: etcdstatus.BackupStore, Backup: "delta-7", Changed: []etcdstatus.Changed{{Revision: 7, Key: "a"}},
				}
			},
			"EtcdDataDiffers", "revision 7 of key \"a\". A disk may have changed it. Write or delete the objects",
		},
		{
			"with data that differs from that of others", func(told *etcdstatus.Status) {
				told.Differs = &etcdstatus.Difference{
					From: etcdstatus.Members, Message: "no quorum agrees: its hash is 1",
				}
			},
			"EtcdDataDiffers", "no quorum agrees: its hash is 1. When all members run",
		},
		{
			"without space", func(told *etcdstatus.Status) { told.ReadOnly = "the quota is exhausted" }, "EtcdReadOnly",
			"serves only reads and deletions: the quota is exhausted. Delete objects",
		},
		{
			"with certificates of before", func(told *etcdstatus.Status) {
				told.Certificates = &etcdstatus.Certificates{Checksum: "1", Refused: "it has no certificate"}
			},
			"EtcdRefusesCertificates", "does not take those that it was given: it has no certificate.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLandscape(t)
			test.change(l.main)
			found := l.look(t).Status.Conditions
			check(t, found, gardencorev1beta1.ShootControlPlaneHealthy, "False", test.reason, test.text)
		})
	}
}

// One that refuses to start is gone again before it can be asked. Its pod has its last words.
func TestLastWordsOfAnEtcdAreTold(t *testing.T) {
	l := newLandscape(t)
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: testNamespace, Name: "etcd-main-0"}
	if err := l.seed.Get(t.Context(), key, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Message: `{"msg":"Error: not this"}` + "\nError: the data is damaged\nand there is no backup\n",
	}
	if err := l.seed.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	l.main = nil
	check(t, l.look(t).Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "False", "EtcdFailed",
		"etcd-main does not run: the data is damaged and there is no backup")
}

func TestSpaceIsToldOf(t *testing.T) {
	for _, test := range []struct {
		name         string
		change       func(*etcdstatus.Status)
		status       gardencorev1beta1.ConditionStatus
		reason, text string
	}{
		{"room", func(told *etcdstatus.Status) {
			told.Space = []etcdstatus.Space{{Of: "quota", Level: 70}, {Of: "volume"}}
		}, "True", "SpaceSufficient", ""},
		{"nearly full", func(told *etcdstatus.Status) {
			told.Space = []etcdstatus.Space{{Of: "quota", Level: 70}, {Of: "volume", Level: 85}}
		}, "False", "NearlyFull", "The volume of etcd-events is full to 85 % or more"},
		{
			"read-only", func(told *etcdstatus.Status) { told.ReadOnly = "the volume is full" }, "False", "NoSpace",
			"etcd-events serves only reads and deletions: the volume is full. Delete objects",
		},
		{"skipped", func(told *etcdstatus.Status) {
			told.Skipped = []etcdstatus.Skip{{What: "snapshot", Since: now.Time, Message: "too little"}}
		}, "False", "WorkSkipped", "since 2026-01-01T12:00:00Z: snapshot (too little)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLandscape(t)
			test.change(l.events)
			check(t, l.look(t).Status.Constraints, gardencorev1beta1.ShootEtcdSpaceSufficient, test.status, test.reason,
				test.text)
		})
	}
}

func TestSleepingEtcdsAreNotAsked(t *testing.T) {
	l := newLandscape(t)
	l.care.Ask = func(context.Context, string) (*etcdstatus.Status, error) {
		t.Error("an etcd was asked")
		return nil, errors.New("asleep")
	}
	shoot := &gardencorev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: "garden-demo", Name: "one"}
	if err := l.garden.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Status.IsHibernated = true
	if err := l.garden.Status().Update(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	shoot = l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootEtcdBackupReady, "True", reasonNotChecked, "hibernated")
	check(t, shoot.Status.Constraints, gardencorev1beta1.ShootEtcdSpaceSufficient, "True", reasonConstraintNotChecked,
		"hibernated")
}

// Each member is told of by its own name.
func TestEachMemberIsToldOf(t *testing.T) {
	l := newLandscapeOfMembers(t)
	l.others[0].Phase = etcdstatus.AwaitingMembers
	check(t, l.look(t).Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "False", "EtcdNotServing",
		"etcd-main-1 does not serve yet: waiting for the other members.")
	l.others[0] = telling()
	l.others[1].Space = []etcdstatus.Space{{Of: "volume", Level: 85}}
	check(t, l.look(t).Status.Constraints, gardencorev1beta1.ShootEtcdSpaceSufficient, "False", "NearlyFull",
		"The volume of etcd-main-2 is full")
	// What one member has recovered hides nothing of what others have before.
	l.main.Recoveries = []etcdstatus.Recovery{recoveryAt(time.Hour)}
	l.look(t)
	l.others[0].Recoveries = []etcdstatus.Recovery{recoveryAt(2 * time.Hour)}
	l.look(t)
	shoot := l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "True", "EtcdRecovered",
		"etcd-main-1 found its data damaged")
	events := l.eventsOf(t)
	if len(events) != 2 || !strings.HasPrefix(events[0].Note, "etcd-main-") || events[0].Note == events[1].Note {
		t.Errorf("the events are %+v", events)
	}
}
