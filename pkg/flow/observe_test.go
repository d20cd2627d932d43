package flow

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// listener writes down what it is told.
type listener struct {
	mu   sync.Mutex
	told []string
}

func (l *listener) note(text string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		text += ": " + err.Error()
	}
	l.told = append(l.told, text)
}

func (l *listener) Started(id TaskID)              { l.note("started "+string(id), nil) }
func (l *listener) Awaits(id TaskID, reason error) { l.note("awaits "+string(id), reason) }
func (l *listener) Ended(id TaskID, err error)     { l.note("ended "+string(id), err) }
func awaiting(ctx context.Context, reason string)  { Awaits(ctx, errors.New(reason)) }
func succeeding(context.Context) error             { return nil }
func failing(text string) func(ctx context.Context) error {
	return func(context.Context) error { return errors.New(text) }
}

// Everything about a task is told, in its order: when it begins, what it waits for, why a try of it failed, its end.
func TestObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		g := NewGraph("test")
		first := g.Add(Task{Name: "first", Fn: TaskFn(func(ctx context.Context) error {
			if tries++; tries == 1 {
				return errors.New("too early")
			}
			awaiting(ctx, "its pods")
			return nil
		}).RetryUntilTimeout(time.Second, time.Minute)})
		left := g.Add(Task{Name: "left out", SkipIf: true, Fn: failing("never"), Dependencies: []TaskID{first}})
		bad := g.Add(Task{Name: "bad", Fn: failing("broken"), Dependencies: []TaskID{left}})
		g.Add(Task{Name: "never", Fn: succeeding, Dependencies: []TaskID{bad}})
		l := &listener{}
		if err := compile(t, g).Run(t.Context(), Options{Observer: l}); err == nil {
			t.Error("the run has not failed")
		}
		want := []string{
			"started first", "awaits first: too early", "awaits first: its pods", "ended first", "started bad",
			"ended bad: broken",
		}
		if !slices.Equal(l.told, want) {
			t.Errorf("told %q, want %q", l.told, want)
		}
	})
}

// What is awaited is told to nobody where nobody looks on, nor after the task's time is over.
func TestAwaitsWithoutObserver(t *testing.T) {
	awaiting(t.Context(), "nothing")
	l := &listener{}
	ctx, cancel := context.WithCancel((&run{opts: Options{Observer: l}}).observed(t.Context(), "a"))
	cancel()
	awaiting(ctx, "too late")
	if len(l.told) > 0 {
		t.Errorf("told %q", l.told)
	}
}

func TestNodes(t *testing.T) {
	g := NewGraph("test")
	g.Add(Task{Name: "b", SkipIf: true, Dependencies: []TaskID{"a"}})
	g.Add(Task{Name: "a"})
	want := []Node{{ID: "a"}, {ID: "b", Skipped: true, Dependencies: []TaskID{"a"}}}
	if got := compile(t, g).Nodes(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
