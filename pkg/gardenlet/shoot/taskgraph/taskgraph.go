// Package taskgraph tells in the garden how operations on shoots go, task by task (pkg/operationgraph). That is for
// people who look on: no operation waits for it, or fails with it.
package taskgraph

import (
	"context"
	"sync"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

// Try is one try of an operation. It observes the run of its flow, and has the graph written when it changes. All its
// methods do nothing on nil.
type Try struct {
	// changed has the graph written; it is set before anybody else knows the Try.
	changed func()

	mu     sync.Mutex
	graph  operationgraph.Graph
	places map[flow.TaskID]int
}

// newTry is the try that the Shoot's status has just begun.
func newTry(shoot *gardencorev1beta1.Shoot, f *flow.Flow) *Try {
	t := &Try{
		graph:  operationgraph.Graph{Generation: shoot.Status.ObservedGeneration, Started: time.Now()},
		places: map[flow.TaskID]int{},
	}
	if last := shoot.Status.LastOperation; last != nil {
		t.graph.Type = string(last.Type)
	}
	if f == nil {
		return t
	}
	for i, node := range f.Nodes() {
		t.places[node.ID] = i
		task := operationgraph.Task{Name: string(node.ID), State: operationgraph.Pending}
		if node.Skipped {
			task.State = operationgraph.Skipped
		}
		for _, earlier := range node.Dependencies {
			task.After = append(task.After, t.places[earlier])
		}
		t.graph.Tasks = append(t.graph.Tasks, task)
	}
	return t
}

// Started implements flow.Observer.
func (t *Try) Started(id flow.TaskID) {
	t.change(id, func(task *operationgraph.Task) bool {
		task.State, task.Started = operationgraph.Running, time.Now()
		return true
	})
}

// Awaits implements flow.Observer.
func (t *Try) Awaits(id flow.TaskID, reason error) {
	if t == nil {
		return
	}
	text := operationgraph.Reason(reason)
	t.change(id, func(task *operationgraph.Task) bool {
		if task.State != operationgraph.Running || task.Error == text {
			return false
		}
		task.Error = text
		return true
	})
}

// Ended implements flow.Observer.
func (t *Try) Ended(id flow.TaskID, err error) {
	if t == nil {
		return
	}
	text := operationgraph.Reason(err)
	t.change(id, func(task *operationgraph.Task) bool {
		task.State, task.Ended, task.Error = operationgraph.Succeeded, time.Now(), text
		if err != nil {
			task.State = operationgraph.Failed
		}
		return true
	})
}

// End tells that the try is over, and with which error.
func (t *Try) End(err error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.graph.Ended = time.Now()
	if err != nil && len(flow.TaskErrors(err)) == 0 {
		t.graph.Error = operationgraph.Reason(err)
	}
	t.mu.Unlock()
	t.changed()
}

// change changes a task, and tells of it if it is another one then.
func (t *Try) change(id flow.TaskID, change func(*operationgraph.Task) bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	place, known := t.places[id]
	different := known && change(&t.graph.Tasks[place])
	t.mu.Unlock()
	if different {
		t.changed()
	}
}

// text is the graph as it is now.
func (t *Try) text() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return operationgraph.Encode(t.graph)
}

func (t *Try) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.graph.Ended.IsZero()
}

// Begin begins to tell of a try whose flow is about to run, in place of earlier ones. The Shoot is as its status was
// written at the begin. A nil Writer tells nothing.
func (w *Writer) Begin(ctx context.Context, shoot *gardencorev1beta1.Shoot, f *flow.Flow) *Try {
	if w == nil {
		return nil
	}
	try := w.take(ctx, shoot, f)
	try.changed()
	return try
}

// NotBegun tells of a try that has failed before it had tasks, so that nobody takes the tasks of the try before for
// those of this one. The Shoot's status tells of the failure already.
func (w *Writer) NotBegun(ctx context.Context, shoot *gardencorev1beta1.Shoot, cause error) {
	if w == nil {
		return
	}
	w.take(ctx, shoot, nil).End(cause)
}
