package demux

import (
	"net/netip"
	"testing"
	"time"
)

func TestSources(t *testing.T) {
	cases := map[string]string{
		"192.0.2.1":               "192.0.2.1/32",
		"::ffff:192.0.2.1":        "192.0.2.1/32",
		"2001:db8:1:2:3:4:5:6":    "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":     "2001:db8:1:2::/64",
		"fe80::1%eth0":            "fe80::/64",
		"2001:db8:1:3::192.0.2.1": "2001:db8:1:3::/64",
	}
	for address, want := range cases {
		if got := SourceOf(netip.AddrPortFrom(netip.MustParseAddr(address), 4711)).String(); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
}

func TestBuckets(t *testing.T) {
	var b bucket
	steps := []struct {
		after time.Duration
		n     int
		want  bool
	}{
		{0, 10, true}, {0, 1, false}, {100 * time.Millisecond, 1, true}, {100 * time.Millisecond, 1, false},
		{time.Hour, 10, true}, {time.Hour, 1, false},
		{time.Hour + time.Second, 30, false}, {time.Hour + 4*time.Second, 30, true},
	}
	for i, step := range steps {
		if got := b.has(start.Add(step.after), 10, step.n); got != step.want {
			t.Errorf("step %d: has %d = %v, want %v", i, step.n, got, step.want)
		}
		if step.want {
			b.take(step.n)
		}
	}
	if !b.has(start, 0, 1_000_000) {
		t.Error("a bucket without limit is empty")
	}
}
