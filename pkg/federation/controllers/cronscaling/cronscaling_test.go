package cronscaling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	result, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestPlan(t *testing.T) {
	tests := map[string]struct {
		schedule, zone string
		// announced is empty for a rule that is new.
		announced, now string
		due            string
		missed         bool
		next           string
	}{
		"new": {
			"0 8 * * *", "", "", "2026-05-04T12:00:00Z", "", false, "2026-05-05T08:00:00Z",
		},
		"not yet": {
			"0 8 * * *", "", "2026-05-05T08:00:00Z", "2026-05-05T07:59:59Z", "", false, "2026-05-05T08:00:00Z",
		},
		"at the time": {
			"0 8 * * *", "", "2026-05-05T08:00:00Z", "2026-05-05T08:00:00Z", "2026-05-05T08:00:00Z", false,
			"2026-05-06T08:00:00Z",
		},
		"late, of several the last": {
			"*/10 * * * *", "", "2026-05-05T08:00:00Z", "2026-05-05T08:35:00Z", "2026-05-05T08:30:00Z", false,
			"2026-05-05T08:40:00Z",
		},
		"after days, the last": {
			"*/10 * * * *", "", "2026-05-01T08:00:00Z", "2026-05-05T08:35:00Z", "2026-05-05T08:30:00Z", false,
			"2026-05-05T08:40:00Z",
		},
		"too late": {
			"0 8 * * *", "", "2026-05-05T08:00:00Z", "2026-05-05T09:30:00Z", "2026-05-05T08:00:00Z", true,
			"2026-05-06T08:00:00Z",
		},
		"the schedule has changed": {
			"30 9 * * *", "", "2026-05-05T08:00:00Z", "2026-05-05T08:10:00Z", "", false, "2026-05-05T09:30:00Z",
		},
		"in a time zone": {
			"0 8 * * *", "Asia/Shanghai", "", "2026-05-04T12:00:00Z", "", false, "2026-05-05T00:00:00Z",
		},
		"before clocks are put forward": {
			"0 8 * * *", "Europe/Berlin", "", "2026-03-28T12:00:00Z", "", false, "2026-03-29T06:00:00Z",
		},
		"the time zone has changed as well": {
			"0 8 * * *", "Asia/Shanghai", "2026-05-05T08:00:00Z", "2026-05-05T08:10:00Z", "", false,
			"2026-05-06T00:00:00Z",
		},
		"by name": {
			"@hourly", "", "", "2026-05-04T12:10:00Z", "", false, "2026-05-04T13:00:00Z",
		},
		"never": {"0 0 30 2 *", "", "", "2026-05-04T12:10:00Z", "", false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := scheduleOf(&autoscalingv1alpha1.CronFederatedHPARule{Schedule: tc.schedule, TimeZone: &tc.zone})
			if err != nil {
				t.Fatal(err)
			}
			var announced *metav1.Time
			if tc.announced != "" {
				announced = new(metav1.NewTime(at(t, tc.announced)))
			}
			got := planOf(s, announced, at(t, tc.now))
			text := func(when time.Time) string {
				if when.IsZero() {
					return ""
				}
				return when.UTC().Format(time.RFC3339)
			}
			if text(got.due) != tc.due || got.missed != tc.missed || text(got.next) != tc.next {
				t.Errorf("due %s, missed %v, next %s", text(got.due), got.missed, text(got.next))
			}
		})
	}
}

func TestRulesThatCannotBeUnderstood(t *testing.T) {
	for _, rule := range []autoscalingv1alpha1.CronFederatedHPARule{
		{Schedule: "every day"}, {Schedule: "61 * * * *"}, {Schedule: "0 8 * * *", TimeZone: new("Mars/Olympus")},
	} {
		if _, err := scheduleOf(&rule); err == nil {
			t.Errorf("%+v is understood", rule)
		}
	}
}

// TestProblemsAreTold: a rule that never acts says why, and the others act.
func TestProblemsAreTold(t *testing.T) {
	rule := func(name, schedule string, zone *string) autoscalingv1alpha1.CronFederatedHPARule {
		return autoscalingv1alpha1.CronFederatedHPARule{
			Name: name, Schedule: schedule, TimeZone: zone, TargetReplicas: new(int32(1)),
		}
	}
	f := newFixture(t, clock(web, rule("good", "20 12 * * *", nil), rule("zone", "0 8 * * *", new("Mars/Olympus")),
		rule("minute", "61 * * * *", nil), rule("never", "0 0 31 2 *", nil)))
	for range 2 {
		histories, wait := f.reconcile()
		for i, want := range []string{
			"", "spec.rules[1].timeZone: unknown time zone Mars/Olympus", "spec.rules[2].schedule: ",
			`spec.rules[3].schedule: "0 0 31 2 *" comes in no year`,
		} {
			if got := histories[i].Problem; !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("rule %d: %q, want %q", i, got, want)
			}
		}
		if wait == 0 {
			t.Error("the good rule is forgotten")
		}
	}
	if told := len(f.events.Events); told != 1 {
		t.Errorf("%d events, want one for all rules, once", told)
	}
}

// recorded notes what was scaled.
type recorded struct {
	calls []string
	err   error
}

func (r *recorded) Set(_ context.Context, namespace string, target autoscalingv2.CrossVersionObjectReference,
	replicas int32) error {
	r.calls = append(r.calls, fmt.Sprintf("%s/%s=%d", namespace, target.Name, replicas))
	return r.err
}

type fixture struct {
	client.Client
	t      *testing.T
	now    time.Time
	scales recorded
	events *events.FakeRecorder
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := autoscalingv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, events: events.NewFakeRecorder(100), now: at(t, "2026-05-04T12:00:00Z"),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&autoscalingv1alpha1.CronFederatedHPA{}).Build()}
}

func (f *fixture) reconcile() ([]autoscalingv1alpha1.ExecutionHistory, time.Duration) {
	f.t.Helper()
	s := &cronScaling{client: f.Client, events: f.events, scales: &f.scales, now: func() time.Time { return f.now }}
	key := types.NamespacedName{Namespace: "shop", Name: "clock"}
	result, err := s.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		f.t.Fatal(err)
	}
	c := &autoscalingv1alpha1.CronFederatedHPA{}
	if err := f.Get(f.t.Context(), key, c); err != nil {
		f.t.Fatal(err)
	}
	return c.Status.ExecutionHistories, result.RequeueAfter
}

func clock(target autoscalingv2.CrossVersionObjectReference,
	rules ...autoscalingv1alpha1.CronFederatedHPARule) *autoscalingv1alpha1.CronFederatedHPA {
	return &autoscalingv1alpha1.CronFederatedHPA{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "clock"},
		Spec:       autoscalingv1alpha1.CronFederatedHPASpec{ScaleTargetRef: target, Rules: rules},
	}
}

var web = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}

func TestExecution(t *testing.T) {
	f := newFixture(t, clock(web,
		autoscalingv1alpha1.CronFederatedHPARule{
			Name: "down", Schedule: "20 12 * * *", TargetReplicas: new(int32(1)), SuccessfulHistoryLimit: new(int32(1)),
		},
		autoscalingv1alpha1.CronFederatedHPARule{
			Name: "up", Schedule: "10 12 * * *", TargetReplicas: new(int32(9)), FailedHistoryLimit: new(int32(1)),
		},
		autoscalingv1alpha1.CronFederatedHPARule{
			Name: "off", Schedule: "* * * * *", TargetReplicas: new(int32(5)), Suspend: new(true),
		}))
	histories, wait := f.reconcile()
	if len(f.scales.calls) != 0 || wait != 10*time.Minute || histories[2].NextExecutionTime != nil ||
		histories[0].NextExecutionTime == nil {
		t.Fatalf("calls %v, wait %s, %+v", f.scales.calls, wait, histories)
	}
	f.now = at(t, "2026-05-04T12:30:00Z") // Both have passed; the later one counts in the end.
	histories, _ = f.reconcile()
	if got := fmt.Sprint(f.scales.calls); got != "[shop/web=9 shop/web=1]" {
		t.Fatalf("calls %s", got)
	}
	if done := histories[0].SuccessfulExecutions; len(done) != 1 || *done[0].AppliedReplicas != 1 ||
		!done[0].ScheduleTime.Equal(new(metav1.NewTime(at(t, "2026-05-04T12:20:00Z")))) {
		t.Errorf("history %+v", histories[0])
	}
	if f.reconcile(); len(f.scales.calls) != 2 {
		t.Errorf("done twice: %v", f.scales.calls)
	}
	f.scales.err = errors.New("no such thing")
	for day := 5; day < 7; day++ {
		f.now = at(t, fmt.Sprintf("2026-05-%02dT12:10:00Z", day))
		histories, _ = f.reconcile()
	}
	if failed := histories[1].FailedExecutions; len(failed) != 1 ||
		failed[0].Message != "spec.rules[1]: no such thing" || failed[0].ExecutionTime.Day() != 6 {
		t.Errorf("history %+v", histories[1])
	}
}

// TestLastFailure: it is there until the rule has worked, also where no failures are kept, and for as long as the rule
// is suspended.
func TestLastFailure(t *testing.T) {
	rule := autoscalingv1alpha1.CronFederatedHPARule{
		Name: "up", Schedule: "10 * * * *", TargetReplicas: new(int32(9)), FailedHistoryLimit: new(int32(0)),
	}
	f := newFixture(t, clock(web, rule))
	f.reconcile()
	for i, step := range []struct {
		err       error
		suspended bool
		want      string
	}{
		{nil, false, ""},
		{errors.New("no such thing"), false, "spec.rules[0]: no such thing"},
		{errors.New("refused"), false, "spec.rules[0]: refused"},
		{nil, true, "spec.rules[0]: refused"},
		{nil, false, "spec.rules[0]: refused"}, // A rule that is resumed begins with the next time.
		{nil, false, ""},
	} {
		rule.Suspend = &step.suspended
		c := clock(web, rule)
		if err := f.Patch(t.Context(), c, client.Merge); err != nil {
			t.Fatal(err)
		}
		f.now, f.scales.err = f.now.Add(time.Hour), step.err
		if histories, _ := f.reconcile(); histories[0].LastFailure != step.want {
			t.Errorf("step %d: %q, want %q", i, histories[0].LastFailure, step.want)
		}
	}
}

// A rule for a FederatedHPA sets those of its limits that it names.
func TestLimits(t *testing.T) {
	target := autoscalingv2.CrossVersionObjectReference{
		APIVersion: "autoscaling.karmada.io/v1alpha1", Kind: "FederatedHPA", Name: "web",
	}
	tests := map[string]struct {
		least, most         *int32
		wantLeast, wantMost int32
	}{
		"both":        {new(int32(3)), new(int32(30)), 3, 30},
		"only fewest": {new(int32(3)), nil, 3, 10},
		"only most":   {nil, new(int32(30)), 1, 30},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hpa := &autoscalingv1alpha1.FederatedHPA{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
				Spec:       autoscalingv1alpha1.FederatedHPASpec{MinReplicas: new(int32(1)), MaxReplicas: 10},
			}
			f := newFixture(t, hpa, clock(target,
				autoscalingv1alpha1.CronFederatedHPARule{
					Name: "a", Schedule: "10 12 * * *", TargetMinReplicas: tc.least, TargetMaxReplicas: tc.most,
				}))
			f.reconcile()
			f.now = f.now.Add(10 * time.Minute)
			histories, _ := f.reconcile()
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(hpa), hpa); err != nil ||
				*hpa.Spec.MinReplicas != tc.wantLeast || hpa.Spec.MaxReplicas != tc.wantMost {
				t.Errorf("limits %+v, %v", hpa.Spec, err)
			}
			done := histories[0].SuccessfulExecutions
			if len(done) != 1 || fmt.Sprint(done[0].AppliedMinReplicas == nil,
				done[0].AppliedMaxReplicas == nil) != fmt.Sprint(tc.least == nil, tc.most == nil) ||
				len(f.scales.calls) != 0 {
				t.Errorf("history %+v", histories[0])
			}
		})
	}
	f := newFixture(t, clock(target,
		autoscalingv1alpha1.CronFederatedHPARule{Name: "a", Schedule: "10 12 * * *", TargetMinReplicas: new(int32(3))}))
	f.reconcile()
	f.now = f.now.Add(10 * time.Minute)
	if histories, _ := f.reconcile(); len(histories[0].FailedExecutions) != 1 {
		t.Errorf("history %+v", histories[0])
	}
}

// TestFailuresNameTheirRule: in events and in the status.
func TestFailuresNameTheirRule(t *testing.T) {
	limits := autoscalingv2.CrossVersionObjectReference{
		APIVersion: "autoscaling.karmada.io/v1alpha1", Kind: "FederatedHPA", Name: "web",
	}
	good := autoscalingv1alpha1.CronFederatedHPARule{Name: "good", Schedule: "0 0 1 1 *"}
	tests := map[string]struct {
		target autoscalingv2.CrossVersionObjectReference
		bad    autoscalingv1alpha1.CronFederatedHPARule
		after  time.Duration
		want   string
	}{
		"no replicas": {
			web, autoscalingv1alpha1.CronFederatedHPARule{}, 10 * time.Minute, "spec.rules[1]: has no targetReplicas",
		},
		"no limits": {
			limits, autoscalingv1alpha1.CronFederatedHPARule{}, 10 * time.Minute,
			"spec.rules[1]: has neither targetMinReplicas nor targetMaxReplicas",
		},
		"no FederatedHPA": {
			limits, autoscalingv1alpha1.CronFederatedHPARule{TargetMaxReplicas: new(int32(3))}, 10 * time.Minute,
			"spec.rules[1]: changing the limits of FederatedHPA shop/web: ",
		},
		"refused": {
			web, autoscalingv1alpha1.CronFederatedHPARule{TargetReplicas: new(int32(3))}, 10 * time.Minute,
			"spec.rules[1]: no such thing",
		},
		"missed": {
			web, autoscalingv1alpha1.CronFederatedHPARule{TargetReplicas: new(int32(3))}, 3 * time.Hour,
			"spec.rules[1]: missed: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.bad.Name, tc.bad.Schedule = "bad", "10 12 * * *"
			f := newFixture(t, clock(tc.target, good, tc.bad))
			f.scales.err = errors.New("no such thing")
			f.reconcile()
			f.now = f.now.Add(tc.after)
			histories, _ := f.reconcile()
			if failed := histories[1].FailedExecutions; len(failed) != 1 ||
				!strings.HasPrefix(failed[0].Message, tc.want) {
				t.Errorf("history %+v, want %q", histories[1], tc.want)
			}
			select {
			case event := <-f.events.Events:
				if !strings.HasPrefix(event, "Warning ScaleFailed rule bad: "+tc.want) {
					t.Errorf("event %q, want %q", event, tc.want)
				}
			default:
				t.Error("no event")
			}
		})
	}
}
