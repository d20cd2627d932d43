package priorityqueue

import (
	"container/heap"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// order implements workqueue.Queue, which calls it under a lock of its own: the most urgent item comes first, of
// several the one that was added first.
type order struct {
	priorities *Priorities
	items      items
	// at is where items are.
	at    map[reconcile.Request]int
	count uint64
}

type item struct {
	request  reconcile.Request
	priority int32
	number   uint64
}

// Push implements workqueue.Queue.
func (o *order) Push(request reconcile.Request) {
	o.count++
	heap.Push(o.heap(), item{request, o.priority(request), o.count})
}

// Touch implements workqueue.Queue: an item that is added again may have become more urgent, or less.
func (o *order) Touch(request reconcile.Request) {
	if i, found := o.at[request]; found {
		o.items[i].priority = o.priority(request)
		heap.Fix(o.heap(), i)
	}
}

// Len implements workqueue.Queue.
func (o *order) Len() int { return len(o.items) }

// Pop implements workqueue.Queue. From then on the item is underway.
func (o *order) Pop() reconcile.Request {
	first, _ := heap.Pop(o.heap()).(item)
	o.priorities.mu.Lock()
	defer o.priorities.mu.Unlock()
	o.priorities.underway[first.request.NamespacedName] = first.priority
	return first.request
}

func (o *order) priority(request reconcile.Request) int32 {
	o.priorities.mu.Lock()
	defer o.priorities.mu.Unlock()
	return o.priorities.priorities[request.NamespacedName]
}

func (o *order) heap() heap.Interface { return (*byUrgency)(o) }

type items []item

// byUrgency implements heap.Interface.
type byUrgency order

// Len implements heap.Interface.
func (o *byUrgency) Len() int { return len(o.items) }

// Less implements heap.Interface.
func (o *byUrgency) Less(i, j int) bool {
	a, b := &o.items[i], &o.items[j]
	return a.priority > b.priority || a.priority == b.priority && a.number < b.number
}

// Swap implements heap.Interface.
func (o *byUrgency) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	o.at[o.items[i].request], o.at[o.items[j].request] = i, j
}

// Push implements heap.Interface.
func (o *byUrgency) Push(x any) {
	if added, ok := x.(item); ok {
		o.at[added.request] = len(o.items)
		o.items = append(o.items, added)
	}
}

// Pop implements heap.Interface.
func (o *byUrgency) Pop() any {
	last := o.items[len(o.items)-1]
	o.items = o.items[:len(o.items)-1]
	delete(o.at, last.request)
	return last
}
