package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// handedOver gives away who wants to hear of events.
type handedOver struct {
	cache.Cache
	cache.Informer
	handler chan toolscache.ResourceEventHandler
}

func (h *handedOver) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return h, nil
}

func (h *handedOver) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	_ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	h.handler <- handler
	return h, nil
}

func (h *handedOver) WaitForCacheSync(context.Context) bool { return true }

func (h *handedOver) HasSynced() bool { return true }

func TestLeavingIsHeardOfAClusterThatIsGone(t *testing.T) {
	here := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	leaving, other := here.DeepCopy(), here.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	other.Name, other.DeletionTimestamp = "other", leaving.DeletionTimestamp
	for name, tc := range map[string]struct {
		event func(toolscache.ResourceEventHandler)
		heard int
	}{
		"it is there":             {func(h toolscache.ResourceEventHandler) { h.OnAdd(here, true) }, 0},
		"it changes":              {func(h toolscache.ResourceEventHandler) { h.OnUpdate(here, here) }, 0},
		"another one leaves":      {func(h toolscache.ResourceEventHandler) { h.OnUpdate(other, other) }, 0},
		"vanished, for no reason": {func(h toolscache.ResourceEventHandler) { h.OnDelete(here) }, 0},
		"it was leaving already":  {func(h toolscache.ResourceEventHandler) { h.OnAdd(leaving, true) }, 1},
		"it is to leave":          {func(h toolscache.ResourceEventHandler) { h.OnUpdate(here, leaving) }, 1},
		"it has left":             {func(h toolscache.ResourceEventHandler) { h.OnDelete(leaving) }, 1},
		"it left unseen": {func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "one", Obj: leaving})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			informers := &handedOver{handler: make(chan toolscache.ResourceEventHandler)}
			queue := workqueue.NewTypedRateLimitingQueue(rateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			if err := leaves(informers, "one").Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			tc.event(<-informers.handler)
			if got := queue.Len(); got != tc.heard {
				t.Errorf("woken %d times, want %d", got, tc.heard)
			}
		})
	}
}

func TestLeavingIsNotedUntilItWorks(t *testing.T) {
	var calls int
	r := noteLeaving(AgentOptions{Name: "one", Leaving: func(context.Context) error {
		if calls++; calls == 1 {
			return errors.New("not now")
		}
		return nil
	}})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("a failure is not tried again")
	}
	if result, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil || !result.IsZero() || calls != 2 {
		t.Errorf("%v, %v after %d calls", result, err, calls)
	}
}
