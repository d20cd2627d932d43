package membership

import (
	"context"
	"errors"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watching is a cache that tells when it is stopped.
type watching struct {
	cache.Cache
	stopped chan struct{}
}

func (w *watching) Start(ctx context.Context) error {
	<-ctx.Done()
	close(w.stopped)
	return nil
}

func TestNamespacesAreWatchedAsLongAsTheyHaveFleets(t *testing.T) {
	var mu sync.Mutex
	started := map[string]*watching{}
	watched := 0
	follow := follow(func(namespace string) (cache.Cache, error) {
		mu.Lock()
		defer mu.Unlock()
		started[namespace] = &watching{stopped: make(chan struct{})}
		return started[namespace], nil
	}, func(cache.Cache) error { watched++; return nil })
	set := func(fleet, namespace string) {
		t.Helper()
		if err := follow(t.Context(), client.ObjectKey{Name: fleet}, namespace); err != nil {
			t.Fatal(err)
		}
	}
	running := func(namespace string) bool {
		select {
		case <-started[namespace].stopped:
			return false
		default:
			return true
		}
	}
	set("first", "garden-a")
	set("first", "garden-a")
	set("second", "garden-a")
	set("third", "garden-b")
	if watched != 2 || len(started) != 2 {
		t.Fatalf("watched %d times, %v: each namespace is watched once", watched, started)
	}
	set("first", "")
	if !running("garden-a") {
		t.Error("a namespace that still has a fleet is not watched any more")
	}
	set("second", "")
	<-started["garden-a"].stopped
	if !running("garden-b") {
		t.Error("another namespace is not watched any more")
	}
	set("unknown", "")
	set("first", "garden-a")
	if watched != 3 {
		t.Error("a namespace that has a fleet again is not watched")
	}
}

func TestFollowReportsFailures(t *testing.T) {
	broken := errors.New("no")
	follow := follow(func(string) (cache.Cache, error) { return nil, broken }, nil)
	for range 2 {
		if err := follow(t.Context(), client.ObjectKey{Name: "fleet"}, "garden-a"); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}
