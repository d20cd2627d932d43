// Package fairqueue is a work queue that shares its workers fairly between lanes: the next item is that of the next
// lane in turn, no lane has more than its limit of workers, and one that proves slow has a single one until it is quick
// again. So what one lane waits for doesn't hold up the others.
package fairqueue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Options of a queue.
type Options[T comparable] struct {
	// Lane of an item.
	Lane func(T) string
	// Limit is how many items of a lane are worked on at a time.
	Limit int
	// Slow is how long an item may be worked on before its lane counts as slow.
	Slow time.Duration
	// Now gives the time.
	Now func() time.Time
}

// New makes a queue for a controller.
func New[T comparable](name string, limiter workqueue.TypedRateLimiter[T],
	options Options[T]) workqueue.TypedRateLimitingInterface[T] {
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
		Name: name, Queue: newQueue(options),
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[T]{Name: name, DelayingQueue: delaying})
}

// queue implements workqueue.TypedInterface: an item is in it once, and is not handed out while it is worked on.
type queue[T comparable] struct {
	options Options[T]

	mu   sync.Mutex
	cond *sync.Cond
	// dirty items are to be worked on; those of them that are being worked on wait in no lane until they are done.
	dirty      map[T]struct{}
	processing map[T]time.Time
	lanes      map[string]*lane[T]
	// ready are the lanes that have items waiting, the next one first.
	ready    []*lane[T]
	waiting  int
	closing  bool
	draining bool
}

type lane[T comparable] struct {
	name    string
	items   []T
	working int
	slow    bool
	queued  bool
}

func newQueue[T comparable](options Options[T]) *queue[T] {
	q := &queue[T]{
		options: options, dirty: map[T]struct{}{}, processing: map[T]time.Time{}, lanes: map[string]*lane[T]{},
	}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// Add an item, unless it is waiting already.
func (q *queue[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.dirty[item]; known || q.closing {
		return
	}
	q.dirty[item] = struct{}{}
	if _, busy := q.processing[item]; !busy {
		q.push(item)
	}
}

func (q *queue[T]) push(item T) {
	l := q.lane(item)
	l.items = append(l.items, item)
	q.waiting++
	if !l.queued {
		l.queued = true
		q.ready = append(q.ready, l)
	}
	q.cond.Signal()
}

func (q *queue[T]) lane(item T) *lane[T] {
	name := q.options.Lane(item)
	l, found := q.lanes[name]
	if !found {
		l = &lane[T]{name: name}
		q.lanes[name] = l
	}
	return l
}

// Len is the number of items that wait.
func (q *queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Get waits for an item that may be worked on.
func (q *queue[T]) Get() (item T, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if l := q.next(); l != nil {
			item := q.take(l)
			q.wakeOne()
			return item, false
		}
		if q.closing && q.waiting == 0 {
			return item, true
		}
		q.cond.Wait()
	}
}

// wakeOne lets another worker look, if there may be something for it. One at a time is enough: who finds something
// wakes the next, so that hundreds of workers don't wake for a single item.
func (q *queue[T]) wakeOne() {
	if len(q.ready) > 0 {
		q.cond.Signal()
	}
}

// next takes the first ready lane that may have another worker off the list.
func (q *queue[T]) next() *lane[T] {
	for i, l := range q.ready {
		if l.working < q.limit(l) {
			q.ready = append(q.ready[:i], q.ready[i+1:]...)
			return l
		}
	}
	return nil
}

func (q *queue[T]) limit(l *lane[T]) int {
	if l.slow {
		return 1
	}
	return q.options.Limit
}

func (q *queue[T]) take(l *lane[T]) T {
	item := l.items[0]
	l.items = l.items[1:]
	l.working++
	q.waiting--
	if l.queued = len(l.items) > 0; l.queued {
		q.ready = append(q.ready, l)
	}
	delete(q.dirty, item)
	q.processing[item] = q.options.Now()
	return item
}

// Done must follow every Get.
func (q *queue[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	began, busy := q.processing[item]
	if !busy {
		return
	}
	delete(q.processing, item)
	l := q.lane(item)
	l.working--
	l.slow = q.options.Now().Sub(began) > q.options.Slow
	if _, again := q.dirty[item]; again {
		q.push(item)
	}
	if l.working == 0 && !l.queued && !l.slow {
		delete(q.lanes, l.name)
	}
	if q.closing {
		q.cond.Broadcast()
		return
	}
	q.wakeOne()
}

// ShutDown lets waiting items be worked on and takes no more.
func (q *queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing = true
	q.cond.Broadcast()
}

// ShutDownWithDrain waits until nothing is worked on.
func (q *queue[T]) ShutDownWithDrain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing, q.draining = true, true
	q.cond.Broadcast()
	for q.draining && len(q.processing) > 0 {
		q.cond.Wait()
	}
}

// ShuttingDown tells whether one of the above was called.
func (q *queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing
}
