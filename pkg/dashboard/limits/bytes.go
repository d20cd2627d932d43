package limits

import (
	"context"
	"math"
	"net/http"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

const (
	// ofLimit is the part of the process' memory that answers of clusters may take.
	ofLimit = 4
	// unlimited processes let answers take so much.
	unlimited = 64 << 20
	// shares is by how many users the bytes are taken when one can get no more.
	shares = 2
)

// Bytes bounds how much of what clusters answer is held in memory at a time, for all users together.
type Bytes struct {
	share  int64
	free   *semaphore.Weighted
	mutex  sync.Mutex
	owners map[string]*owner
}

// owner has a share of the bytes, while they have or want any.
type owner struct {
	free  *semaphore.Weighted
	asked int
}

// NewBytes has so many bytes, of which one user gets at most half.
func NewBytes(total int64) *Bytes {
	return &Bytes{share: total / shares, free: semaphore.NewWeighted(total), owners: map[string]*owner{}}
}

// BytesOfProcess has a quarter of what GOMEMLIMIT lets the process have.
func BytesOfProcess() *Bytes {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return NewBytes(unlimited)
	}
	return NewBytes(limit / ofLimit)
}

// Taken bytes are given back by Give. One goroutine uses them.
type Taken struct {
	of    *Bytes
	owner *owner
	name  string
	bytes int64
}

// Take waits for bytes for a user. More than a user gets is all of that.
func (b *Bytes) Take(ctx context.Context, user string, bytes int64) (*Taken, error) {
	t := b.enter(user)
	bytes = min(bytes, b.share)
	if err := t.owner.free.Acquire(ctx, bytes); err != nil {
		b.leave(t)
		return nil, err
	}
	if err := b.free.Acquire(ctx, bytes); err != nil {
		t.owner.free.Release(bytes)
		b.leave(t)
		return nil, err
	}
	t.bytes = bytes
	return t, nil
}

// Size is how many bytes are taken.
func (t *Taken) Size() int64 { return t.bytes }

// Nothing taken may grow.
func (b *Bytes) Nothing(user string) *Taken { return b.enter(user) }

// Grow takes more without waiting.
func (t *Taken) Grow(bytes int64) error {
	if !t.owner.free.TryAcquire(bytes) {
		return errBusy()
	}
	if !t.of.free.TryAcquire(bytes) {
		t.owner.free.Release(bytes)
		return errBusy()
	}
	t.bytes += bytes
	return nil
}

func errBusy() error {
	return reply.Error(http.StatusServiceUnavailable, reply.ReasonUnavailable,
		"the dashboard has no memory for so large an answer at the moment: try again, or ask for less")
}

// Shrink gives bytes back, but for so many.
func (t *Taken) Shrink(to int64) {
	if less := t.bytes - to; less > 0 {
		t.of.free.Release(less)
		t.owner.free.Release(less)
		t.bytes = to
	}
}

// Give gives all back. Nothing is taken after that.
func (t *Taken) Give() {
	t.Shrink(0)
	t.of.leave(t)
}

func (b *Bytes) enter(user string) *Taken {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	of, found := b.owners[user]
	if !found {
		of = &owner{free: semaphore.NewWeighted(b.share)}
		b.owners[user] = of
	}
	of.asked++
	return &Taken{of: b, owner: of, name: user}
}

func (b *Bytes) leave(t *Taken) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if t.owner.asked--; t.owner.asked == 0 {
		delete(b.owners, t.name)
	}
}
