package karmada

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func at(second int64) metav1.Time { return metav1.Time{Time: time.Unix(second, 0)} }

// decidedBinding has a decision in its annotations that its status doesn't tell yet.
func decidedBinding(t *testing.T, decided Decided,
	report *workv1alpha2.PlacementDecision) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: decided.Generation}}
	b.Spec.Placement = &policyv1alpha1.Placement{}
	bindings.SetAnnotation(b, workv1alpha2.AppliedAffinityAnnotation, "west")
	SetDecided(b, decided)
	if _, err := SetReport(b, report); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheStatusTellsWhatTheSchedulerWrote(t *testing.T) {
	report := &workv1alpha2.PlacementDecision{Ranking: "m1 chosen replicas=2\n"}
	b := decidedBinding(t, Decided{
		Generation: 3, Time: at(10), Reason: workv1alpha2.ReasonSuccess, Message: "placed on m1",
	}, report)
	Explain(b)
	scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled)
	if scheduled == nil || scheduled.Status != metav1.ConditionTrue || scheduled.Message != "placed on m1" ||
		!scheduled.LastTransitionTime.Equal(new(at(10))) {
		t.Errorf("condition %+v", scheduled)
	}
	if s := b.Status; s.SchedulerObservedGeneration != 3 || s.SchedulerObservedAffinityName != "west" ||
		!s.LastScheduledTime.Equal(new(at(10))) || !reflect.DeepEqual(s.Decision, report) {
		t.Errorf("status %+v", s)
	}
	again := b.DeepCopy()
	if Explain(again); !reflect.DeepEqual(again.Status, b.Status) {
		t.Errorf("the second time: %+v", again.Status)
	}
	if !IsReported(b) {
		t.Error("the status has the explanation")
	}
}

func TestDecisionsAreReadAsTheyWereWritten(t *testing.T) {
	for _, decided := range []Decided{
		{Generation: 1, Time: at(10), Reason: "Success", Message: "placed on m1"},
		{Generation: 7, Time: at(0), Reason: "NoClusterFit", Message: "two\nlines, \u00fc"},
		{Reason: "Unschedulable"},
	} {
		b := decidedBinding(t, decided, nil)
		if got, found := DecidedOf(b); !found || !got.same(decided) {
			t.Errorf("wrote %q, read %v %+v", b.Annotations[workv1alpha2.DecisionAnnotation], found, got)
		}
	}
	for _, broken := range []string{"", "3", "x 2026-01-01T00:00:00Z Success\n", "3 2026-01-01 Success\n",
		"3 2026-01-01T00:00:00Z Success more\n", "3 2026-01-01T00:00:00Z No!\n",
		"3 2026-01-01T00:00:00Z Success\n" + strings.Repeat("x", 40000)} {
		b := decidedBinding(t, Decided{Reason: "Success"}, nil)
		bindings.SetAnnotation(b, workv1alpha2.DecisionAnnotation, broken)
		if got, found := DecidedOf(b); found {
			t.Errorf("%q gives %+v", broken, got)
		}
	}
}

func TestExplainedLeavesTheBindingAlone(t *testing.T) {
	b := decidedBinding(t, Decided{
		Generation: 1, Time: at(20), Reason: workv1alpha2.ReasonUnschedulable, Message: "no room",
	}, nil)
	b.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.ReasonSuccess},
	}
	before := b.DeepCopy()
	status := Explained(b)
	if meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionScheduled) ||
		status.LastScheduledTime == nil {
		t.Errorf("status %+v", status)
	}
	if !reflect.DeepEqual(before, b) {
		t.Errorf("changed: %+v", b)
	}
}

// What has no placement any more tells of no decision, whatever is left of one.
func TestWithoutPlacementNothingIsDecided(t *testing.T) {
	b := decidedBinding(t, Decided{Generation: 3, Time: at(10), Reason: workv1alpha2.ReasonSuccess},
		&workv1alpha2.PlacementDecision{Ranking: "m1\n"})
	Explain(b)
	b.Spec.Placement = nil
	b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: workv1alpha2.ConditionFullyApplied})
	Explain(b)
	if s := b.Status; len(s.Conditions) != 1 || s.SchedulerObservedGeneration != 0 ||
		s.SchedulerObservedAffinityName != "" || s.LastScheduledTime != nil || s.Decision != nil {
		t.Errorf("status %+v", s)
	}
	if _, found := DecidedOf(b); found {
		t.Error("a decision is found")
	}
}

// Bindings that the annotation is missing from, or where it was broken, have the decision that their status tells.
func TestTheStatusTellsTheDecisionOfBindingsWithoutAnnotations(t *testing.T) {
	decided := Decided{Generation: 3, Time: at(10), Reason: workv1alpha2.ReasonQuotaExceeded, Message: "too much"}
	report := &workv1alpha2.PlacementDecision{Strategy: "Even"}
	b := decidedBinding(t, decided, report)
	Explain(b)
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"missing": func(b *workv1alpha2.ResourceBinding) {
			bindings.RemoveMarks(b, workv1alpha2.DecisionAnnotation, workv1alpha2.DecisionReportAnnotation)
		},
		"broken": func(b *workv1alpha2.ResourceBinding) {
			bindings.SetAnnotation(b, workv1alpha2.DecisionAnnotation, "3 yesterday Success\n")
			bindings.SetAnnotation(b, workv1alpha2.DecisionReportAnnotation, "[]")
		},
	} {
		b := b.DeepCopy()
		change(b)
		if got, found := DecidedOf(b); !found || got.Generation != 3 || got.Reason != decided.Reason ||
			got.Message != decided.Message || !got.Time.Equal(&decided.Time) {
			t.Errorf("%s: %v, %+v", name, found, got)
		}
		if SetDecided(b, decided) {
			t.Errorf("%s: the decision is written again", name)
		}
		if changed, err := SetReport(b, report); changed || err != nil {
			t.Errorf("%s: the explanation is written again: %v", name, err)
		}
	}
}

func TestADecisionWithoutExplanationRemovesTheOneBefore(t *testing.T) {
	b := decidedBinding(t, Decided{Generation: 1, Time: at(1), Reason: workv1alpha2.ReasonSuccess},
		&workv1alpha2.PlacementDecision{Strategy: "Even"})
	Explain(b)
	if changed, err := SetReport(b, nil); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if IsReported(b) {
		t.Error("the status still has the old one")
	}
	if Explain(b); b.Status.Decision != nil {
		t.Errorf("left: %+v", b.Status.Decision)
	}
}

func TestReportsFitIntoAnAnnotation(t *testing.T) {
	everywhere := core.Binding{Kind: deployments, Workload: true, Replicas: 6}
	if report := Report(core.Decide(fleet(2000, 10), everywhere)); strings.Count(string(report.Ranking), "\n") != 1000 {
		t.Errorf("%d bytes of ranking", len(report.Ranking))
	}
	report := Report(core.Decide(fleet(9000, 10), everywhere))
	if report.Ranking != "" || len(report.Rejections) == 0 || report.Omitted < 4500 {
		t.Errorf("%d bytes of ranking, %d omitted", len(report.Ranking), report.Omitted)
	}
}
