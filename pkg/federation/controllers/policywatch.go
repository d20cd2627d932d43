package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
	"github.com/trellis-garden/trellis/pkg/federation/selector"
)

// policyWatch sees to it that the objects that a policy concerns are watched, and looked at when the policy changes.
// A request without namespace stands for a cluster-wide policy.
type policyWatch struct {
	client    client.Client
	mapper    meta.RESTMapper
	events    events.EventRecorder
	templates *templateWatches
	// wake has objects looked at.
	wake *inlet[bindings.TemplateKey]
}

// Reconcile handles one policy.
func (w *policyWatch) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policy, err := w.get(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := w.wakeClaimed(ctx, policy); err != nil || policy.Spec == nil {
		return reconcile.Result{}, err
	}
	w.tellUnknownKinds(policy)
	if err := w.tellProblemsOfWaves(ctx, policy); err != nil {
		return reconcile.Result{}, err
	}
	for gvk := range policy.Kinds() {
		if err := w.templates.ensure(gvk); err != nil {
			return reconcile.Result{}, err
		}
		keys, err := w.templates.list(ctx, gvk, policy.GetNamespace())
		if err != nil {
			return reconcile.Result{}, err
		}
		w.wake.add(keys...)
	}
	return reconcile.Result{}, nil
}

// tellUnknownKinds of a policy.
func (w *policyWatch) tellUnknownKinds(policy policies.Policy) {
	serves := func(kind schema.GroupVersionKind) bool {
		_, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return !isNoMatch(err)
	}
	w.warn(policy, "KindNotServed", selector.Unserved(policy.Spec.ResourceSelectors, serves))
}

// tellProblemsOfWaves tells of waves that name clusters that aren't there, or that come too late for them.
func (w *policyWatch) tellProblemsOfWaves(ctx context.Context, policy policies.Policy) error {
	if policy.Spec.Rollout == nil {
		return nil
	}
	var clusters clusterv1alpha1.ClusterList
	if err := w.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	var fleet []core.Cluster
	for i := range clusters.Items {
		fleet = append(fleet, karmada.Identity(&clusters.Items[i]))
	}
	w.warn(policy, "RolloutWaves", rollout.Problems(policy.Spec.Rollout, core.NewSnapshot(fleet)))
	return nil
}

// warn makes one event of all problems: of several about the same version of an object, with the same reason, only the
// first is kept.
func (w *policyWatch) warn(policy policies.Policy, reason string, problems []string) {
	if len(problems) > 0 {
		// Events hold 1024 characters.
		w.events.Eventf(policy.Object, nil, corev1.EventTypeWarning, reason, "Propagate", "%.1000s",
			strings.Join(problems, "; "))
	}
}

// get gives a policy without spec when there is none of that name any more.
func (w *policyWatch) get(ctx context.Context, key types.NamespacedName) (policies.Policy, error) {
	if key.Namespace == "" {
		policy := &policyv1alpha1.ClusterPropagationPolicy{}
		policy.Name = key.Name
		if err := w.client.Get(ctx, key, policy); err != nil {
			return policies.Policy{Object: policy}, client.IgnoreNotFound(err)
		}
		return policies.Policy{Object: policy, Spec: &policy.Spec}, nil
	}
	policy := &policyv1alpha1.PropagationPolicy{}
	policy.Namespace, policy.Name = key.Namespace, key.Name
	if err := w.client.Get(ctx, key, policy); err != nil {
		return policies.Policy{Object: policy}, client.IgnoreNotFound(err)
	}
	return policies.Policy{Object: policy, Spec: &policy.Spec}, nil
}

func (w *policyWatch) wakeClaimed(ctx context.Context, policy policies.Policy) error {
	all, err := bindings.List(ctx, w.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for _, b := range all {
		if policy.Claims(b) {
			w.wake.add(bindings.TemplateOf(b))
		}
	}
	return nil
}
