package priorityqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func key(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func request(name string) reconcile.Request { return reconcile.Request{NamespacedName: key(name)} }

func newQueue(t *testing.T, priorities *Priorities) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := priorities.Queue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	return queue
}

// take gives the names of so many items, all of which are worked on at the same time.
func take(queue workqueue.TypedRateLimitingInterface[reconcile.Request], n int) []string {
	var names []string
	for range n {
		item, _ := queue.Get()
		names = append(names, item.Name)
	}
	return names
}

func TestTheMostUrgentComesFirst(t *testing.T) {
	priorities := New()
	queue := newQueue(t, priorities)
	for i, priority := range []int32{0, 5, -1, 0, 1000, 5} {
		name := fmt.Sprint(i)
		priorities.Set(key(name), priority)
		queue.Add(request(name))
	}
	priorities.Set(key("0"), 7)
	queue.Add(request("0")) // It became more urgent while it waited, and is in the queue once.
	if got := take(queue, 6); !slices.Equal(got, []string{"4", "0", "1", "5", "3", "2"}) {
		t.Errorf("got %v", got)
	}
}

func TestABindingIsNotHandedOutWhileItIsWorkedOn(t *testing.T) {
	priorities := New()
	queue := newQueue(t, priorities)
	priorities.Set(key("a"), 9)
	queue.Add(request("a"))
	take(queue, 1)
	queue.Add(request("a"))
	queue.Add(request("b"))
	if got := take(queue, 1); got[0] != "b" {
		t.Errorf("got %v", got)
	}
	queue.Done(request("a"))
	if got := take(queue, 1); got[0] != "a" {
		t.Errorf("got %v", got)
	}
}

func TestTheLessUrgentWaitForDecisionsUnderway(t *testing.T) {
	priorities := New()
	queue := newQueue(t, priorities)
	for name, priority := range map[string]int32{"low": 0, "middle": 1, "high": 2} {
		priorities.Set(key(name), priority)
		queue.Add(request(name))
	}
	take(queue, 3)
	priorities.Set(key("low"), 3) // What was taken keeps its turn.
	var order []string
	done := make(chan string)
	for _, name := range []string{"low", "middle", "high"} {
		go func() {
			if err := priorities.Await(t.Context(), key(name), 0); err != nil {
				t.Error(err)
			}
			done <- name
		}()
	}
	for range 3 {
		name := <-done
		order = append(order, name)
		priorities.Decided(key(name))
	}
	if !slices.Equal(order, []string{"high", "middle", "low"}) {
		t.Errorf("decided in the order %v", order)
	}
}

func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	priorities := New()
	queue := newQueue(t, priorities)
	priorities.Set(key("high"), 2)
	queue.Add(request("high"))
	take(queue, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := priorities.Await(ctx, key("new"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := priorities.Await(ctx, key("new"), 2); err != nil {
		t.Errorf("as urgent as the other: %v", err)
	}
}

func TestThoseThatWaitForRoomAreTriedInOrder(t *testing.T) {
	priorities := New()
	priorities.Set(key("urgent"), 1)
	for _, name := range []string{"first", "second", "third", "urgent", "gone"} {
		priorities.Wait(key(name), priorities.Try())
	}
	priorities.Wait(key("first"), priorities.Try()) // Once more in vain: it has waited all the time.
	priorities.Rest(key("second"))
	priorities.Forget(key("gone"))
	want := []types.NamespacedName{key("urgent"), key("first"), key("third")}
	if got := priorities.Waiting(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := priorities.Sort([]types.NamespacedName{key("third"), key("first"), key("urgent")}); !slices.Equal(got,
		want) {
		t.Errorf("sorted: %v", got)
	}
}

// Who has waited, and finds room, lets the more urgent be tried first that were tried before the room was there: once
// they have been, it takes what is left.
func TestWhoHasWaitedYieldsToTheMoreUrgent(t *testing.T) {
	priorities := New()
	for name, priority := range map[string]int32{"low": -5, "other low": -5, "usual": 10, "urgent": 1000} {
		priorities.Set(key(name), priority)
	}
	ahead := func(name string, try uint64, want ...string) {
		t.Helper()
		var got []string
		for _, other := range priorities.Ahead(key(name), try) {
			got = append(got, other.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"other low", "low", "usual", "urgent"} {
		priorities.Wait(key(name), priorities.Try())
	}
	ahead("never waited", priorities.Try())
	first := priorities.Try()
	ahead("low", first, "urgent", "usual")
	// Usual was underway with what it knew of before; urgent is tried since.
	priorities.Wait(key("urgent"), priorities.Try())
	ahead("low", priorities.Try(), "usual")
	priorities.Wait(key("usual"), priorities.Try())
	ahead("low", priorities.Try())
	priorities.Rest(key("low"))

	// The most urgent has nobody ahead, and who has none of the room next time has waited for other room.
	ahead("urgent", priorities.Try())
	ahead("other low", priorities.Try(), "urgent", "usual")
	priorities.Wait(key("other low"), priorities.Try())
	ahead("other low", priorities.Try(), "urgent", "usual")
}

// Others that are not tried, for whatever reason, keep nobody from room for ever, and not all are tried for each one.
func TestYieldingIsBounded(t *testing.T) {
	priorities := New()
	priorities.Wait(key("low"), priorities.Try())
	for i := range 2 * maxAhead {
		name := fmt.Sprint(i)
		priorities.Set(key(name), int32(i+1))
		priorities.Wait(key(name), priorities.Try())
	}
	for range maxYields {
		if got := priorities.Ahead(key("low"), priorities.Try()); len(got) != maxAhead ||
			got[0].Name != fmt.Sprint(2*maxAhead-1) {
			t.Errorf("got %v", got)
		}
	}
	if got := priorities.Ahead(key("low"), priorities.Try()); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
