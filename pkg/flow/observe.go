package flow

import "context"

// Observer is told at once how each task of a run goes, from the goroutines of the run: it must return soon, and
// several of its calls may be under way at a time. Those about one task come one after another.
type Observer interface {
	// Started tells that a task has begun. Those that are skipped never do.
	Started(id TaskID)
	// Awaits tells why a task that is at work is not done yet: the failure of a try that is followed by another, or
	// what an object lacks that it waits for.
	Awaits(id TaskID, reason error)
	// Ended tells that a task has succeeded (err is nil) or failed.
	Ended(id TaskID, err error)
}

// Node is a task of a flow, as who shows the flow sees it.
type Node struct {
	ID           TaskID
	Dependencies []TaskID
	// Skipped tasks do nothing in this flow.
	Skipped bool
}

// Nodes are the tasks of the flow; each comes after all that it depends on.
func (f *Flow) Nodes() []Node {
	nodes := make([]Node, 0, len(f.order))
	for _, n := range f.order {
		nodes = append(nodes, Node{
			ID: TaskID(n.task.Name), Dependencies: n.task.Dependencies, Skipped: n.task.SkipIf,
		})
	}
	return nodes
}

type awaitsKey struct{}

// Awaits tells the observer of the run, if there is one, what the task at work in ctx waits for.
func Awaits(ctx context.Context, reason error) {
	if tell, observed := ctx.Value(awaitsKey{}).(func(error)); observed && ctx.Err() == nil {
		tell(reason)
	}
}

// observed is the context of a task whose run has an observer.
func (r *run) observed(ctx context.Context, id TaskID) context.Context {
	if r.opts.Observer == nil {
		return ctx
	}
	return context.WithValue(ctx, awaitsKey{}, func(reason error) { r.opts.Observer.Awaits(id, reason) })
}

func (r *run) tellStarted(id TaskID) {
	if r.opts.Observer != nil {
		r.opts.Observer.Started(id)
	}
}

func (r *run) tellEnded(id TaskID, err error) {
	if r.opts.Observer != nil {
		r.opts.Observer.Ended(id, err)
	}
}
