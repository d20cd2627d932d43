package demux

import (
	"testing"
	"time"
)

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
