package scheduler

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestSeedsThatMakeADifference(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1beta1.Seed)
		want   bool
	}{
		"a heartbeat":            {func(s *corev1beta1.Seed) { s.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Unix(1, 0)) }, false},
		"an annotation":          {func(s *corev1beta1.Seed) { s.Annotations = map[string]string{"a": "b"} }, false},
		"another specification":  {func(s *corev1beta1.Seed) { s.Generation++ }, true},
		"another label":          {labelled("size", "big"), true},
		"more room":              {room("7"), true},
		"no longer alive":        {func(s *corev1beta1.Seed) { s.Status.Conditions[0].Status = corev1beta1.ConditionUnknown }, true},
		"its buckets are broken": {withBackup(&corev1beta1.Condition{Status: corev1beta1.ConditionFalse}), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := readySeed("a")
			test.change(after)
			if got := changes(seedDiffers).Update(event.UpdateEvent{ObjectOld: readySeed("a"), ObjectNew: after}); got != test.want {
				t.Errorf("passes = %v, want %v", got, test.want)
			}
		})
	}
}

// A garden in which one shoot waits, and another has a seed.
func newGarden() (r *Reconciler, waiting, placed *corev1beta1.Shoot, send func(func(handler.EventHandler, queue)) []string) {
	r = &Reconciler{SchedulerName: corev1beta1.DefaultSchedulerName, usage: newUsage()}
	named := func(name string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Name, s.UID = name, types.UID(name) }
	}
	waiting = newShoot(named("waiting"))
	placed = newShoot(named("placed"), func(s *corev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = ptr.To("a"), ptr.To("a") })
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
	update := func(before, after *corev1beta1.Shoot) func(handler.EventHandler, queue) {
		return func(h handler.EventHandler, q queue) {
			h.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	changed := func(shoot *corev1beta1.Shoot, change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		after := shoot.DeepCopy()
		change(after)
		return after
	}
	tests := map[string]struct {
		trigger func(waiting, placed *corev1beta1.Shoot) func(handler.EventHandler, queue)
		want    []string
	}{
		"a new shoot": {func(_, _ *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return func(h handler.EventHandler, q queue) {
				h.Create(context.Background(), event.CreateEvent{Object: newShoot()}, q)
			}
		}, []string{"member1"}},
		"a new shoot of another scheduler": {func(_, _ *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return func(h handler.EventHandler, q queue) {
				h.Create(context.Background(), event.CreateEvent{Object: newShoot(func(s *corev1beta1.Shoot) { s.Spec.SchedulerName = ptr.To("own") })}, q)
			}
		}, nil},
		"another specification": {func(waiting, _ *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(waiting, changed(waiting, func(s *corev1beta1.Shoot) { s.Generation++ }))
		}, []string{"waiting"}},
		"another status": {func(waiting, _ *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(waiting, changed(waiting, func(s *corev1beta1.Shoot) { s.Status.LastOperation = &corev1beta1.LastOperation{} }))
		}, nil},
		"another shoot is gone": {func(_, placed *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return func(h handler.EventHandler, q queue) {
				h.Delete(context.Background(), event.DeleteEvent{Object: placed}, q)
			}
		}, []string{"waiting"}},
		"another shoot begins to move": {func(_, placed *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(placed, changed(placed, func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") }))
		}, nil},
		"another shoot has left": {func(_, placed *corev1beta1.Shoot) func(handler.EventHandler, queue) {
			return update(placed, changed(placed, func(s *corev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = ptr.To("b"), ptr.To("b") }))
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
