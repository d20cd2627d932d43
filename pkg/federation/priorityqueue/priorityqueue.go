// Package priorityqueue has bindings decided in the order of their priorities: a queue hands them out in this order,
// those that wait for room are tried again together, and of those that are worked on at the same time the less urgent
// wait with their decision for the more urgent.
package priorityqueue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Priorities knows those of bindings. It is safe for use by many.
type Priorities struct {
	mu sync.Mutex
	// priorities that are not 0.
	priorities map[types.NamespacedName]int32
	// underway were taken from the queue and are not decided yet, with the priorities they had then.
	underway map[types.NamespacedName]int32
	// decided is closed when one of them is.
	decided chan struct{}
	// waiting bindings have no room, in the order in which they began to wait.
	waiting map[types.NamespacedName]uint64
	count   uint64
}

// New knows no bindings yet.
func New() *Priorities {
	return &Priorities{
		priorities: map[types.NamespacedName]int32{}, underway: map[types.NamespacedName]int32{},
		waiting: map[types.NamespacedName]uint64{}, decided: make(chan struct{}),
	}
}

// Set the priority of a binding, before it is added to the queue.
func (p *Priorities) Set(key types.NamespacedName, priority int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if priority == 0 {
		delete(p.priorities, key)
	} else {
		p.priorities[key] = priority
	}
}

// Forget a binding that is gone.
func (p *Priorities) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.priorities, key)
	delete(p.waiting, key)
}

// Wait notes that a binding waits for room, or that it doesn'p.
func (p *Priorities) Wait(key types.NamespacedName, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.waiting[key]
	switch {
	case !waits:
		delete(p.waiting, key)
	case !known:
		p.count++
		p.waiting[key] = p.count
	}
}

// Waiting gives the bindings that wait for room, the most urgent first, of several the one that has waited for longest.
func (p *Priorities) Waiting() []types.NamespacedName {
	p.mu.Lock()
	keys := slices.Collect(maps.Keys(p.waiting))
	p.mu.Unlock()
	return p.Sort(keys)
}

// Sort puts the most urgent first, of several the one that has waited for longest.
func (p *Priorities) Sort(keys []types.NamespacedName) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortStableFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(p.priorities[b], p.priorities[a]), cmp.Compare(p.waiting[a], p.waiting[b]))
	})
	return keys
}

// Await the turn of a binding: until nothing more urgent is underway, or ctx ends. One that did not come from the queue
// has the priority given.
func (p *Priorities) Await(ctx context.Context, key types.NamespacedName, priority int32) error {
	for {
		decided := p.before(key, priority)
		if decided == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-decided:
		}
	}
}

// before is closed when something underway is decided; nil if nothing is more urgent. The priorities that are compared
// don't change while bindings are underway, so that no two wait for each other.
func (p *Priorities) before(key types.NamespacedName, priority int32) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own, found := p.underway[key]; found {
		priority = own
	}
	for _, other := range p.underway {
		if other > priority {
			return p.decided
		}
	}
	return nil
}

// Decided ends the turn of a binding: what it takes is known, or it takes nothing.
func (p *Priorities) Decided(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, found := p.underway[key]; !found {
		return
	}
	delete(p.underway, key)
	close(p.decided)
	p.decided = make(chan struct{})
}

// Queue makes the queue of a controller. Every binding that it hands out is underway until Decided is called.
func (p *Priorities) Queue(name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
		Name: name, Queue: &order{priorities: p, at: map[reconcile.Request]int{}},
	})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Queue: inner,
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})
}
