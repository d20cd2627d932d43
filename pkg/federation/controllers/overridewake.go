package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/wake"
)

func specOfOverridePolicy(p *policyv1alpha1.OverridePolicy) *policyv1alpha1.OverrideSpec {
	return &p.Spec
}

func specOfClusterOverridePolicy(p *policyv1alpha1.ClusterOverridePolicy) *policyv1alpha1.OverrideSpec {
	return &p.Spec
}

// overrideChanged wakes the bindings whose objects an override policy selects, or selected before it changed.
func overrideChanged[P client.Object](reader client.Reader, index *wake.Index,
	specOf func(P) *policyv1alpha1.OverrideSpec) handler.TypedEventHandler[P, reconcile.Request] {
	wakeAll := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], versions ...P) {
		woken := sets.Set[types.NamespacedName]{}
		for _, policy := range versions {
			woken = woken.Union(selectedBy(ctx, reader, index,
				overrides.Policy{Namespace: policy.GetNamespace(), Name: policy.GetName(), Spec: specOf(policy)}))
		}
		for key := range woken {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.TypedFuncs[P, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[P],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wakeAll(ctx, queue, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[P],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wakeAll(ctx, queue, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[P],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wakeAll(ctx, queue, e.Object)
		},
	}
}

// selectedBy lists the bindings of objects that a policy selects. Objects that cannot be read are woken too.
func selectedBy(ctx context.Context, reader client.Reader, index *wake.Index,
	policy overrides.Policy) sets.Set[types.NamespacedName] {
	result := sets.Set[types.NamespacedName]{}
	for _, key := range candidatesOf(index, policy) {
		if policy.Namespace != "" && key.Namespace != policy.Namespace {
			continue
		}
		b, err := bindings.Get(ctx, reader, key)
		if err != nil || b == nil {
			continue
		}
		template, err := bindings.GetTemplate(ctx, reader, bindings.TemplateOf(b))
		if err != nil || template != nil && policy.Selects(template) {
			result.Insert(key)
		}
	}
	return result
}

// candidatesOf are the bindings of the kinds that a policy names; all if it has no selectors.
func candidatesOf(index *wake.Index, policy overrides.Policy) []types.NamespacedName {
	if len(policy.Spec.ResourceSelectors) == 0 {
		return index.All()
	}
	var keys []types.NamespacedName
	seen := sets.Set[string]{}
	for _, s := range policy.Spec.ResourceSelectors {
		if kind := s.APIVersion + "/" + s.Kind; !seen.Has(kind) {
			seen.Insert(kind)
			keys = append(keys, index.OfKind(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))...)
		}
	}
	return keys
}
