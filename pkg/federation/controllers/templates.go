package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/dependencies"
)

// templateWatches watches the kinds that policies select, from the moment on that the first one does.
type templateWatches struct {
	cache       cache.Cache
	propagation controller.TypedController[bindings.TemplateKey]
	works       controller.Controller
	// others watch the kind as well.
	others []func(schema.GroupVersionKind) error

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

func newTemplateWatches(cache cache.Cache, propagation controller.TypedController[bindings.TemplateKey],
	works controller.Controller, others ...func(schema.GroupVersionKind) error) *templateWatches {
	return &templateWatches{
		cache: cache, propagation: propagation, works: works, others: others,
		watched: map[schema.GroupVersionKind]bool{},
	}
}

// ensure starts the watch of a kind. A kind that doesn't exist yet is waited for in the background.
func (w *templateWatches) ensure(gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[gvk] {
		return nil
	}
	toPropagation := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context,
		object *unstructured.Unstructured) []bindings.TemplateKey {
		return []bindings.TemplateKey{bindings.TemplateKeyOf(object, gvk)}
	})
	if err := w.propagation.Watch(dependencies.Unhurried(source.TypedKind(w.cache, kindObject(gvk),
		toPropagation))); err != nil {
		return fmt.Errorf("watching %s: %w", gvk, err)
	}
	if err := w.works.Watch(dependencies.Unhurried(source.TypedKind(w.cache, kindObject(gvk),
		toBinding(gvk)))); err != nil {
		return fmt.Errorf("watching %s: %w", gvk, err)
	}
	for _, watch := range w.others {
		if err := watch(gvk); err != nil {
			return fmt.Errorf("watching %s: %w", gvk, err)
		}
	}
	w.watched[gvk] = true
	return nil
}

// kinds that are watched.
func (w *templateWatches) kinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.watched))
}

// toBinding wakes the binding of an object that changed.
func toBinding(gvk schema.GroupVersionKind) handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request] {
	return handler.TypedFuncs[*unstructured.Unstructured, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			request := requestFor(e.ObjectNew)
			request.Name = bindings.Name(request.Name, gvk.Kind)
			queue.Add(request)
		},
	}
}

func kindObject(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// list gives the objects of a kind, of one namespace or, if that is empty, of all. A kind that isn't there has none.
func (w *templateWatches) list(ctx context.Context, gvk schema.GroupVersionKind,
	namespace string) ([]bindings.TemplateKey, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := w.cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if isNoMatch(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk, err)
	}
	keys := make([]bindings.TemplateKey, len(list.Items))
	for i := range list.Items {
		keys[i] = bindings.TemplateKeyOf(&list.Items[i], gvk)
	}
	return keys, nil
}
