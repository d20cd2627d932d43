package controllers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func (h *handedOver) AddEventHandler(
	handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	h.handler <- handler
	return nil, nil
}

func (h *handedOver) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return nil
}

func (h *handedOver) IsStopped() bool { return false }

func TestLeavingIsHeardOfAClusterThatIsGone(t *testing.T) {
	here := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	leaving, other := here.DeepCopy(), here.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	other.Name, other.DeletionTimestamp = "other", leaving.DeletionTimestamp
	for name, tc := range map[string]struct {
		event func(toolscache.ResourceEventHandler)
		heard bool
	}{
		"it is there":             {func(h toolscache.ResourceEventHandler) { h.OnAdd(here, true) }, false},
		"it changes":              {func(h toolscache.ResourceEventHandler) { h.OnUpdate(here, here) }, false},
		"another one leaves":      {func(h toolscache.ResourceEventHandler) { h.OnUpdate(other, other) }, false},
		"vanished, for no reason": {func(h toolscache.ResourceEventHandler) { h.OnDelete(here) }, false},
		"it was leaving already":  {func(h toolscache.ResourceEventHandler) { h.OnAdd(leaving, true) }, true},
		"it is to leave":          {func(h toolscache.ResourceEventHandler) { h.OnUpdate(here, leaving) }, true},
		"it has left":             {func(h toolscache.ResourceEventHandler) { h.OnDelete(leaving) }, true},
		"it left unseen": {func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "one", Obj: leaving})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				informers := &handedOver{handler: make(chan toolscache.ResourceEventHandler)}
				var calls int
				f := &leavingWatch{cache: informers, retry: time.Second,
					agent: AgentOptions{Name: "one", Leaving: func(context.Context) error {
						if calls++; calls == 1 {
							return errors.New("not now")
						}
						return nil
					}}}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- f.Start(ctx) }()
				tc.event(<-informers.handler)
				time.Sleep(time.Minute)
				synctest.Wait()
				if want := map[bool]int{true: 2}[tc.heard]; calls != want {
					t.Errorf("called %d times, want %d", calls, want)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
