// Package cron reads cron expressions of five fields and finds the times that they name.
package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// horizon bounds the search for the next time of an expression: 29 February comes within eight years.
const horizon = 8 * 366

// Expression is a cron expression: one set of allowed values per field, as bits.
type Expression struct {
	minutes, hours, days, months, weekdays uint64
	// anyDay and anyWeekday tell a star from values: a day matches when either of two given fields does.
	anyDay, anyWeekday bool
}

// fieldRange is the range of a field's values, and their names.
type fieldRange struct {
	least, most int
	names       []string
}

var ranges = []fieldRange{
	{least: 0, most: 59},
	{least: 0, most: 23},
	{least: 1, most: 31},
	{least: 1, most: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{least: 0, most: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// Parse reads minute, hour, day of month, month and day of week.
func Parse(text string) (Expression, error) {
	fields := strings.Fields(text)
	if len(fields) != len(ranges) {
		return Expression{}, fmt.Errorf("%q is not a cron expression of five fields", text)
	}
	sets := make([]uint64, len(fields))
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			set, err := parseItem(item, ranges[i])
			if err != nil {
				return Expression{}, fmt.Errorf("cron expression %q: %w", text, err)
			}
			sets[i] |= set
		}
	}
	if sets[4]&(1<<7) != 0 { // Sunday is both 0 and 7
		sets[4] |= 1
	}
	return Expression{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4],
		anyDay: isStar(fields[2]), anyWeekday: isStar(fields[4]),
	}, nil
}

func isStar(field string) bool { return strings.HasPrefix(field, "*") || strings.HasPrefix(field, "?") }

// parseItem reads a value, a range or a star, perhaps with a step.
func parseItem(item string, in fieldRange) (uint64, error) {
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return 0, fmt.Errorf("%q is not a step", stepText)
		}
	}
	first, last := in.least, in.most
	if !isStar(span) {
		from, to, isRange := strings.Cut(span, "-")
		var err error
		if first, err = in.value(from); err != nil {
			return 0, err
		}
		switch {
		case isRange:
			if last, err = in.value(to); err != nil {
				return 0, err
			}
		case !stepped:
			last = first
		}
	}
	var set uint64
	for value := first; value <= last; value += step {
		set |= 1 << value
	}
	return set, nil
}

func (r fieldRange) value(text string) (int, error) {
	for i, name := range r.names {
		if strings.EqualFold(text, name) {
			return r.least + i, nil
		}
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < r.least || value > r.most {
		return 0, fmt.Errorf("%q is not a value between %d and %d", text, r.least, r.most)
	}
	return value, nil
}

// Next returns the first time after the given one, in its location; the zero time when there is none. A time that is skipped
// when clocks are put forward comes an hour later.
func (e Expression) Next(after time.Time) time.Time {
	year, month, day := after.Date()
	for offset := range horizon {
		midnight := time.Date(year, month, day+offset, 0, 0, 0, 0, after.Location())
		if !e.onDay(midnight) {
			continue
		}
		if t := e.firstOn(midnight, after); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func (e Expression) onDay(t time.Time) bool {
	if e.months&(1<<int(t.Month())) == 0 {
		return false
	}
	day, weekday := e.days&(1<<t.Day()) != 0, e.weekdays&(1<<int(t.Weekday())) != 0
	if e.anyDay || e.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// firstOn returns the first time of the day that is after the given one.
func (e Expression) firstOn(midnight, after time.Time) time.Time {
	year, month, day := midnight.Date()
	for hour := range 24 {
		if e.hours&(1<<hour) == 0 {
			continue
		}
		for minute := range 60 {
			if e.minutes&(1<<minute) == 0 {
				continue
			}
			if t := time.Date(year, month, day, hour, minute, 0, 0, midnight.Location()); t.After(after) {
				return t
			}
		}
	}
	return time.Time{}
}
