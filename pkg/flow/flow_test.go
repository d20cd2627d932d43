package flow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCompileRejectsBrokenGraphs(t *testing.T) {
	for _, test := range []struct {
		name  string
		tasks []Task
		want  string
	}{
		{"a task without a name", []Task{{}}, "a task has no name"},
		{"a name used twice", []Task{{Name: "a"}, {Name: "a"}}, `task "a" is added twice`},
		{"an unknown dependency", []Task{{Name: "a", Dependencies: []TaskID{"b"}}}, `task "a" depends on "b"`},
		{
			"a cycle",
			[]Task{
				{Name: "a", Dependencies: []TaskID{"c"}},
				{Name: "b", Dependencies: []TaskID{"a"}},
				{Name: "c", Dependencies: []TaskID{"b"}},
			},
			"cycle a -> c -> b -> a",
		},
		{"a task that waits for itself", []Task{{Name: "a", Dependencies: []TaskID{"a"}}}, "cycle a -> a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewGraph("test")
			for _, task := range test.tasks {
				g.Add(task)
			}
			if _, err := g.Compile(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

func TestStringShowsOrderAndSkips(t *testing.T) {
	g := NewGraph("shoot")
	namespace := g.Add(Task{Name: "namespace"})
	etcd := g.Add(Task{Name: "etcd", Dependencies: []TaskID{namespace}})
	g.Add(Task{Name: "vpn", SkipIf: true, Dependencies: []TaskID{namespace, etcd}})

	want := "shoot\n  namespace\n  etcd <- namespace\n  vpn (skipped) <- etcd, namespace\n"
	if got := compile(t, g).String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestLast(t *testing.T) {
	g := NewGraph("test")
	a := g.Add(Task{Name: "a"})
	b := g.Add(Task{Name: "b", Dependencies: []TaskID{a}})
	c := g.Add(Task{Name: "c", Dependencies: []TaskID{a}, SkipIf: true})
	if got, want := g.Last(), []TaskID{b, c}; !slices.Equal(got, want) {
		t.Errorf("last are %v, want %v", got, want)
	}
	g.Add(Task{Name: "d", Dependencies: g.Last()})
	if got, want := g.Last(), []TaskID{"d"}; !slices.Equal(got, want) {
		t.Errorf("last are %v, want %v", got, want)
	}
}

func TestRunKeepsOrder(t *testing.T) {
	var log recorder
	g := NewGraph("test")
	a := g.Add(Task{Name: "a", Fn: log.task("a")})
	b := g.Add(Task{Name: "b", Fn: log.task("b"), Dependencies: []TaskID{a}})
	skipped := g.Add(Task{Name: "skipped", Fn: log.task("skipped"), SkipIf: true, Dependencies: []TaskID{b}})
	g.Add(Task{Name: "c", Fn: log.task("c"), Dependencies: []TaskID{skipped}})

	if err := compile(t, g).Run(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := log.names, []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v: a skipped task must pass on the order", got, want)
	}
}

func TestRunIsParallel(t *testing.T) {
	met := make(chan struct{})
	g := NewGraph("test")
	g.Add(Task{Name: "left", Fn: func(ctx context.Context) error { return meet(ctx, func() { met <- struct{}{} }) }})
	g.Add(Task{Name: "right", Fn: func(ctx context.Context) error { return meet(ctx, func() { <-met }) }})
	if err := compile(t, g).Run(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestFailureStopsItsBranchOnly(t *testing.T) {
	var log recorder
	broken := errors.New("broken")
	g := NewGraph("test")
	bad := g.Add(Task{Name: "bad", Fn: func(context.Context) error { return broken }})
	g.Add(Task{Name: "after bad", Fn: log.task("after bad"), Dependencies: []TaskID{bad}})
	panics := g.Add(Task{Name: "panics", Fn: func(context.Context) error { panic("boom") }})
	g.Add(Task{Name: "after panics", Fn: log.task("after panics"), Dependencies: []TaskID{panics}})
	good := g.Add(Task{Name: "good", Fn: log.task("good")})
	g.Add(Task{Name: "after good", Fn: log.task("after good"), Dependencies: []TaskID{good}})

	err := compile(t, g).Run(t.Context(), Options{})

	if !slices.Equal(log.names, []string{"good", "after good"}) {
		t.Errorf("ran %v", log.names)
	}
	if !errors.Is(err, broken) {
		t.Errorf("error %v does not hold the cause", err)
	}
	var ids []string
	for _, taskErr := range TaskErrors(err) {
		ids = append(ids, string(taskErr.TaskID))
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"bad", "panics"}) {
		t.Errorf("failed tasks are %v", ids)
	}
}

func TestCancelledRunStartsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log recorder
	g := NewGraph("test")
	first := g.Add(Task{Name: "first", Fn: func(context.Context) error { cancel(); return nil }})
	g.Add(Task{Name: "second", Fn: log.task("second"), Dependencies: []TaskID{first}})

	if err := compile(t, g).Run(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	if len(log.names) != 0 {
		t.Errorf("ran %v after cancellation", log.names)
	}
}

func TestProgress(t *testing.T) {
	g := NewGraph("test")
	a := g.Add(Task{Name: "a"})
	g.Add(Task{Name: "b", Dependencies: []TaskID{a}})
	g.Add(Task{Name: "bad", Fn: func(context.Context) error { return errors.New("no") }})
	g.Add(Task{Name: "off", SkipIf: true})
	var mutex sync.Mutex
	var seen []Progress
	_ = compile(t, g).Run(t.Context(), Options{OnProgress: func(_ context.Context, p Progress) {
		mutex.Lock()
		defer mutex.Unlock()
		seen = append(seen, p)
	}})
	last := seen[len(seen)-1]
	if last.Percent != 66 || len(last.Running) != 0 || !slices.Equal(last.Failed, []string{"bad"}) {
		t.Errorf("last progress is %+v", last)
	}
}

// A flow that stands still is told as it is, although it changed just after the last report.
func TestProgressOfAFlowThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mutex sync.Mutex
		var told Progress
		g := NewGraph("test")
		quick := g.Add(Task{Name: "quick"})
		g.Add(Task{Name: "slow", Dependencies: []TaskID{quick}, Fn: func(context.Context) error {
			time.Sleep(time.Hour)
			mutex.Lock()
			defer mutex.Unlock()
			if !slices.Equal(told.Running, []string{"slow"}) {
				t.Errorf("after an hour it is told that %v run, want slow", told.Running)
			}
			return nil
		}})
		begin, calls := time.Now(), 0
		err := compile(t, g).Run(t.Context(),
			Options{ProgressPeriod: time.Minute, OnProgress: func(_ context.Context, p Progress) {
				mutex.Lock()
				defer mutex.Unlock()
				told = p
				calls++
			}})
		if err != nil || told.Percent != 100 || time.Since(begin) != time.Hour || calls > 3 {
			t.Errorf("error %v, last progress %+v after %s and %d calls; want the end after an hour and 3 calls at "+
				"most", err, told, time.Since(begin), calls)
		}
	})
}

func TestOnSuccessNamesTasksThatSucceeded(t *testing.T) {
	var log recorder
	g := NewGraph("test")
	g.Add(Task{Name: "good"})
	g.Add(Task{Name: "bad", Fn: func(context.Context) error { return errors.New("no") }})
	_ = compile(t, g).Run(t.Context(), Options{OnSuccess: func(_ context.Context, id TaskID) { log.add(string(id)) }})
	if !slices.Equal(log.names, []string{"good"}) {
		t.Errorf("got %v", log.names)
	}
}

// What wraps tasks decides about all of them that are not skipped, those without work of their own as well.
func TestWrap(t *testing.T) {
	var log recorder
	g := NewGraph("test")
	a := g.Add(Task{Name: "a", Fn: log.task("a")})
	b := g.Add(Task{Name: "gathers", Dependencies: []TaskID{a}})
	c := g.Add(Task{Name: "skipped", SkipIf: true, Dependencies: []TaskID{b}})
	g.Add(Task{Name: "killed", Fn: log.task("killed"), Dependencies: []TaskID{c}})
	killed := errors.New("killed")
	err := compile(t, g).Run(t.Context(), Options{Wrap: func(id TaskID, fn TaskFn) TaskFn {
		return func(ctx context.Context) error {
			log.add("before " + string(id))
			if id == "killed" {
				return killed
			}
			return fn(ctx)
		}
	}})
	if want := []string{"before a", "a", "before gathers", "before killed"}; !errors.Is(err, killed) ||
		!slices.Equal(log.names, want) {
		t.Errorf("ran %v, want %v; error %v", log.names, want, err)
	}
}

func TestRetryUntilTimeout(t *testing.T) {
	cause := errors.New("not yet")
	failing := func(times int) (TaskFn, *int) {
		calls := 0
		return func(context.Context) error {
			calls++
			if calls <= times {
				return cause
			}
			return nil
		}, &calls
	}
	t.Run("succeeds in the end", func(t *testing.T) {
		fn, calls := failing(3)
		if err := fn.RetryUntilTimeout(time.Millisecond, time.Minute)(t.Context()); err != nil || *calls != 4 {
			t.Errorf("error %v after %d calls", err, *calls)
		}
	})
	t.Run("gives the last cause when time is over", func(t *testing.T) {
		fn, _ := failing(1 << 30)
		err := fn.RetryUntilTimeout(time.Millisecond, 5*time.Millisecond)(t.Context())
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "not done after 5ms") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("stops with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fn, _ := failing(1 << 30)
		if err := fn.RetryUntilTimeout(time.Hour, 2*time.Hour)(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("does not retry a permanent error", func(t *testing.T) {
		calls := 0
		fn := TaskFn(func(context.Context) error { calls++; return Permanent(cause) })
		if err := fn.RetryUntilTimeout(time.Hour, 2*time.Hour)(t.Context()); !errors.Is(err, cause) || calls != 1 {
			t.Errorf("error %v after %d calls", err, calls)
		}
	})
}

func TestParallelJoinsErrors(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	err := Parallel(
		func(context.Context) error { return one },
		func(context.Context) error { return nil },
		func(context.Context) error { return two },
	)(t.Context())
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("got %v", err)
	}
}

func compile(t *testing.T, g *Graph) *Flow {
	t.Helper()
	f, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// meet runs an exchange that only ends when the other side takes part.
func meet(ctx context.Context, exchange func()) error {
	done := make(chan struct{})
	go func() { exchange(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Second):
		return errors.New("the other task did not run at the same time")
	}
}

type recorder struct {
	mutex sync.Mutex
	names []string
}

func (r *recorder) add(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.names = append(r.names, name)
}

func (r *recorder) task(name string) TaskFn {
	return func(context.Context) error { r.add(name); return nil }
}
