// Package priorityqueue has bindings decided in the order of their priorities: a queue hands them out in this order,
// those that wait for room are tried again together, of those that are worked on at the same time the less urgent wait
// with their decision for the more urgent, and who finds room lets the more urgent that wait be tried first.
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
	// waiting bindings have no room.
	waiting map[types.NamespacedName]*wait
	// count numbers what happens one after the other: tries, and beginnings to wait.
	count uint64
}

// wait of a binding for room.
type wait struct {
	// since when it waits, and when it was tried last.
	since, tried uint64
	// found is the try that found room first, while others are tried before it takes that; yields counts these tries.
	found  uint64
	yields int
}

const (
	// maxYields bounds how often a binding lets others be tried before it takes the room that it has found.
	maxYields = 3
	// maxAhead bounds how many that are each time: those of which one may get the room are the most urgent.
	maxAhead = 32
)

// New knows no bindings yet.
func New() *Priorities {
	return &Priorities{
		priorities: map[types.NamespacedName]int32{}, underway: map[types.NamespacedName]int32{},
		waiting: map[types.NamespacedName]*wait{}, decided: make(chan struct{}),
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

// Try numbers a try to decide for a binding, before it is looked what room there is.
func (p *Priorities) Try() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	return p.count
}

// Wait notes that a binding waits for room after a try in vain.
func (p *Priorities) Wait(key types.NamespacedName, try uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.waiting[key]
	if known == nil {
		p.count++
		known = &wait{since: p.count}
		p.waiting[key] = known
	}
	known.tried, known.found, known.yields = try, 0, 0
}

// Rest notes that a binding does not wait for room.
func (p *Priorities) Rest(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, key)
}

// Ahead gives the more urgent bindings that are to be tried before a binding takes the room that this try has found for
// it: they were tried in vain when the room may not have been there. That is for a binding that has waited for the
// room, as it may have been taken from the queue before they were told of it. When they have been tried since, and
// after a few times anyway, there are none.
func (p *Priorities) Ahead(key types.NamespacedName, try uint64) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.waiting[key]
	if own == nil || own.yields == maxYields {
		return nil
	}
	if own.found == 0 {
		own.found = try
	}
	var ahead []types.NamespacedName
	for other, w := range p.waiting {
		if p.priorities[other] > p.priorities[key] && w.tried < own.found {
			ahead = append(ahead, other)
		}
	}
	if len(ahead) > 0 {
		own.yields++
	}
	return p.sort(ahead)[:min(len(ahead), maxAhead)]
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
	return p.sort(keys)
}

func (p *Priorities) sort(keys []types.NamespacedName) []types.NamespacedName {
	since := func(key types.NamespacedName) uint64 {
		if w := p.waiting[key]; w != nil {
			return w.since
		}
		return 0
	}
	slices.SortStableFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(p.priorities[b], p.priorities[a]), cmp.Compare(since(a), since(b)))
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
