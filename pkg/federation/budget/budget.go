// Package budget decides which deletions in members go on by themselves and which are so many that somebody has to
// confirm them. Everything is a function of numbers and times that are passed in; pkg/federation/controllers/deletions
// reads and writes them.
package budget

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Settings of a budget. It holds for every member, and for the fleet as a whole.
type Settings struct {
	// Percent of the objects that may be deleted within Window without a confirmation. 100 or more turns the budget
	// off.
	Percent int
	// AtLeast is how many objects may be deleted in any case in a member, and twice as many in the fleet.
	AtLeast int
	// Window is how long deletions count.
	Window time.Duration
	// Settle is how long nothing more must have been asked for before more than AtLeast deletions are looked at, so
	// that many at once are seen together.
	Settle time.Duration
}

// Default is what production uses.
func Default() Settings {
	return Settings{Percent: 20, AtLeast: 20, Window: 10 * time.Minute, Settle: 3 * time.Second}
}

// Validate names the first setting that makes no sense.
func (s Settings) Validate() error {
	switch {
	case s.Percent < 0:
		return fmt.Errorf("deletion-budget-percent: must not be negative, but is %d", s.Percent)
	case s.AtLeast < 0:
		return fmt.Errorf("deletion-budget-at-least: must not be negative, but is %d", s.AtLeast)
	case s.Window <= 0:
		return fmt.Errorf("deletion-budget-window: must be more than 0, but is %s", s.Window)
	}
	return nil
}

// OfFleet are the settings for the fleet as a whole.
func (s Settings) OfFleet() Settings {
	s.AtLeast *= 2
	return s
}

// Off tells whether nothing is ever held.
func (s Settings) Off() bool { return s.Percent >= 100 }

// Count is the state of a member, or of the fleet.
type Count struct {
	// Total is the number of objects, with those that are being deleted.
	Total int
	// Pending are the deletions that were asked for and not yet let through.
	Pending int
	// Recent is the number of objects that were deleted within the window.
	Recent int
	// Newest is when the last of the pending deletions was asked for.
	Newest time.Time
}

// Allowance is how many objects may be deleted within the window.
func (s Settings) Allowance(c Count) int {
	return max(s.AtLeast, (c.Total+c.Recent)*s.Percent/100)
}

// Decision is what becomes of pending deletions.
type Decision struct {
	// Go: they may happen.
	Go bool
	// Hold: they need a confirmation. With neither, look again after Wait.
	Hold bool
	Wait time.Duration
}

// Decide about the pending deletions of one member or fleet.
func (s Settings) Decide(c Count, now time.Time) Decision {
	wanted := c.Recent + c.Pending
	switch {
	case s.Off() || wanted <= s.AtLeast:
		return Decision{Go: true}
	case wanted > s.Allowance(c):
		return Decision{Hold: true}
	}
	if left := s.Settle - now.Sub(c.Newest); left > 0 {
		return Decision{Wait: left}
	}
	return Decision{Go: true}
}

// Both gives the stricter of two decisions.
func Both(a, b Decision) Decision {
	switch {
	case a.Hold || b.Hold:
		return Decision{Hold: true}
	case a.Go && b.Go:
		return Decision{Go: true}
	}
	return Decision{Wait: max(a.Wait, b.Wait)}
}

// Recent counts deletions by the minute, in Unix time. It holds no more than a window of them.
type Recent map[int64]int

// Note deletions.
func (r Recent) Note(n int, at time.Time) { r[at.Unix()/60] += n }

// Within counts the deletions of the window, and forgets older ones.
func (r Recent) Within(window time.Duration, now time.Time) int {
	oldest := now.Add(-window).Unix() / 60
	maps.DeleteFunc(r, func(minute int64, _ int) bool { return minute < oldest })
	sum := 0
	for _, n := range r {
		sum += n
	}
	return sum
}

// String is the form in which it is kept: JSON, with minutes as keys.
func (r Recent) String() string {
	if len(r) == 0 {
		return ""
	}
	// A map of numbers has a form in JSON.
	text, _ := json.Marshal(map[int64]int(r))
	return string(text)
}

// maxMinutes bounds what is read.
const maxMinutes = 24 * 60

// ParseRecent reads what String wrote. What makes no sense is left out.
func ParseRecent(text string) Recent {
	result := Recent{}
	var kept map[string]int
	if json.Unmarshal([]byte(text), &kept) != nil || len(kept) > maxMinutes {
		return result
	}
	for key, n := range kept {
		if minute, err := strconv.ParseInt(key, 10, 64); err == nil && n > 0 {
			result[minute] = n
		}
	}
	return result
}
