package membership

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow has the shoots of a fleet's namespace watched as long as there are fleets in it. An empty namespace: the fleet
// is gone.
type Follow func(ctx context.Context, fleet client.ObjectKey, namespace string) error

// followed are the namespaces of the garden that are watched.
type followed struct {
	newCache func(namespace string) (cache.Cache, error)
	watch    func(cache.Cache) error

	mu     sync.Mutex
	fleets map[client.ObjectKey]string
	stops  map[string]context.CancelFunc
}

// follow returns a Follow that watches each namespace through a cache of its own.
func follow(newCache func(namespace string) (cache.Cache, error), watch func(cache.Cache) error) Follow {
	f := &followed{
		newCache: newCache, watch: watch, fleets: map[client.ObjectKey]string{}, stops: map[string]context.CancelFunc{},
	}
	return f.follow
}

func (f *followed) follow(ctx context.Context, fleet client.ObjectKey, namespace string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if former, found := f.fleets[fleet]; found && former != namespace {
		delete(f.fleets, fleet)
		f.stopUnlessUsed(former)
	}
	if namespace == "" {
		return nil
	}
	if err := f.start(ctx, namespace); err != nil {
		return fmt.Errorf("watching the shoots of namespace %s: %w", namespace, err)
	}
	f.fleets[fleet] = namespace
	return nil
}

// start watches a namespace unless it is watched already. What it starts outlives the request.
func (f *followed) start(ctx context.Context, namespace string) error {
	if f.stops[namespace] != nil {
		return nil
	}
	shoots, err := f.newCache(namespace)
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stops[namespace] = stop
	go func() {
		if err := shoots.Start(background); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Watching shoots ended", "namespace", namespace)
		}
	}()
	return f.watch(shoots)
}

func (f *followed) stopUnlessUsed(namespace string) {
	for _, used := range f.fleets {
		if used == namespace {
			return
		}
	}
	f.stops[namespace]()
	delete(f.stops, namespace)
}
