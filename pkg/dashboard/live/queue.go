package live

import (
	"context"
	"sync"
)

const (
	// comfortable is how much waits for a browser before lists wait, too.
	comfortable = 1 << 20
	// most is how much waits before the browser is given up.
	most = 8 << 20
)

// queue holds what a browser has not read yet.
type queue struct {
	mutex    sync.Mutex
	messages [][]byte
	size     int
	closed   bool
	// filled has an entry while there is something to send; drained is closed when there is room again.
	filled  chan struct{}
	drained chan struct{}
}

func newQueue() *queue {
	return &queue{filled: make(chan struct{}, 1), drained: make(chan struct{})}
}

// push is false if the browser does not keep up.
func (q *queue) push(message []byte) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return true
	}
	if q.size+len(message) > most {
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
	case q.size >= comfortable:
		return q.drained, nil
	}
	q.add(message)
	return nil, nil
}

func (q *queue) add(message []byte) {
	q.messages = append(q.messages, message)
	q.size += len(message)
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
	q.size -= bytes
	if q.size < comfortable {
		close(q.drained)
		q.drained = make(chan struct{})
	}
}

// close lets nobody wait any more.
func (q *queue) close() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.closed, q.messages = true, nil
	close(q.drained)
	q.drained = make(chan struct{})
}
