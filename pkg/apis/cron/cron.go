// Package cron reads the schedules of the API: cron expressions of five fields, as those of CronJobs, and finds the
// times that they name. What an expression means is that of github.com/robfig/cron; a Sunday may be a 7 as well.
package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// fields is how many an expression has.
const fields = 5

var (
	parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	named  = cron.NewParser(cron.Descriptor)
	names  = map[string]bool{
		"@yearly": true, "@annually": true, "@monthly": true, "@weekly": true, "@daily": true, "@midnight": true,
		"@hourly": true,
	}
)

// Expression is a cron expression. It names times of a clock on the wall, whatever the time zone.
type Expression struct {
	schedule cron.Schedule
}

// Parse reads minute, hour, day of month, month and day of week.
func Parse(text string) (Expression, error) {
	parts := strings.Fields(text)
	if len(parts) != fields {
		return Expression{}, fmt.Errorf("%q is not a cron expression of five fields, such as \"0 20 * * *\" for "+
			"every day at 20:00", text)
	}
	parts[fields-1] = withoutSeven(parts[fields-1])
	schedule, err := parser.Parse(strings.Join(parts, " "))
	if err != nil {
		return Expression{}, fmt.Errorf("cron expression %q: %w", text, err)
	}
	return Expression{schedule}, nil
}

// ParseNamed reads what Parse does, and the names that CronJobs know: @hourly, @daily, @midnight, @weekly, @monthly,
// @yearly and @annually.
func ParseNamed(text string) (Expression, error) {
	text = strings.TrimSpace(text)
	if !names[text] {
		return Parse(text)
	}
	schedule, err := named.Parse(text)
	if err != nil {
		return Expression{}, fmt.Errorf("cron expression %q: %w", text, err)
	}
	return Expression{schedule}, nil
}

// withoutSeven writes the Sundays of a field for days of the week that are a 7 as 0. What is wrong with the field
// stays.
func withoutSeven(field string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		span, step, stepped := strings.Cut(item, "/")
		from, to, isRange := strings.Cut(span, "-")
		switch {
		case span == "7":
			items[i] = "0"
		case isRange && to == "7":
			items[i] = weekdays(item, from, step, stepped)
		}
	}
	return strings.Join(items, ",")
}

// weekdays lists those of a range that ends with Sunday.
func weekdays(item, from, step string, stepped bool) string {
	first, err := strconv.Atoi(from)
	by := 1
	if err == nil && stepped {
		by, err = strconv.Atoi(step)
	}
	if err != nil || first < 0 || by < 1 {
		return item
	}
	var days []string
	for day := first; day <= 7; day += by {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// clocksJump is more than clocks are ever put forward by.
const clocksJump = 3 * time.Hour

// Next returns the first time after the given one, in its location; the zero time when there is none within five years.
// A time that is skipped when clocks are put forward comes as much later; of one that comes twice when they are put
// back, the second counts.
func (e Expression) Next(after time.Time) time.Time {
	// What was skipped lies before the time on the wall.
	wall := onWall(after, time.UTC).Add(-clocksJump)
	for {
		if wall = e.schedule.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if next := onWall(wall, after.Location()); next.After(after) {
			return next
		}
	}
}

// onWall is when a clock in the location shows what t does.
func onWall(t time.Time, location *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), location)
}
