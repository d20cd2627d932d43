package v1beta1

import (
	"fmt"
	"time"
)

const (
	// maintenanceTimeLayout is that of begin and end of a maintenance window: HHMMSS+hhmm.
	maintenanceTimeLayout = "150405-0700"

	// MinMaintenanceWindow is the shortest maintenance window.
	MinMaintenanceWindow = 30 * time.Minute
	// MaxMaintenanceWindow is the longest maintenance window.
	MaxMaintenanceWindow = 6 * time.Hour
)

// Parse returns when the window begins, as time since midnight in UTC, and how long it is.
func (w MaintenanceTimeWindow) Parse() (begin, duration time.Duration, err error) {
	begin, err = sinceMidnight(w.Begin)
	if err != nil {
		return 0, 0, fmt.Errorf("begin: %w", err)
	}
	end, err := sinceMidnight(w.End)
	if err != nil {
		return 0, 0, fmt.Errorf("end: %w", err)
	}
	return begin, (end - begin + 24*time.Hour) % (24 * time.Hour), nil
}

// Contains tells whether a time lies in the window.
func (w MaintenanceTimeWindow) Contains(t time.Time) bool {
	begin, duration, err := w.Parse()
	if err != nil {
		return false
	}
	return (clockOf(t)-begin+24*time.Hour)%(24*time.Hour) < duration
}

// Until returns how long it is until the window opens: 0 within it, and for a window that cannot be read.
func (w MaintenanceTimeWindow) Until(t time.Time) time.Duration {
	begin, _, err := w.Parse()
	if err != nil || w.Contains(t) {
		return 0
	}
	return (begin - clockOf(t) + 24*time.Hour) % (24 * time.Hour)
}

func sinceMidnight(value string) (time.Duration, error) {
	t, err := time.Parse(maintenanceTimeLayout, value)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time such as 220000+0100", value)
	}
	return clockOf(t), nil
}

func clockOf(t time.Time) time.Duration {
	t = t.UTC()
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute +
		time.Duration(t.Second())*time.Second
}
