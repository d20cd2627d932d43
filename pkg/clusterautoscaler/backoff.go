package clusterautoscaler

import (
	"fmt"
	"time"
)

// backoff keeps groups that failed to grow from growing for a while.
type backoff struct {
	initial, longest, reset time.Duration
	groups                  map[string]pause
}

type pause struct {
	length        time.Duration
	failed, until time.Time
	why           string
}

func newBackoff(options *Options) *backoff {
	return &backoff{
		initial: options.InitialBackoff, longest: options.MaxBackoff, reset: options.BackoffReset,
		groups: map[string]pause{},
	}
}

// fail pauses a group: each time for twice as long. While it is paused, further failures change nothing.
func (b *backoff) fail(group, why string, now time.Time) {
	last, before := b.groups[group]
	if before && now.Before(last.until) {
		return
	}
	length := b.initial
	if before && now.Sub(last.failed) < b.reset {
		length = min(2*last.length, b.longest)
	}
	b.groups[group] = pause{length: length, failed: now, until: now.Add(length), why: why}
}

// reason says why a group is paused; it is empty when the group is not.
func (b *backoff) reason(group string, now time.Time) string {
	last, found := b.groups[group]
	if !found || !now.Before(last.until) {
		return ""
	}
	return fmt.Sprintf("paused until %s: %s", last.until.UTC().Format(time.RFC3339), last.why)
}
