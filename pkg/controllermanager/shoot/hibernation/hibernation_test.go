package hibernation

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func schedule(start, end, location string) gardencorev1beta1.HibernationSchedule {
	result := gardencorev1beta1.HibernationSchedule{}
	for field, value := range map[**string]string{&result.Start: start, &result.End: end, &result.Location: location} {
		if value != "" {
			*field = new(value)
		}
	}
	return result
}

func TestDue(t *testing.T) {
	nights := []gardencorev1beta1.HibernationSchedule{schedule("0 20 * * *", "0 7 * * *", "")}
	tests := map[string]struct {
		schedules  []gardencorev1beta1.HibernationSchedule
		since, now string
		want       string // "", or the state and time
	}{
		"nothing yet":         {nights, "2026-11-01 18:00", "2026-11-01 19:59", ""},
		"sleep":               {nights, "2026-11-01 18:00", "2026-11-01 20:00", "true 20:00"},
		"followed already":    {nights, "2026-11-01 20:00", "2026-11-01 20:01", ""},
		"the last of several": {nights, "2026-11-01 18:00", "2026-11-02 07:30", "false 07:00"},
		"time zone": {
			[]gardencorev1beta1.HibernationSchedule{schedule("0 20 * * *", "", "Europe/Berlin")}, "2026-11-01 18:00",
			"2026-11-01 19:30", "true 19:00",
		},
		"waking up wins": {
			[]gardencorev1beta1.HibernationSchedule{schedule("", "0 20 * * *", ""), schedule("0 20 * * *", "", "")},
			"2026-11-01 18:00", "2026-11-01 20:30", "false 20:00",
		},
		"waking up wins, swapped": {
			[]gardencorev1beta1.HibernationSchedule{schedule("0 20 * * *", "", ""), schedule("", "0 20 * * *", "")},
			"2026-11-01 18:00", "2026-11-01 20:30", "false 20:00",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			table, err := parse(test.schedules)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if due := table.due(at(t, test.since), at(t, test.now)); due != nil {
				got = map[bool]string{true: "true ", false: "false "}[due.enabled] + due.at.UTC().Format("15:04")
			}
			if got != test.want {
				t.Errorf("due = %q, want %q", got, test.want)
			}
		})
	}
}

func TestErrorsNameTheField(t *testing.T) {
	for want, wrong := range map[string]gardencorev1beta1.HibernationSchedule{
		"spec.hibernation.schedules[0].location": schedule("0 20 * * *", "", "Mars/Crater"),
		"spec.hibernation.schedules[0].end":      schedule("0 20 * * *", "never", ""),
	} {
		if _, err := parse([]gardencorev1beta1.HibernationSchedule{wrong}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want it to name %s", err, want)
		}
	}
}

func TestShootFollowsItsSchedule(t *testing.T) {
	ctx := context.Background()
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-demo", Name: "member1", CreationTimestamp: metav1.NewTime(at(t, "2026-11-01 10:00")),
		},
		Spec: gardencorev1beta1.ShootSpec{
			Hibernation: &gardencorev1beta1.Hibernation{
				Schedules: []gardencorev1beta1.HibernationSchedule{schedule("0 20 * * *", "0 7 * * *", "")},
			},
		},
	}
	now := at(t, "2026-11-01 20:00").Add(margin)
	r := &Reconciler{
		Client: fake.NewClientBuilder().
			WithScheme(apis.GardenScheme()).WithObjects(shoot).WithStatusSubresource(shoot).Build(),
		Recorder: events.NewFakeRecorder(10), TriggerDeadline: DefaultTriggerDeadline,
		Now: func() time.Time { return now },
	}
	round := func() reconcile.Result {
		t.Helper()
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			t.Fatal(err)
		}
		return result
	}
	if result := round(); result.RequeueAfter != 11*time.Hour {
		t.Errorf("comes back after %s, want 11h", result.RequeueAfter)
	}
	if !ptr.Deref(shoot.Spec.Hibernation.Enabled, false) || shoot.Status.LastHibernationTriggerTime == nil {
		t.Fatalf("hibernation = %+v, last trigger %v; want it asleep", shoot.Spec.Hibernation,
			shoot.Status.LastHibernationTriggerTime)
	}

	// Woken up by its owner, it stays awake until the next evening.
	shoot.Spec.Hibernation.Enabled = new(false)
	if err := r.Client.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	round()
	if ptr.Deref(shoot.Spec.Hibernation.Enabled, false) {
		t.Error("the schedule was followed twice")
	}
}
