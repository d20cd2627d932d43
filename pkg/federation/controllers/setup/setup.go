// Package setup is how controllers that live in packages of their own are registered with a manager: by a name, with
// settings, and with what they watch.
package setup

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Settings gives those of a controller with a reconciler.
type Settings func(reconcile.Reconciler) controller.Options

// Add registers a controller.
func Add(mgr manager.Manager, name string, options controller.Options, sources ...source.Source) error {
	_, err := New(mgr, name, options, sources...)
	return err
}

// New registers a controller that is given more to watch later.
func New(mgr manager.Manager, name string, options controller.Options,
	sources ...source.Source) (controller.Controller, error) {
	c, err := controller.New(name, mgr, options)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Objects wakes objects of a kind when something of them changes that all predicates let through.
func Objects[T client.Object](objects cache.Cache, kind T, predicates ...predicate.TypedPredicate[T]) source.Source {
	return source.Kind(objects, kind, &handler.TypedEnqueueRequestForObject[T]{}, predicates...)
}

// Specs wakes objects of a kind when they come or go, or their spec changes.
func Specs[T client.Object](objects cache.Cache, kind T) source.Source {
	return Objects(objects, kind, predicate.TypedGenerationChangedPredicate[T]{})
}

// Concerned wakes what an object of another kind concerns, when something of that changes that all predicates let
// through.
func Concerned[T client.Object](objects cache.Cache, kind T, concerned func(context.Context, T) []reconcile.Request,
	predicates ...predicate.TypedPredicate[T]) source.Source {
	return source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(concerned), predicates...)
}
