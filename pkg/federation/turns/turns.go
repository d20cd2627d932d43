// Package turns has bindings decided in the order of their priorities: a queue hands them out in this order, those that wait for room are
// tried again together, and of those that are worked on at the same time the less urgent wait with their decision for the more urgent.
package turns

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

// Turns knows the priorities of bindings. It is safe for use by many.
type Turns struct {
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
func New() *Turns {
	return &Turns{
		priorities: map[types.NamespacedName]int32{}, underway: map[types.NamespacedName]int32{},
		waiting: map[types.NamespacedName]uint64{}, decided: make(chan struct{}),
	}
}

// Set the priority of a binding, before it is added to the queue.
func (t *Turns) Set(key types.NamespacedName, priority int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if priority == 0 {
		delete(t.priorities, key)
	} else {
		t.priorities[key] = priority
	}
}

// Forget a binding that is gone.
func (t *Turns) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.priorities, key)
	delete(t.waiting, key)
}

// Wait notes that a binding waits for room, or that it doesn't.
func (t *Turns) Wait(key types.NamespacedName, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.waiting[key]
	switch {
	case !waits:
		delete(t.waiting, key)
	case !known:
		t.count++
		t.waiting[key] = t.count
	}
}

// Waiting gives the bindings that wait for room, the most urgent first, of several the one that has waited for longest.
func (t *Turns) Waiting() []types.NamespacedName {
	t.mu.Lock()
	keys := slices.Collect(maps.Keys(t.waiting))
	t.mu.Unlock()
	return t.Sort(keys)
}

// Sort puts the most urgent first, of several the one that has waited for longest.
func (t *Turns) Sort(keys []types.NamespacedName) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(t.priorities[b], t.priorities[a]), cmp.Compare(t.waiting[a], t.waiting[b]))
	})
	return keys
}

// Await the turn of a binding: until nothing more urgent is underway, or ctx ends. One that did not come from the queue has the priority
// given.
func (t *Turns) Await(ctx context.Context, key types.NamespacedName, priority int32) error {
	for {
		decided := t.before(key, priority)
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

// before is closed when something underway is decided; nil if nothing is more urgent. The priorities that are compared don't change
// while bindings are underway, so that no two wait for each other.
func (t *Turns) before(key types.NamespacedName, priority int32) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own, found := t.underway[key]; found {
		priority = own
	}
	for _, other := range t.underway {
		if other > priority {
			return t.decided
		}
	}
	return nil
}

// Decided ends the turn of a binding: what it takes is known, or it takes nothing.
func (t *Turns) Decided(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.underway[key]; !found {
		return
	}
	delete(t.underway, key)
	close(t.decided)
	t.decided = make(chan struct{})
}

// Queue makes the queue of a controller. Every binding that it hands out is underway until Decided is called.
func (t *Turns) Queue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: &order{turns: t, at: map[reconcile.Request]int{}}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: inner})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})
}
