package cronscaling

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/cron"
)

// catchUp is how late an execution may come. A time that was missed by more, because nothing ran in the fleet, is
// recorded as failed.
const catchUp = time.Hour

// schedule is a rule's, with its time zone.
type schedule struct {
	cron.Expression
	zone *time.Location
}

func scheduleOf(rule *autoscalingv1alpha1.CronFederatedHPARule) (schedule, error) {
	zone := time.UTC
	if rule.TimeZone != nil && *rule.TimeZone != "" {
		var err error
		if zone, err = time.LoadLocation(*rule.TimeZone); err != nil {
			return schedule{}, fmt.Errorf("timeZone: %w", err)
		}
	}
	expression, err := cron.ParseNamed(rule.Schedule)
	if err != nil {
		return schedule{}, fmt.Errorf("schedule: %w", err)
	}
	return schedule{expression, zone}, nil
}

// next is the first time after t.
func (s schedule) next(t time.Time) time.Time { return s.Next(t.In(s.zone)) }

// plan is what a rule has to do now.
type plan struct {
	// due is the time that is to be executed, or was missed; zero if there is none.
	due    time.Time
	missed bool
	// next time after now; zero if there is none.
	next time.Time
}

// planOf goes by the time that was announced as the next one in the status. A rule that is new, or whose schedule has
// changed, begins now. Of several times that have passed, only the last one counts: what it sets replaces what the
// others would have set.
func planOf(s schedule, announced *metav1.Time, now time.Time) plan {
	p := plan{next: s.next(now)}
	if announced == nil || !s.next(announced.Add(-time.Second)).Equal(announced.Time) {
		return p
	}
	if announced.After(now) {
		p.next = announced.Time
		return p
	}
	from := announced.Add(-time.Second)
	if limit := now.Add(-catchUp); from.Before(limit) {
		from = limit
	}
	for t := s.next(from); !t.IsZero() && !t.After(now); t = s.next(t) {
		p.due = t
	}
	if p.due.IsZero() {
		p.due, p.missed = announced.Time, true
	}
	return p
}

// history finds that of a rule.
func history(all []autoscalingv1alpha1.ExecutionHistory, rule string) autoscalingv1alpha1.ExecutionHistory {
	for _, h := range all {
		if h.RuleName == rule {
			return h
		}
	}
	return autoscalingv1alpha1.ExecutionHistory{RuleName: rule}
}

// withSuccess adds an execution, the latest first.
func withSuccess(list []autoscalingv1alpha1.SuccessfulExecution, execution autoscalingv1alpha1.SuccessfulExecution,
	limit *int32) []autoscalingv1alpha1.SuccessfulExecution {
	return shortened(slices.Insert(slices.Clone(list), 0, execution), limit)
}

// withFailure adds an execution, the latest first.
func withFailure(list []autoscalingv1alpha1.FailedExecution, execution autoscalingv1alpha1.FailedExecution,
	limit *int32) []autoscalingv1alpha1.FailedExecution {
	return shortened(slices.Insert(slices.Clone(list), 0, execution), limit)
}

func shortened[E any](list []E, limit *int32) []E {
	most := 3
	if limit != nil {
		most = int(*limit)
	}
	return list[:min(len(list), most)]
}
