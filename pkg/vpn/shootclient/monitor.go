package shootclient

import "time"

// Timing says how a tunnel is watched.
type Timing struct {
	// Probe and ProbeDown are the pauses between probes while the tunnel is up and down.
	Probe, ProbeDown time.Duration
	// MinReset and MaxReset bound the time between new handshakes, which doubles with each.
	MinReset, MaxReset time.Duration
	// Failures is how many probes in a row must fail before the tunnel counts as down.
	Failures int
}

// DefaultTiming finds a broken tunnel within about five seconds and tolerates one lost packet.
var DefaultTiming = Timing{
	Probe:     3 * time.Second,
	ProbeDown: 500 * time.Millisecond,
	MinReset:  2 * time.Second,
	MaxReset:  10 * time.Second,
	Failures:  2,
}

// monitor decides from the results of probes whether the tunnel is up, when to probe next, and when to start anew.
type monitor struct {
	failures   int
	up         bool
	resetDelay time.Duration
	nextReset  time.Time
}

// step is what follows from a probe.
type step struct {
	// up says whether the tunnel counts as up.
	up bool
	// reset asks for a new handshake with a newly resolved endpoint.
	reset bool
	// wait is the time until the next probe.
	wait time.Duration
}

func (m *monitor) observe(timing Timing, answered bool, now time.Time) step {
	if answered {
		*m = monitor{up: true}
		return step{up: true, wait: timing.Probe}
	}
	m.failures++
	if m.failures < timing.Failures {
		return step{up: m.up, wait: timing.ProbeDown}
	}
	m.up = false
	next := step{wait: timing.ProbeDown}
	if !now.Before(m.nextReset) {
		next.reset = true
		m.resetDelay = min(max(2*m.resetDelay, timing.MinReset), timing.MaxReset)
		m.nextReset = now.Add(m.resetDelay)
	}
	return next
}
