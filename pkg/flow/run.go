package flow

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// Progress tells how far a run is.
type Progress struct {
	// Percent is 100 * succeeded / all tasks that are not skipped; 100 only when every task succeeded.
	Percent int
	// Running are the names of the tasks at work, sorted.
	Running []string
	// Failed are the names of the tasks that failed so far, sorted.
	Failed []string
}

// Description is a line for people, e.g. "Deploying etcd, Deploying kube-apiserver".
func (p Progress) Description() string { return strings.Join(p.Running, ", ") }

// Options of a run. The zero value runs silently.
type Options struct {
	// Log receives a line per task at verbosity 1, and failures at verbosity 0.
	Log logr.Logger
	// OnProgress is called after changes, never concurrently, and off the tasks' path: while one call is at work,
	// further changes are merged into the next. The last call, with the final state, ends before Run returns.
	OnProgress func(ctx context.Context, progress Progress)
	// ProgressPeriod is the least time between the begin of two calls of OnProgress, but for the last call. What
	// changes meanwhile is told when it has passed, so that no change stays untold. 0 tells at once.
	ProgressPeriod time.Duration
	// OnSuccess is called when a task has succeeded, from the task's goroutine. It is the place to forget the
	// task's error of an earlier run.
	OnSuccess func(ctx context.Context, id TaskID)
	// Wrap, if set, is given the work of every task and returns what is done in its place. Tests note there where a
	// process may be killed.
	Wrap func(id TaskID, fn TaskFn) TaskFn
	// Observer, if set, is told of every task.
	Observer Observer
}

// Run executes the flow and waits until no task is at work. A task that fails keeps its dependents from starting;
// branches that do not need it go on. When ctx is done no further task starts. The error is nil or Errors; where ctx
// ended the run before a task failed, it is ctx's error.
func (f *Flow) Run(ctx context.Context, opts Options) error {
	if opts.Log.GetSink() == nil {
		opts.Log = logr.Discard()
	}
	r := &run{
		flow:      f,
		opts:      opts,
		waiting:   make(map[TaskID]int, len(f.order)),
		running:   map[TaskID]time.Time{},
		succeeded: 0,
		results:   make(chan result),
	}
	reporter := startReporter(ctx, opts.OnProgress, opts.ProgressPeriod)
	r.report = reporter.report
	defer reporter.stop()
	return r.loop(ctx)
}

type result struct {
	node *node
	err  error
}

// run is the state of one execution; only loop's goroutine touches it.
type run struct {
	flow      *Flow
	opts      Options
	waiting   map[TaskID]int
	running   map[TaskID]time.Time
	succeeded int
	failed    []string
	errors    Errors
	results   chan result
	report    func(Progress)
}

func (r *run) loop(ctx context.Context) error {
	for _, n := range r.flow.order {
		r.waiting[TaskID(n.task.Name)] = len(n.task.Dependencies)
	}
	for _, n := range r.flow.order {
		if len(n.task.Dependencies) == 0 {
			r.start(ctx, n)
		}
	}
	r.report(r.progress())
	for len(r.running) > 0 {
		r.finish(ctx, <-r.results)
		r.report(r.progress())
	}
	if len(r.errors) > 0 {
		return r.errors
	}
	if r.succeeded < r.flow.Len() {
		return fmt.Errorf("flow %q stopped: %w", r.flow.name, context.Cause(ctx))
	}
	return nil
}

// start begins a task whose dependencies are met; a skipped one releases its dependents at once.
func (r *run) start(ctx context.Context, n *node) {
	if n.task.SkipIf {
		r.release(ctx, n)
		return
	}
	if ctx.Err() != nil {
		return
	}
	id := TaskID(n.task.Name)
	r.running[id] = time.Now()
	r.opts.Log.V(1).Info("Task started", "flow", r.flow.name, "task", id)
	r.tellStarted(id)
	go func() {
		err := safely(r.observed(ctx, id), r.work(n))
		if err == nil && r.opts.OnSuccess != nil {
			r.opts.OnSuccess(ctx, id)
		}
		r.results <- result{n, err}
	}()
}

// work is what a task does.
func (r *run) work(n *node) TaskFn {
	fn := n.task.Fn
	if r.opts.Wrap == nil {
		return fn
	}
	if fn == nil {
		fn = func(context.Context) error { return nil }
	}
	return r.opts.Wrap(TaskID(n.task.Name), fn)
}

func (r *run) finish(ctx context.Context, res result) {
	id := TaskID(res.node.task.Name)
	took := time.Since(r.running[id]).Round(time.Millisecond)
	delete(r.running, id)
	r.tellEnded(id, res.err)
	if res.err != nil {
		r.opts.Log.Info("Task failed", "flow", r.flow.name, "task", id, "duration", took.String(), "error",
			res.err.Error())
		r.failed = append(r.failed, string(id))
		r.errors = append(r.errors, &TaskError{TaskID: id, Err: res.err})
		return
	}
	r.opts.Log.V(1).Info("Task succeeded", "flow", r.flow.name, "task", id, "duration", took.String())
	r.succeeded++
	r.release(ctx, res.node)
}

func (r *run) release(ctx context.Context, n *node) {
	for _, dependent := range n.dependents {
		id := TaskID(dependent.task.Name)
		r.waiting[id]--
		if r.waiting[id] == 0 {
			r.start(ctx, dependent)
		}
	}
}

func (r *run) progress() Progress {
	progress := Progress{Percent: 100, Failed: slices.Sorted(slices.Values(r.failed))}
	if total := r.flow.Len(); total > 0 {
		progress.Percent = 100 * r.succeeded / total
	}
	for id := range r.running {
		progress.Running = append(progress.Running, string(id))
	}
	slices.Sort(progress.Running)
	return progress
}

// safely turns a panic into an error, so that one task cannot end the process that serves other clusters.
func safely(ctx context.Context, fn TaskFn) (err error) {
	if fn == nil {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return fn(ctx)
}

// reporter hands the newest progress to a callback without holding up the flow.
type reporter struct {
	latest chan Progress
	// ending is closed when the flow has ended, done when the callback has heard of that.
	ending, done chan struct{}
}

func startReporter(ctx context.Context, callback func(context.Context, Progress), period time.Duration) *reporter {
	r := &reporter{latest: make(chan Progress, 1), ending: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for progress := range r.latest {
			pause := time.NewTimer(period)
			if callback != nil {
				callback(ctx, progress)
			}
			select {
			case <-pause.C:
			case <-r.ending:
			}
		}
	}()
	return r
}

func (r *reporter) report(progress Progress) {
	select {
	case <-r.latest:
	default:
	}
	r.latest <- progress
}

func (r *reporter) stop() {
	close(r.ending)
	close(r.latest)
	<-r.done
}
