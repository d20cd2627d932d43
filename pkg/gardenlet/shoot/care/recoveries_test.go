package care

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// recoveryAt is one that ended some time ago.
func recoveryAt(ago time.Duration) status.Recovery {
	return status.Recovery{
		Cause: status.DataDamaged, Reason: "page 3", Found: now.Add(-ago - time.Second), Finished: now.Add(-ago),
		Aside: "/var/etcd/data/damaged-1", Missing: "at most what was written",
		Restored: &status.Restored{From: status.BackupStore, Backup: "delta-7", Revision: 7},
	}
}

func TestRecoveriesAreToldOnce(t *testing.T) {
	l := newLandscape(t)
	l.main.Recoveries = []status.Recovery{recoveryAt(2 * time.Hour), recoveryAt(time.Hour)}
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
	l.care.Now = func() time.Time { return now.Add(recoveryAge) }
	shoot = l.look(t)
	check(t, shoot.Status.Conditions, gardencorev1beta1.ShootControlPlaneHealthy, "True", "ControlPlaneRunning", "")
}

// Each difference is told once, as long as it lasts, and another one again.
func TestDifferencesAreToldOnce(t *testing.T) {
	l := newLandscapeOfMembers(t)
	l.others[0].Differs = &status.Difference{
		From: status.BackupDirectory, Backup: "full-7", Since: now.Add(-time.Hour),
		Changed: []status.Changed{{Revision: 7, Key: "/registry/a"}},
	}
	for range 3 {
		l.look(t)
	}
	events := l.eventsOf(t)
	if len(events) != 1 || events[0].Reason != "EtcdDataDiffers" || events[0].Regarding.Name != "one" ||
		!strings.Contains(events[0].Note, "etcd-main-1 serves data that differs from full-7 of the backup directory") ||
		!strings.Contains(events[0].Note, "/registry/a") {
		t.Fatalf("the events are %+v", events)
	}
	if err := l.garden.Delete(t.Context(), &events[0]); err != nil {
		t.Fatal(err)
	}
	l.look(t)
	if events := l.eventsOf(t); len(events) > 0 {
		t.Errorf("it was told again: %+v", events)
	}
	l.others[0].Differs.Since = now.Time
	l.look(t)
	l.others[0].Differs.Since = now.Add(2 * clockSkew)
	l.look(t)
	if events := l.eventsOf(t); len(events) != 1 {
		t.Errorf("another one, and one of the future, were told as %+v", events)
	}
}

// A gardenlet that is killed between the event and its note makes the same event again.
func TestEventsOfRecoveriesHaveOneName(t *testing.T) {
	l := newLandscape(t)
	l.main.Recoveries = []status.Recovery{recoveryAt(time.Hour)}
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

// TestAttackEtcdTellsLies plays who has taken over the etcd of a shoot: gardenlet writes one event at a look, none of
// the future, which would hide all that come, and nothing that a terminal would obey or the garden would refuse.
func TestAttackEtcdTellsLies(t *testing.T) {
	evil := "\x1b]0;title\x07\u202e" + strings.Repeat("long ", 200)
	recovery := func(ago time.Duration) status.Recovery {
		r := recoveryAt(ago)
		r.Cause, r.Reason, r.Missing, r.Aside = status.Cause(evil), evil, evil, evil
		r.Restored.Backup, r.Restored.From = evil, status.Source(evil)
		return r
	}
	l := newLandscape(t)
	lies := telling()
	lies.Store.Failures = []status.Failure{{Operation: "delta", Reason: evil, Message: evil}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(lies); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	l.care.Ask = func(ctx context.Context, _ string) (*status.Status, error) {
		return status.Ask(ctx, server.Listener.Addr().String())
	}
	if err := l.seed.Delete(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "etcd-events-0"},
	}); err != nil {
		t.Fatal(err)
	}
	for look := 1; look <= 5; look++ {
		lies.Recoveries = []status.Recovery{recovery(-24 * 365 * time.Hour)}
		for i := range 4 {
			lies.Recoveries = append(lies.Recoveries, recovery(time.Hour-time.Duration(look*10+i)*time.Second))
		}
		lies.Differs = &status.Difference{
			From: status.Source(evil), Message: evil, Backup: evil, Changed: []status.Changed{{Key: evil}, {Key: evil}},
			Since: now.Add(time.Duration(look%3) * time.Hour),
		}
		shoot := l.look(t)
		events := l.eventsOf(t)
		// Of all that is told to differ, one is not of the future and not told yet.
		if len(events) < look || len(events) > look+1 {
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
	lies.Recoveries, lies.Differs = []status.Recovery{recoveryAt(0)}, nil
	before := len(l.eventsOf(t))
	l.look(t)
	if after := len(l.eventsOf(t)); after != before+1 {
		t.Errorf("%d events became %d", before, after)
	}
}
