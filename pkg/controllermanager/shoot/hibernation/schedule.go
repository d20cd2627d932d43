// Package hibernation puts shoots to sleep and wakes them up by their schedules: it sets spec.hibernation.enabled, and
// gardenlet does the rest.
package hibernation

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apis/cron"
)

// trigger is a time at which a shoot falls asleep or wakes up.
type trigger struct {
	at      time.Time
	enabled bool
}

// timetable holds the parsed schedules of a shoot.
type timetable []entry

type entry struct {
	expression cron.Expression
	location   *time.Location
	enabled    bool
}

// parse reads the schedules of a shoot. Errors name the schedule.
func parse(schedules []gardencorev1beta1.HibernationSchedule) (timetable, error) {
	var table timetable
	for i, schedule := range schedules {
		location, err := time.LoadLocation(ptr.Deref(schedule.Location, "UTC"))
		if err != nil {
			return nil, fmt.Errorf("spec.hibernation.schedules[%d].location: %w", i, err)
		}
		for _, half := range []struct {
			field   string
			text    *string
			enabled bool
		}{{"start", schedule.Start, true}, {"end", schedule.End, false}} {
			if ptr.Deref(half.text, "") == "" {
				continue
			}
			parsed, err := cron.Parse(*half.text)
			if err != nil {
				return nil, fmt.Errorf("spec.hibernation.schedules[%d].%s: %w", i, half.field, err)
			}
			table = append(table, entry{expression: parsed, location: location, enabled: half.enabled})
		}
	}
	return table, nil
}

// due returns the latest trigger after since and not after now; nil when there is none. Of two at the same time, the
// one that wakes up counts.
func (t timetable) due(since, now time.Time) *trigger {
	var latest *trigger
	for _, entry := range t {
		last := time.Time{}
		for at := entry.next(since); !at.IsZero() && !at.After(now); at = entry.next(at) {
			last = at
		}
		if last.IsZero() {
			continue
		}
		if latest == nil || last.After(latest.at) || last.Equal(latest.at) && !entry.enabled {
			latest = &trigger{at: last, enabled: entry.enabled}
		}
	}
	return latest
}

// next returns when something is due next; the zero time when nothing is.
func (t timetable) next(now time.Time) time.Time {
	var next time.Time
	for _, entry := range t {
		if at := entry.next(now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

func (e entry) next(after time.Time) time.Time { return e.expression.Next(after.In(e.location)) }
