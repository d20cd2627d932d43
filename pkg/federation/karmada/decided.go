package karmada

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// Decided is the scheduler's last decision about a binding, without the clusters and their explanation. The scheduler
// writes it into an annotation together with the clusters, so that a decision is never known without its reasons; the
// status repeats it.
type Decided struct {
	// Generation of the binding that has the decision in its spec.
	Generation int64
	// Time of the decision; of several that say the same, of the first.
	Time metav1.Time
	// Reason and Message are those of condition Scheduled.
	Reason, Message string
}

// DecidedOf gives the last decision about a binding, and whether there is one. What is not placed is not decided about.
// The status tells it where the annotation doesn't.
func DecidedOf(b bindings.Binding) (Decided, bool) {
	if !bindings.IsPlaced(b.BindingSpec()) {
		return Decided{}, false
	}
	if decided, found := annotated(b); found {
		return decided, true
	}
	status := b.BindingStatus()
	if status.LastScheduledTime == nil {
		return Decided{}, false
	}
	decided := Decided{Generation: status.SchedulerObservedGeneration, Time: *status.LastScheduledTime}
	if scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled); scheduled != nil {
		decided.Reason, decided.Message = scheduled.Reason, scheduled.Message
	}
	return decided, true
}

// reasons of decisions; a condition with another one, or with a longer message, may be none that can be stored.
var reasons = []string{
	workv1alpha2.ReasonSuccess, workv1alpha2.ReasonSchedulerError, workv1alpha2.ReasonNoClusterFit,
	workv1alpha2.ReasonUnschedulable, workv1alpha2.ReasonQuotaExceeded, workv1alpha2.ReasonWaiting,
}

const mostMessage = 32768

// annotated reads the annotation: a line with generation, time and reason, and then the message. It is read often and
// the message may be long, which is why this is no JSON.
func annotated(b bindings.Binding) (decided Decided, found bool) {
	head, message, _ := strings.Cut(b.GetAnnotations()[workv1alpha2.DecisionAnnotation], "\n")
	words := strings.Split(head, " ")
	if len(words) != 3 || !slices.Contains(reasons, words[2]) || len(message) > mostMessage {
		return Decided{}, false
	}
	generation, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return Decided{}, false
	}
	at, err := time.Parse(time.RFC3339, words[1])
	if err != nil {
		return Decided{}, false
	}
	return Decided{Generation: generation, Time: metav1.NewTime(at.Local()), Reason: words[2], Message: message}, true
}

// String is what the annotation holds.
func (d Decided) String() string {
	return fmt.Sprintf("%d %s %s\n%s", d.Generation, d.Time.UTC().Format(time.RFC3339), d.Reason, d.Message)
}

// same tells whether two decisions are told alike.
func (d Decided) same(other Decided) bool {
	return d.Generation == other.Generation && d.Time.Equal(&other.Time) && d.Reason == other.Reason &&
		d.Message == other.Message
}

// ReportOf gives the explanation of the last decision. It is not to be changed.
func ReportOf(b bindings.Binding) *workv1alpha2.PlacementDecision {
	var report *workv1alpha2.PlacementDecision
	text, found := b.GetAnnotations()[workv1alpha2.DecisionReportAnnotation]
	if !found || json.Unmarshal([]byte(text), &report) != nil {
		return b.BindingStatus().Decision
	}
	return report
}

// SetDecided writes a decision into its annotation, unless the binding tells the same already.
func SetDecided(b bindings.Binding, decided Decided) (changed bool) {
	if last, found := DecidedOf(b); found && last.same(decided) {
		return false
	}
	bindings.SetAnnotation(b, workv1alpha2.DecisionAnnotation, decided.String())
	return true
}

// SetReport writes the explanation of a decision into its annotation, unless the binding tells the same already.
func SetReport(b bindings.Binding, report *workv1alpha2.PlacementDecision) (changed bool, err error) {
	if SameReport(ReportOf(b), report) {
		return false, nil
	}
	text, err := json.Marshal(report)
	if err != nil {
		return false, fmt.Errorf("encoding annotation %s: %w", workv1alpha2.DecisionReportAnnotation, err)
	}
	bindings.SetAnnotation(b, workv1alpha2.DecisionReportAnnotation, string(text))
	return true, nil
}

// Explained gives the status of a binding as it is when it tells the last decision, but for the explanation. The
// binding is not changed.
func Explained(b bindings.Binding) *workv1alpha2.ResourceBindingStatus {
	status := *b.BindingStatus()
	if !bindings.IsPlaced(b.BindingSpec()) {
		forgetDecision(&status)
		return &status
	}
	if term, found := b.GetAnnotations()[workv1alpha2.AppliedAffinityAnnotation]; found {
		status.SchedulerObservedAffinityName = term
	}
	decided, found := annotated(b)
	if !found {
		return &status
	}
	status.Conditions = slices.Clone(status.Conditions)
	scheduled := metav1.Condition{
		Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse, Reason: decided.Reason,
		Message:            decided.Message,
		LastTransitionTime: decided.Time,
	}
	if decided.Reason == workv1alpha2.ReasonSuccess {
		scheduled.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, scheduled)
	status.LastScheduledTime, status.SchedulerObservedGeneration = &decided.Time, decided.Generation
	return &status
}

// forgetDecision of a placement that is no more.
func forgetDecision(status *workv1alpha2.ResourceBindingStatus) {
	status.SchedulerObservedGeneration, status.SchedulerObservedAffinityName = 0, ""
	status.LastScheduledTime, status.Decision = nil, nil
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
		return c.Type == workv1alpha2.ConditionScheduled
	})
}

// Explain has the status of a binding tell the last decision.
func Explain(b bindings.Binding) {
	report := ReportOf(b)
	status := Explained(b)
	if bindings.IsPlaced(b.BindingSpec()) && !SameReport(status.Decision, report) {
		status.Decision = report
	}
	*b.BindingStatus() = *status
}

// IsReported tells whether the status has the explanation that the annotation holds, so that it needs not be kept
// twice.
func IsReported(b bindings.Binding) bool {
	if _, found := b.GetAnnotations()[workv1alpha2.DecisionReportAnnotation]; !found {
		return false
	}
	decided, found := annotated(b)
	status := b.BindingStatus()
	return found && decided.Generation == status.SchedulerObservedGeneration && SameReport(status.Decision, ReportOf(b))
}
