package live

import (
	"context"
	"sync"
	"sync/atomic"
)

const (
	// comfortable is how much waits for a browser before lists wait, too.
	comfortable = 512 << 10
	// most is how much waits before the browser is given up; mostOfAll, for all browsers together: those that are
	// behind by more than a little are given up then.
	most      = 4 << 20
	mostOfAll = 32 << 20
	little    = 64 << 10
)

// queue holds what a browser has not read yet.
type queue struct {
	mutex    sync.Mutex
	messages [][]byte
	size     int
	closed   bool
	// all is what waits for all browsers.
	all *atomic.Int64
	// filled has an entry while there is something to send; drained is closed when there is room again.
	filled  chan struct{}
	drained chan struct{}
}

func newQueue(all *atomic.Int64) *queue {
	return &queue{all: all, filled: make(chan struct{}, 1), drained: make(chan struct{})}
}

// push is false if the browser does not keep up.
func (q *queue) push(message []byte) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return true
	}
	if size := q.size + len(message); size > most || size > little && q.isFull(len(message)) {
		return false
	}
	q.add(message)
	return true
}

// wait adds a message once there is room.
func (q *queue) wait(ctx context.Context, message []byte) error {
	for {
		drained, err := q.try(ctx, message)
		if drained == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-drained:
		}
	}
}

// try adds a message, or gives what to wait for. What was cancelled is not added any more.
func (q *queue) try(ctx context.Context, message []byte) (drained <-chan struct{}, err error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case q.closed:
		return nil, context.Canceled
	case q.size >= comfortable, q.size > 0 && q.isFull(len(message)):
		return q.drained, nil
	}
	q.add(message)
	return nil, nil
}

func (q *queue) isFull(more int) bool { return q.all.Load()+int64(more) > mostOfAll }

func (q *queue) add(message []byte) {
	q.messages = append(q.messages, message)
	q.size += len(message)
	q.all.Add(int64(len(message)))
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take gives what waits.
func (q *queue) take() [][]byte {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	messages := q.messages
	q.messages = nil
	return messages
}

// sent makes room.
func (q *queue) sent(bytes int) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return
	}
	q.size -= bytes
	q.all.Add(-int64(bytes))
	if q.size < comfortable {
		close(q.drained)
		q.drained = make(chan struct{})
	}
}

// close lets nobody wait any more.
func (q *queue) close() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return
	}
	q.all.Add(-int64(q.size))
	q.closed, q.messages, q.size = true, nil, 0
	close(q.drained)
	q.drained = make(chan struct{})
}
