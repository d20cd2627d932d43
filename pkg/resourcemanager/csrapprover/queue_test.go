package csrapprover

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestQueueIsBoundedAndTakesWhatItLeftOutLater(t *testing.T) {
	q := newQueue()
	defer q.work.ShutDown()
	for i := range maxPending + 10 {
		q.add(fmt.Sprint(i), candidate{uid: types.UID(fmt.Sprint(i))})
	}
	if len(q.held) != maxPending {
		t.Fatalf("holds %d, want %d", len(q.held), maxPending)
	}
	for i := range maxPending / 2 {
		select {
		case <-q.room:
			t.Fatalf("room after %d are gone", i)
		default:
		}
		q.forget(fmt.Sprint(i))
	}
	select {
	case <-q.room:
	default:
		t.Error("nobody is told that there is room again")
	}
}

func TestQueueKeepsCountOfTheSameRequestOnly(t *testing.T) {
	q := newQueue()
	defer q.work.ShutDown()
	q.add("a", candidate{uid: "1"})
	q.again("a")
	q.again("gone")
	q.add("a", candidate{uid: "1"})
	if got, _ := q.get("a"); got.tries != 1 {
		t.Errorf("an event of the same request starts its tries anew: %d", got.tries)
	}
	q.add("a", candidate{uid: "2"})
	if got, _ := q.get("a"); got.tries != 0 || got.uid != "2" {
		t.Errorf("another request of the same name is %+v", got)
	}
	if _, known := q.get("gone"); known {
		t.Error("what was never added is held")
	}
}
