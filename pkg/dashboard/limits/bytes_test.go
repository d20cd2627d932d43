package limits

import (
	"context"
	"errors"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func take(t *testing.T, b *Bytes, user string, bytes int64) *Taken {
	t.Helper()
	taken, err := b.Take(t.Context(), user, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func TestBytesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBytes(100)
		all := take(t, b, "alice", 1000)
		if all.bytes != 50 {
			t.Errorf("one user has %d", all.bytes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Take(ctx, "alice", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("more: %v", err)
		}
		other := take(t, b, "bob", 30)
		if other.Grow(21) == nil || other.Grow(20) != nil {
			t.Error("bob gets more than a share, or less")
		}
		third := b.Nothing("carol")
		if third.Grow(1) == nil {
			t.Error("there are more than 100")
		}
		all.Shrink(20)
		if err := third.Grow(30); err != nil {
			t.Error(err)
		}
		for _, taken := range []*Taken{all, other, third} {
			taken.Give()
		}
		if len(b.owners) != 0 || !b.free.TryAcquire(100) {
			t.Errorf("some are not given back: %v", b.owners)
		}
	})
}

func TestBytesOfTheProcess(t *testing.T) {
	before := debug.SetMemoryLimit(256e6)
	defer debug.SetMemoryLimit(before)
	if b := BytesOfProcess(); !b.free.TryAcquire(64e6) || b.free.TryAcquire(1) || b.share != 32e6 {
		t.Errorf("a share is %d", b.share)
	}
}
