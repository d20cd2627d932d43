package live

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"
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

// message is a text, or its beginning, before what is sent to several browsers and the end.
type message struct{ text, shared, end []byte }

func (m message) size() int { return m.own() + len(m.shared) }
func (m message) own() int  { return len(m.text) + len(m.end) }

// write sends it. What is shared is copied nowhere.
func (m message) write(to *websocket.Conn) error {
	if m.end == nil {
		return to.WriteMessage(websocket.TextMessage, m.text)
	}
	w, err := to.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{m.text, m.shared, m.end} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return w.Close()
}

// queue holds what a browser has not read yet.
type queue struct {
	mutex    sync.Mutex
	messages []message
	// size is what waits, and own what of it waits for nobody else.
	size, own int
	closed    bool
	// all is what waits for all browsers, each for itself.
	all *atomic.Int64
	// filled has an entry while there is something to send; drained is closed when there is room again.
	filled  chan struct{}
	drained chan struct{}
}

func newQueue(all *atomic.Int64) *queue {
	return &queue{all: all, filled: make(chan struct{}, 1), drained: make(chan struct{})}
}

// push is false if the browser does not keep up.
func (q *queue) push(text []byte) bool {
	m := message{text: text}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return true
	}
	if size := q.size + m.size(); size > most || q.own+m.own() > little && q.isFull(m.own()) {
		return false
	}
	q.add(m)
	return true
}

// wait adds a message once there is room.
func (q *queue) wait(ctx context.Context, m message) error {
	for {
		drained, err := q.try(ctx, m)
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
func (q *queue) try(ctx context.Context, m message) (drained <-chan struct{}, err error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case q.closed:
		return nil, context.Canceled
	case q.size >= comfortable, q.own > 0 && q.isFull(m.own()):
		return q.drained, nil
	}
	q.add(m)
	return nil, nil
}

func (q *queue) isFull(more int) bool { return q.all.Load()+int64(more) > mostOfAll }

func (q *queue) add(m message) {
	q.messages = append(q.messages, m)
	q.size += m.size()
	q.own += m.own()
	q.all.Add(int64(m.own()))
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take gives what waits.
func (q *queue) take() []message {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	messages := q.messages
	q.messages = nil
	return messages
}

// sent makes room.
func (q *queue) sent(m message) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return
	}
	q.size -= m.size()
	q.own -= m.own()
	q.all.Add(-int64(m.own()))
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
	q.all.Add(-int64(q.own))
	q.closed, q.messages, q.size, q.own = true, nil, 0, 0
	close(q.drained)
	q.drained = make(chan struct{})
}
