package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/ledger"
)

// observeBindings has a ledger observe all bindings. The result tells whether it has seen those that there were at the start:
// before that nothing may be promised.
func observeBindings(ctx context.Context, informers cache.Cache, l *ledger.Ledger) (observed func() bool, err error) {
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

func observe(l *ledger.Ledger, object any) {
	b, ok := object.(bindings.Binding)
	if !ok || !karmada.IsWorkload(b.BindingSpec()) {
		return
	}
	l.Observe(types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}, observationOf(b))
}

func forget(l *ledger.Ledger, object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if b, ok := object.(bindings.Binding); ok {
		l.Forget(types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()})
	}
}

func observationOf(b bindings.Binding) ledger.Observation {
	spec := b.BindingSpec()
	seen := ledger.Observation{Generation: b.GetGeneration(), Assigned: map[string]int32{}, Reported: map[string]int32{}}
	if spec.ReplicaRequirements != nil {
		seen.Request = karmada.Resources(spec.ReplicaRequirements.ResourceRequest)
	}
	if unit := karmada.Unit(spec); unit != nil {
		return observationOfUnit(b, unit, seen)
	}
	for _, target := range bindings.Targets(spec) {
		seen.Assigned[target.Name] = target.Replicas
	}
	for _, item := range b.BindingStatus().AggregatedStatus {
		if replicas, known := reportedReplicas(item, seen.Assigned[item.ClusterName]); known {
			seen.Reported[item.ClusterName] = replicas
		}
	}
	return seen
}

// observationOfUnit: a set of components counts as one replica, which runs when the object is healthy.
func observationOfUnit(b bindings.Binding, unit []core.Component, seen ledger.Observation) ledger.Observation {
	seen.Request = core.RequestOf(unit)
	for _, target := range bindings.Targets(b.BindingSpec()) {
		seen.Assigned[target.Name] = 1
	}
	for _, item := range b.BindingStatus().AggregatedStatus {
		if item.Health == workv1alpha2.ResourceHealthy {
			seen.Reported[item.ClusterName] = seen.Assigned[item.ClusterName]
		}
	}
	return seen
}

// reportedReplicas are those whose pods a member says to have. Of kinds whose status has no such number, a healthy object
// has all of its pods.
func reportedReplicas(item workv1alpha2.AggregatedStatusItem, assigned int32) (replicas int32, known bool) {
	var status struct {
		Replicas  *int32 `json:"replicas"`
		Active    int32  `json:"active"`
		Succeeded int32  `json:"succeeded"`
		Failed    int32  `json:"failed"`
	}
	if item.Status != nil && json.Unmarshal(item.Status.Raw, &status) == nil {
		switch {
		case status.Replicas != nil:
			return *status.Replicas, true
		case status.Active+status.Succeeded+status.Failed > 0:
			// What ended takes no room any more, and what it took is not asked for again.
			return min(assigned, status.Active+status.Succeeded+status.Failed), true
		}
	}
	return assigned, item.Health == workv1alpha2.ResourceHealthy
}
