package fairqueue

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func testQueue(limit int, now *time.Time) *queue[string] {
	return newQueue(Options[string]{
		Lane:  func(item string) string { lane, _, _ := strings.Cut(item, "/"); return lane },
		Limit: limit, Slow: time.Second, Now: func() time.Time { return *now },
	})
}

func mustGet(t *testing.T, q *queue[string], want string) {
	t.Helper()
	if got, shutdown := q.Get(); shutdown || got != want {
		t.Fatalf("got %q (shut down: %v), want %q", got, shutdown, want)
	}
}

func TestLanesTakeTurns(t *testing.T) {
	var now time.Time
	q := testQueue(10, &now)
	for _, item := range []string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"} {
		q.Add(item)
	}
	for _, want := range []string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"} {
		mustGet(t, q, want)
	}
}

func TestLaneHasNoMoreWorkersThanItsLimit(t *testing.T) {
	var now time.Time
	q := testQueue(1, &now)
	for _, item := range []string{"a/1", "a/2", "b/1"} {
		q.Add(item)
	}
	mustGet(t, q, "a/1")
	mustGet(t, q, "b/1")
	q.Done("a/1")
	mustGet(t, q, "a/2")
}

func TestSlowLaneHasOneWorkerUntilItIsQuickAgain(t *testing.T) {
	var now time.Time
	q := testQueue(2, &now)
	for _, item := range []string{"a/1", "a/2", "a/3", "a/4", "a/5"} {
		q.Add(item)
	}
	mustGet(t, q, "a/1")
	now = now.Add(2 * time.Second)
	q.Done("a/1")
	mustGet(t, q, "a/2")
	if l := q.next(); l != nil {
		t.Fatal("a slow lane was given a second worker")
	}
	q.Done("a/2")
	mustGet(t, q, "a/3")
	mustGet(t, q, "a/4")
}

func TestItemIsNotHandedOutTwiceAtATime(t *testing.T) {
	var now time.Time
	q := testQueue(5, &now)
	q.Add("a/1")
	q.Add("a/1")
	mustGet(t, q, "a/1")
	q.Add("a/1")
	q.Add("a/2")
	mustGet(t, q, "a/2")
	if q.Len() != 0 {
		t.Fatalf("%d items wait while a/1 is worked on", q.Len())
	}
	q.Done("a/1")
	mustGet(t, q, "a/1")
}

func TestShutDownEndsWhenAllIsHandedOut(t *testing.T) {
	var now time.Time
	q := testQueue(1, &now)
	q.Add("a/1")
	q.Add("a/2")
	q.ShutDown()
	q.Add("a/3")
	mustGet(t, q, "a/1")
	var wg sync.WaitGroup
	wg.Go(func() {
		item, shutdown := q.Get()
		if shutdown || item != "a/2" {
			t.Errorf("got %q (shut down: %v), want a/2", item, shutdown)
		}
		q.Done(item)
	})
	q.Done("a/1")
	wg.Wait()
	if item, shutdown := q.Get(); !shutdown {
		t.Fatalf("got %q after the end", item)
	}
}
