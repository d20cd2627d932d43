package csrapprover

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

const (
	// maxPending is how many requests of a shoot's kubelets, or of a fleet's agents, are held at a time. Those beyond
	// are left in the API until there is room: any user who may make requests can make any number.
	maxPending = 1000
	// retrySoon is when a request is looked at again, for the first soonTries times: nodes register within seconds.
	// Then it is retryLate.
	retrySoon = 500 * time.Millisecond
	soonTries = 60
	retryLate = 5 * time.Second
)

// candidate is what is kept of a request: little, as its author chooses the size of the rest.
type candidate struct {
	uid       types.UID
	requester string
	created   time.Time
	// open is what is not known yet.
	open  question
	tries int
}

// queue holds pending requests of one approver, by name.
type queue struct {
	work workqueue.TypedDelayingInterface[string]
	// room is told when requests that were left out can be taken.
	room chan struct{}

	mu      sync.Mutex
	held    map[string]candidate
	leftOut bool
}

func newQueue() *queue {
	return &queue{
		work: workqueue.NewTypedDelayingQueue[string](), room: make(chan struct{}, 1), held: map[string]candidate{},
	}
}

// add takes a request, unless there are too many.
func (q *queue) add(name string, c candidate) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old, known := q.held[name]
	if !known && len(q.held) >= maxPending {
		q.leftOut = true
		return
	}
	if known && old.uid == c.uid {
		return
	}
	q.held[name] = c
	q.work.Add(name)
}

func (q *queue) get(name string) (candidate, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, known := q.held[name]
	return c, known
}

// forget drops a request. When half of the place is free again, those that were left out are asked for.
func (q *queue) forget(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, name)
	if !q.leftOut || len(q.held) > maxPending/2 {
		return
	}
	q.leftOut = false
	select {
	case q.room <- struct{}{}:
	default:
	}
}

// again has a request looked at later.
func (q *queue) again(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, known := q.held[name]
	if !known {
		return
	}
	c.tries++
	q.held[name] = c
	if c.tries <= soonTries {
		q.work.AddAfter(name, retrySoon)
	} else {
		q.work.AddAfter(name, retryLate)
	}
}
