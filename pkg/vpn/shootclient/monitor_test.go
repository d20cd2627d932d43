package shootclient

import (
	"testing"
	"time"
)

// Each case is a story: what the probes said, and at which of them a new handshake starts and the tunnel counts as up.
func TestMonitor(t *testing.T) {
	timing := Timing{
		Probe: 3 * time.Second, ProbeDown: time.Second, MinReset: 2 * time.Second, MaxReset: 5 * time.Second,
		Failures: 2,
	}
	cases := map[string]struct{ answers, up, resets string }{
		"healthy":                     {answers: "yyy", up: "yyy", resets: "---"},
		"one lost packet":             {answers: "yny", up: "yyy", resets: "---"},
		"down at the start":           {answers: "nnn", up: "---", resets: "-r-"},
		"pauses between resets grow":  {answers: "nnnnnnnnnnnnnnn", up: "---------------", resets: "-r-r---r----r--"},
		"an answer makes it up again": {answers: "ynnyn", up: "yy-yy", resets: "--r--"},
		"resets start anew after it":  {answers: "nnnynnn", up: "---yy--", resets: "-r---r-"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m monitor
			now := time.Unix(1_700_000_000, 0)
			var up, resets []byte
			for _, answer := range c.answers {
				s := m.observe(timing, answer == 'y', now)
				up = append(up, letter(s.up, 'y'))
				resets = append(resets, letter(s.reset, 'r'))
				if s.wait != timing.Probe && s.wait != timing.ProbeDown {
					t.Errorf("pause of %s", s.wait)
				}
				now = now.Add(time.Second)
			}
			if string(up) != c.up || string(resets) != c.resets {
				t.Errorf("up %s, resets %s; want %s, %s", up, resets, c.up, c.resets)
			}
		})
	}
}

func letter(is bool, yes byte) byte {
	if is {
		return yes
	}
	return '-'
}

// However long a server was away, a new handshake starts soon when it is back: the server of another path may be
// replaced when this one has been ready for minReadySeconds of package vpnseedserver.
func TestAServerThatIsBackIsFound(t *testing.T) {
	const minReady = 15 * time.Second
	for away := time.Duration(0); away <= time.Minute; away += 100 * time.Millisecond {
		for phase := time.Duration(0); phase < DefaultTiming.Probe; phase += 100 * time.Millisecond {
			now := time.Unix(1_700_000_000, 0)
			gone := now.Add(DefaultTiming.Probe + phase)
			back := gone.Add(away)
			var m monitor
			for found := false; !found; {
				answered := now.Before(gone)
				if !answered {
					now = now.Add(probeTimeout)
				}
				step := m.observe(DefaultTiming, answered, now)
				found = step.reset && !now.Before(back)
				if waited := now.Sub(back); !found && waited > minReady {
					t.Fatalf("away for %v: no handshake %v after it came back", away, waited)
				}
				now = now.Add(step.wait)
			}
		}
	}
}
