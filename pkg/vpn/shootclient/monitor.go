package shootclient

import "time"

const (
	probeInterval     = 3 * time.Second
	probeIntervalDown = 500 * time.Millisecond
	// failuresUntilDown tolerates one lost packet.
	failuresUntilDown = 2
	minResetDelay     = 2 * time.Second
	maxResetDelay     = 10 * time.Second
)

// monitor decides from the results of probes whether the tunnel is up, when to probe next, and when to start anew.
type monitor struct {
	failures  int
	up        bool
	resets    int
	nextReset time.Time
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

func (m *monitor) observe(answered bool, now time.Time) step {
	if answered {
		*m = monitor{up: true}
		return step{up: true, wait: probeInterval}
	}
	m.failures++
	if m.failures < failuresUntilDown {
		return step{up: m.up, wait: probeIntervalDown}
	}
	m.up = false
	next := step{wait: probeIntervalDown}
	if !now.Before(m.nextReset) {
		next.reset = true
		m.nextReset = now.Add(min(minResetDelay<<m.resets, maxResetDelay))
		m.resets = min(m.resets+1, 8)
	}
	return next
}
