package scheduler

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestSeedsThatMakeADifference(t *testing.T) {
	tests := map[string]struct {
		change func(*gardencorev1beta1.Seed)
		want   bool
	}{
		"a heartbeat": {func(s *gardencorev1beta1.Seed) {
			s.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Unix(1, 0))
		}, false},
		"an annotation": {
			func(s *gardencorev1beta1.Seed) { s.Annotations = map[string]string{"a": "b"} }, false,
		},
		"another specification": {func(s *gardencorev1beta1.Seed) { s.Generation++ }, true},
		"another label":         {labelled("size", "big"), true},
		"more room":             {room("7"), true},
		"no longer alive": {
			func(s *gardencorev1beta1.Seed) { s.Status.Conditions[0].Status = gardencorev1beta1.ConditionUnknown },
			true,
		},
		"its buckets are broken": {
			withBackup(&gardencorev1beta1.Condition{Status: gardencorev1beta1.ConditionFalse}), true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := readySeed("a")
			test.change(after)
			if got := changes(seedDiffers).Update(event.UpdateEvent{
				ObjectOld: readySeed("a"), ObjectNew: after,
			}); got != test.want {
				t.Errorf("passes = %v, want %v", got, test.want)
			}
		})
	}
}

// A garden in which one shoot waits, and another has a seed.
func newGarden() (r *Reconciler, waiting, placed *gardencorev1beta1.Shoot, send func(func(handler.EventHandler,
	queue)) []string) {
	r = &Reconciler{SchedulerName: gardencorev1beta1.DefaultSchedulerName, usage: newUsage()}
	named := func(name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Name, s.UID = name, types.UID(name) }
	}
	waiting = newShoot(named("waiting"))
	placed = newShoot(named("placed"),
		func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = new("a"), new("a") })
	r.usage.observe(waiting, true)
	r.usage.observe(placed, false)
	return r, waiting, placed, func(trigger func(handler.EventHandler, queue)) []string {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		trigger(r.shootHandler(), q)
		var names []string
		for q.Len() > 0 {
			request, _ := q.Get()
			names = append(names, request.Name)
			q.Done(request)
		}
		return names
	}
}

func TestShootsThatMakeADifference(t *testing.T) {
	update := func(before, after *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
		return func(h handler.EventHandler, q queue) {
			h.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	changed := func(shoot *gardencorev1beta1.Shoot, change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		after := shoot.DeepCopy()
		change(after)
		return after
	}
	tests := map[string]struct {
		trigger func(waiting, placed *gardencorev1beta1.Shoot) func(handler.EventHandler, queue)
		want    []string
	}{
		"a new shoot": {func(_, _ *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return func(h handler.EventHandler, q queue) {
				h.Create(context.Background(), event.CreateEvent{Object: newShoot()}, q)
			}
		}, []string{"member1"}},
		"a new shoot of another scheduler": {func(_, _ *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return func(h handler.EventHandler, q queue) {
				h.Create(context.Background(),
					event.CreateEvent{
						Object: newShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SchedulerName = new("own") }),
					}, q)
			}
		}, nil},
		"another specification": {func(waiting, _ *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(waiting, changed(waiting, func(s *gardencorev1beta1.Shoot) { s.Generation++ }))
		}, []string{"waiting"}},
		"another status": {func(waiting, _ *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(waiting, changed(waiting,
				func(s *gardencorev1beta1.Shoot) { s.Status.LastOperation = &gardencorev1beta1.LastOperation{} }))
		}, nil},
		"another shoot is gone": {func(_, placed *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return func(h handler.EventHandler, q queue) {
				h.Delete(context.Background(), event.DeleteEvent{Object: placed}, q)
			}
		}, []string{"waiting"}},
		"another shoot begins to move": {func(_, placed *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(placed, changed(placed, func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("b") }))
		}, nil},
		"another shoot has left": {func(_, placed *gardencorev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(placed, changed(placed,
				func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = new("b"), new("b") }))
		}, []string{"waiting"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, waiting, placed, send := newGarden()
			if got := send(test.trigger(waiting, placed)); !slices.Equal(got, test.want) {
				t.Errorf("scheduled again: %v, want %v", got, test.want)
			}
		})
	}
}

func TestAShootWithAPromiseDoesNotWait(t *testing.T) {
	r, waiting, _, _ := newGarden()
	if got := r.waitingShoots(context.Background(), nil); len(got) != 1 || got[0].Name != "waiting" {
		t.Fatalf("waiting: %v", got)
	}
	r.usage.promise(waiting, "a")
	if got := r.waitingShoots(context.Background(), nil); len(got) != 0 {
		t.Errorf("waiting: %v, want none", got)
	}
	if got := r.usage.counts()["a"]; got != 2 {
		t.Errorf("seed a has %d, want 2", got)
	}
}
