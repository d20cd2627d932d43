package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/selector"
)

// propagationPolicy is a policy of either scope; the namespace of cluster-wide ones is empty.
type propagationPolicy struct {
	client.Object
	spec *policyv1alpha1.PropagationSpec
}

func listPropagationPolicies(ctx context.Context, reader client.Reader) ([]propagationPolicy, error) {
	var namespaced policyv1alpha1.PropagationPolicyList
	var clusterWide policyv1alpha1.ClusterPropagationPolicyList
	if err := reader.List(ctx, &namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PropagationPolicies: %w", err)
	}
	if err := reader.List(ctx, &clusterWide, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterPropagationPolicies: %w", err)
	}
	var result []propagationPolicy
	for i := range namespaced.Items {
		result = append(result, propagationPolicy{&namespaced.Items[i], &namespaced.Items[i].Spec})
	}
	for i := range clusterWide.Items {
		result = append(result, propagationPolicy{&clusterWide.Items[i], &clusterWide.Items[i].Spec})
	}
	return slices.DeleteFunc(result, func(p propagationPolicy) bool { return p.GetDeletionTimestamp() != nil }), nil
}

func (p propagationPolicy) namespaced() bool { return p.GetNamespace() != "" }

func (p propagationPolicy) priority() int32 {
	if p.spec.Priority == nil {
		return 0
	}
	return *p.spec.Priority
}

// kinds that the policy selects.
func (p propagationPolicy) kinds() sets.Set[schema.GroupVersionKind] {
	result := sets.Set[schema.GroupVersionKind]{}
	for _, s := range p.spec.ResourceSelectors {
		result.Insert(kindOfSelector(s))
	}
	return result
}

func kindOfSelector(s policyv1alpha1.ResourceSelector) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
}

// claim marks a binding as made for this policy.
func (p propagationPolicy) claim(b bindings.Binding) {
	if p.namespaced() {
		bindings.SetLabel(b, policyv1alpha1.PropagationPolicyPermanentIDLabel, string(p.GetUID()))
		bindings.SetAnnotation(b, policyv1alpha1.PropagationPolicyNamespaceAnnotation, p.GetNamespace())
		bindings.SetAnnotation(b, policyv1alpha1.PropagationPolicyNameAnnotation, p.GetName())
		bindings.RemoveMarks(b, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyNameAnnotation)
		return
	}
	bindings.SetLabel(b, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, string(p.GetUID()))
	bindings.SetAnnotation(b, policyv1alpha1.ClusterPropagationPolicyNameAnnotation, p.GetName())
	bindings.RemoveMarks(b, policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.PropagationPolicyNamespaceAnnotation, policyv1alpha1.PropagationPolicyNameAnnotation)
}

// removeClaims takes the marks of any policy away.
func removeClaims(b bindings.Binding) {
	bindings.RemoveMarks(b, policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.PropagationPolicyNamespaceAnnotation, policyv1alpha1.PropagationPolicyNameAnnotation,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyNameAnnotation, policyv1alpha1.AppliedPlacementAnnotation, activatedTemplateAnnotation)
}

// isClaimed tells whether any policy has claimed the binding.
func isClaimed(b bindings.Binding) bool {
	a := b.GetAnnotations()
	return a[policyv1alpha1.PropagationPolicyNameAnnotation] != "" || a[policyv1alpha1.ClusterPropagationPolicyNameAnnotation] != ""
}

// claims tells whether the binding was made for this policy.
func (p propagationPolicy) claims(b bindings.Binding) bool {
	a := b.GetAnnotations()
	if p.namespaced() {
		return a[policyv1alpha1.PropagationPolicyNamespaceAnnotation] == p.GetNamespace() && a[policyv1alpha1.PropagationPolicyNameAnnotation] == p.GetName()
	}
	return a[policyv1alpha1.ClusterPropagationPolicyNameAnnotation] == p.GetName()
}

// choosePolicy finds the policy that an object is propagated by. One that has claimed it already keeps it, unless it
// matches no more or another one may preempt it. Otherwise namespaced policies come before cluster-wide ones, then
// the higher priority, the closer selector and the smaller name.
func choosePolicy(policies []propagationPolicy, object *unstructured.Unstructured, existing bindings.Binding) *propagationPolicy {
	var current *propagationPolicy
	var candidates []rankedPolicy
	for i := range policies {
		rank := selector.Best(policies[i].spec.ResourceSelectors, policies[i].GetNamespace(), object)
		if rank == selector.NoMatch {
			continue
		}
		candidates = append(candidates, rankedPolicy{&policies[i], rank})
		if existing != nil && policies[i].claims(existing) {
			current = &policies[i]
		}
	}
	if current != nil {
		candidates = slices.DeleteFunc(candidates, func(c rankedPolicy) bool { return !preempts(c.propagationPolicy, current) })
	}
	if len(candidates) == 0 {
		return current
	}
	return slices.MinFunc(candidates, compareRanked).propagationPolicy
}

type rankedPolicy struct {
	*propagationPolicy
	rank selector.Rank
}

func compareRanked(a, b rankedPolicy) int {
	return cmp.Or(
		cmp.Compare(scopeRank(b.propagationPolicy), scopeRank(a.propagationPolicy)),
		cmp.Compare(b.priority(), a.priority()),
		cmp.Compare(b.rank, a.rank),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

func scopeRank(p *propagationPolicy) int {
	if p.namespaced() {
		return 1
	}
	return 0
}

// preempts tells whether a policy may take an object from the one that has it: a namespaced one from any cluster-wide
// one, others only by a higher priority.
func preempts(challenger, holder *propagationPolicy) bool {
	if challenger.spec.Preemption != policyv1alpha1.PreemptAlways || scopeRank(challenger) < scopeRank(holder) {
		return false
	}
	return scopeRank(challenger) > scopeRank(holder) || challenger.priority() > holder.priority()
}
