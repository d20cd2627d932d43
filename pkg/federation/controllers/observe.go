package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
)

// observeBindings has the reservations observe all bindings. The result tells whether it has seen those that there were
// at the start: before that nothing may be promised.
func observeBindings(ctx context.Context, informers cache.Cache,
	l *reservations.Reservations) (observed func() bool, err error) {
	var handlers []toolscache.ResourceEventHandlerRegistration
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching bindings: %w", err)
		}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { observe(l, object) },
			UpdateFunc: func(_, object any) { observe(l, object) },
			DeleteFunc: func(object any) { forget(l, object) },
		})
		if err != nil {
			return nil, fmt.Errorf("watching bindings: %w", err)
		}
		handlers = append(handlers, handler)
	}
	return func() bool {
		for _, handler := range handlers {
			if !handler.HasSynced() {
				return false
			}
		}
		return true
	}, nil
}

func observe(l *reservations.Reservations, object any) {
	b, ok := object.(bindings.Binding)
	if !ok || !karmada.IsWorkload(b.BindingSpec()) {
		return
	}
	l.Observe(types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}, observationOf(b))
}

func forget(l *reservations.Reservations, object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if b, ok := object.(bindings.Binding); ok {
		l.Forget(types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()})
	}
}

// observationOf a binding itself. What members report comes from its Works.
func observationOf(b bindings.Binding) reservations.Observation {
	spec := b.BindingSpec()
	seen := reservations.Observation{Generation: b.GetGeneration(), Assigned: map[string]int32{}}
	if spec.ReplicaRequirements != nil {
		seen.Request = karmada.Resources(spec.ReplicaRequirements.ResourceRequest)
	}
	unit := karmada.Unit(spec)
	if unit != nil {
		seen.Request = core.RequestOf(unit)
	}
	for _, target := range bindings.Targets(spec) {
		seen.Assigned[target.Name] = target.Replicas
		if unit != nil {
			// A set of components counts as one replica.
			seen.Assigned[target.Name] = 1
		}
	}
	return seen
}
