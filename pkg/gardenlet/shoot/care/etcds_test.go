package care

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	etcdstatus "github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

const testNamespace = "shoot--demo--one"

// landscape is a garden with one shoot, and its seed with etcds that tell what a test has them tell.
type landscape struct {
	care         *Reconciler
	garden, seed client.Client
	main, events *etcdstatus.Status
	// others are the members of etcd-main beside the first.
	others [2]*etcdstatus.Status
}

// newLandscape has a shoot that is well, on a seed with a store of backups.
func newLandscape(t *testing.T) *landscape {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(addHealthSchemes(scheme), gardencorev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &landscape{main: telling(), events: telling()}
	l.events.Store = nil
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one", UID: "1234"},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: new("seed")},
		Status: gardencorev1beta1.ShootStatus{
			TechnicalID: testNamespace, SeedName: new("seed"),
			LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded},
		},
	}
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "seed"},
		Spec:       gardencorev1beta1.SeedSpec{Backup: &gardencorev1beta1.Backup{}},
	}
	l.garden = fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot, seed).
		WithStatusSubresource(shoot).Build()
	l.seed = healthyControlPlane(scheme, testNamespace)
	l.runEtcd(t, "etcd-main-0", "10.0.0.1")
	l.runEtcd(t, "etcd-events-0", "10.0.0.2")
	configuration := &config.Configuration{SeedConfig: &config.SeedConfig{}}
	configuration.SeedConfig.Name = "seed"
	configuration.Controllers.ShootCare.SyncPeriod = &metav1.Duration{Duration: time.Minute}
	l.care = &Reconciler{
		Garden: l.garden, Seed: l.seed, Seeds: l.garden, Config: configuration,
		Now: func() time.Time { return now.Time },
		Ask: func(_ context.Context, address string) (*etcdstatus.Status, error) {
			told := map[string]*etcdstatus.Status{
				"10.0.0.1:8080": l.main, "10.0.0.2:8080": l.events, "10.0.0.3:8080": l.others[0],
				"10.0.0.4:8080": l.others[1],
			}[address]
			if told == nil {
				return nil, errors.New("connection refused\x1b")
			}
			return told, nil
		},
	}
	return l
}

// newLandscapeOfMembers is as newLandscape, with three members of etcd-main. The last one leads.
func newLandscapeOfMembers(t *testing.T) *landscape {
	t.Helper()
	l := newLandscape(t)
	set := &appsv1.StatefulSet{}
	if err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: testNamespace, Name: "etcd-main"}, set); err != nil {
		t.Fatal(err)
	}
	set.Spec.Replicas = new(int32(3))
	if err := l.seed.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	set.Status = appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3}
	if err := l.seed.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	l.runEtcd(t, "etcd-main-1", "10.0.0.3")
	l.runEtcd(t, "etcd-main-2", "10.0.0.4")
	l.others = [2]*etcdstatus.Status{telling(), telling()}
	l.main.Store, l.others[0].Store, l.others[1].Leads = &etcdstatus.Store{}, &etcdstatus.Store{}, true
	return l
}

// runEtcd adds the pod of a member.
func (l *landscape) runEtcd(t *testing.T, name, address string) {
	t.Helper()
	l.create(t, l.seed, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name},
		Status: corev1.PodStatus{
			PodIP: address, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	})
}

// telling is what an etcd tells that serves and is backed up.
func telling() *etcdstatus.Status {
	return &etcdstatus.Status{
		Time: now.Time, Phase: etcdstatus.Serving, PhaseSince: now.Add(-time.Hour),
		Store: &etcdstatus.Store{Delta: etcdstatus.Operation{Succeeded: now.Add(-time.Minute), Revision: 7}},
	}
}

func (l *landscape) create(t *testing.T, in client.Client, object client.Object) {
	t.Helper()
	if err := in.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// look has gardenlet look, and returns what the Shoot then says.
func (l *landscape) look(t *testing.T) *gardencorev1beta1.Shoot {
	t.Helper()
	key := client.ObjectKey{Namespace: "garden-demo", Name: "one"}
	if _, err := l.care.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := l.garden.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	return shoot
}

// eventsOf are those in the garden.
func (l *landscape) eventsOf(t *testing.T) []eventsv1.Event {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := l.garden.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// check checks a condition or constraint, of which the message is to have some text.
func check(t *testing.T, list []gardencorev1beta1.Condition, kind gardencorev1beta1.ConditionType,
	status gardencorev1beta1.ConditionStatus, reason, text string) {
	t.Helper()
	got := conditions.Get(list, kind)
	if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, text) {
		t.Errorf("%s is %+v, want %s, %s, %q", kind, got, status, reason, text)
	}
}

// recoveryAt is one that ended some time ago.
func recoveryAt(ago time.Duration) etcdstatus.Recovery {
	return etcdstatus.Recovery{
		Cause: etcdstatus.DataDamaged, Reason: "page 3", Found: now.Add(-ago - time.Second), Finished: now.Add(-ago),
		Aside: "/var/etcd/data/damaged-1", Missing: "at most what was written",
		Restored: &etcdstatus.Restored{From: etcdstatus.BackupStore, Backup: "delta-7", Revision: 7},
	}
}

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
			"without space", func(told *etcdstatus.Status) { told.ReadOnly = "the quota is exhausted" }, "EtcdReadOnly",
			"serves only reads and deletions: the quota is exhausted. Delete objects",
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

func TestRecoveriesAreToldOnce(t *testing.T) {
	l := newLandscape(t)
	l.main.Recoveries = []etcdstatus.Recovery{recoveryAt(2 * time.Hour), recoveryAt(time.Hour)}
	shoot := l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "True", "EtcdRecovered",
		"All control plane components are healthy. etcd-main found its data damaged (page 3). At 2026-01-01T11:00:00Z"+
			", after 1s, it served again: restored from delta-7 of the store of backups, revision 7")
	for range 3 {
		// A gardenlet that starts anew knows no more than the first.
		l.look(t)
	}
	events := l.eventsOf(t)
	if len(events) != 2 {
		t.Fatalf("there are %d events: %+v", len(events), events)
	}
	for _, event := range events {
		if event.Namespace != "garden-demo" || event.Reason != "EtcdRecovered" || event.Type != corev1.EventTypeWarning ||
			event.Regarding.Name != "one" || event.Regarding.UID != "1234" || event.Regarding.Kind != "Shoot" ||
			event.EventTime.IsZero() || event.ReportingController == "" || event.ReportingInstance == "" ||
			event.Action == "" {
			t.Errorf("the event is %+v", event)
		}
		for _, part := range []string{"page 3", "delta-7", "at most what was written", "/var/etcd/data/damaged-1"} {
			if !strings.Contains(event.Note, part) {
				t.Errorf("the event does not say %q: %s", part, event.Note)
			}
		}
		// Events pass, and are not made again.
		if err := l.garden.Delete(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
	l.look(t)
	if events := l.eventsOf(t); len(events) > 0 {
		t.Errorf("a recovery was told again: %+v", events)
	}
	// The condition tells of it for a week.
	l.care.Now = func() time.Time { return now.Add(newsAge) }
	shoot = l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "True", "ControlPlaneRunning", "")
}

// A gardenlet that is killed between the event and its note makes the same event again.
func TestEventsOfRecoveriesHaveOneName(t *testing.T) {
	l := newLandscape(t)
	l.main.Recoveries = []etcdstatus.Recovery{recoveryAt(time.Hour)}
	l.look(t)
	set := &appsv1.StatefulSet{}
	if err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: testNamespace, Name: "etcd-main"}, set); err != nil {
		t.Fatal(err)
	}
	if set.Annotations[annotationToldRecovery] == "" {
		t.Fatal("it is not noted")
	}
	delete(set.Annotations, annotationToldRecovery)
	if err := l.seed.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	l.look(t)
	if events := l.eventsOf(t); len(events) != 1 {
		t.Errorf("there are %d events", len(events))
	}
	if err := l.seed.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil ||
		set.Annotations[annotationToldRecovery] == "" {
		t.Errorf("it is not noted: %v", err)
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

// TestAttackEtcdTellsLies plays who has taken over the etcd of a shoot: gardenlet writes one event at a look, none of
// the future, which would hide all that come, and nothing that a terminal would obey or the garden would refuse.
func TestAttackEtcdTellsLies(t *testing.T) {
	evil := "\x1b]0;title\x07\u202e" + strings.Repeat("long ", 1000)
	recovery := func(ago time.Duration) etcdstatus.Recovery {
		r := recoveryAt(ago)
		r.Cause, r.Reason, r.Missing, r.Aside = etcdstatus.Cause(evil), evil, evil, evil
		r.Restored.Backup, r.Restored.From = evil, etcdstatus.Source(evil)
		return r
	}
	l := newLandscape(t)
	lies := telling()
	lies.Store.Failures = []etcdstatus.Failure{{Operation: "delta", Reason: evil, Message: evil}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(lies); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	l.care.Ask = func(ctx context.Context, _ string) (*etcdstatus.Status, error) {
		return etcdstatus.Ask(ctx, server.Listener.Addr().String())
	}
	if err := l.seed.Delete(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "etcd-events-0"},
	}); err != nil {
		t.Fatal(err)
	}
	for look := 1; look <= 5; look++ {
		lies.Recoveries = []etcdstatus.Recovery{recovery(-24 * 365 * time.Hour)}
		for i := range 4 {
			lies.Recoveries = append(lies.Recoveries, recovery(time.Hour-time.Duration(look*10+i)*time.Second))
		}
		shoot := l.look(t)
		events := l.eventsOf(t)
		if len(events) > look {
			t.Errorf("after %d looks, there are %d events", look, len(events))
		}
		texts := []string{}
		for _, event := range events {
			if texts = append(texts, event.Note); len(event.Note) > 1024 {
				t.Errorf("an event has %d bytes", len(event.Note))
			}
		}
		for _, condition := range shoot.Status.Conditions {
			if texts = append(texts, condition.Message); len(condition.Message) > 2048 {
				t.Errorf("%s has %d bytes", condition.Type, len(condition.Message))
			}
		}
		if all := strings.Join(texts, ""); strings.ContainsAny(all, "\x1b\x07\u202e") {
			t.Errorf("it says %q", all)
		}
	}
	// A true one comes through yet.
	lies.Recoveries = []etcdstatus.Recovery{recoveryAt(0)}
	before := len(l.eventsOf(t))
	l.look(t)
	if after := len(l.eventsOf(t)); after != before+1 {
		t.Errorf("%d events became %d", before, after)
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
