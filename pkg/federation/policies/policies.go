// Package policies tells which propagation policy an object of the fleet has, and what its binding says then. The
// fleet's controllers act on it; clients ask it what would become of an object. Nothing here writes to the fleet.
package policies

import (
	"cmp"
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

// Policy is a propagation policy of either scope; the namespace of cluster-wide ones is empty.
type Policy struct {
	client.Object
	Spec *policyv1alpha1.PropagationSpec
}

// Of gives the policy that an object is; false for objects of other kinds.
func Of(object client.Object) (Policy, bool) {
	switch p := object.(type) {
	case *policyv1alpha1.PropagationPolicy:
		return Policy{p, &p.Spec}, true
	case *policyv1alpha1.ClusterPropagationPolicy:
		return Policy{p, &p.Spec}, true
	}
	return Policy{}, false
}

// Namespaced tells the scope.
func (p Policy) Namespaced() bool { return p.GetNamespace() != "" }

// String names the policy for messages.
func (p Policy) String() string {
	if p.Namespaced() {
		return "PropagationPolicy " + p.GetNamespace() + "/" + p.GetName()
	}
	return "ClusterPropagationPolicy " + p.GetName()
}

// Priority is 0 by default.
func (p Policy) Priority() int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// Kinds that the policy selects.
func (p Policy) Kinds() sets.Set[schema.GroupVersionKind] {
	result := sets.Set[schema.GroupVersionKind]{}
	for _, s := range p.Spec.ResourceSelectors {
		result.Insert(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
	}
	return result
}

// Selects tells whether the policy is about an object.
func (p Policy) Selects(object *unstructured.Unstructured) bool {
	return selector.Best(p.Spec.ResourceSelectors, p.GetNamespace(), object) != selector.NoMatch
}

// Choose finds the policy that an object is propagated by. One that has claimed it already keeps it, unless it
// matches no more or another one may preempt it. Otherwise namespaced policies come before cluster-wide ones, then
// the higher priority, the closer selector and the smaller name.
func Choose(policies []Policy, object *unstructured.Unstructured, existing bindings.Binding) *Policy {
	candidates, holder := rankedFor(policies, object, existing)
	if holder != nil {
		candidates = slices.DeleteFunc(candidates, func(c rankedPolicy) bool { return !preempts(c.Policy, holder) })
	}
	if len(candidates) == 0 {
		return holder
	}
	return slices.MinFunc(candidates, compareRanked).Policy
}

// rankedFor gives the policies that select an object, and the one of them that has it; nil if none has.
func rankedFor(policies []Policy, object *unstructured.Unstructured,
	existing bindings.Binding) (candidates []rankedPolicy, holder *Policy) {
	for i := range policies {
		rank := selector.Best(policies[i].Spec.ResourceSelectors, policies[i].GetNamespace(), object)
		if rank == selector.NoMatch {
			continue
		}
		candidates = append(candidates, rankedPolicy{&policies[i], rank})
		if existing != nil && policies[i].Claims(existing) {
			holder = &policies[i]
		}
	}
	return candidates, holder
}

type rankedPolicy struct {
	*Policy
	rank selector.Rank
}

func compareRanked(a, b rankedPolicy) int {
	return cmp.Or(
		cmp.Compare(scopeRank(b.Policy), scopeRank(a.Policy)),
		cmp.Compare(b.Priority(), a.Priority()),
		cmp.Compare(b.rank, a.rank),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

func scopeRank(p *Policy) int {
	if p.Namespaced() {
		return 1
	}
	return 0
}

// preempts tells whether a policy may take an object from the one that has it: a namespaced one from any cluster-wide
// one, others only by a higher priority.
func preempts(challenger, holder *Policy) bool {
	if challenger.Spec.Preemption != policyv1alpha1.PreemptAlways || scopeRank(challenger) < scopeRank(holder) {
		return false
	}
	return scopeRank(challenger) > scopeRank(holder) || challenger.Priority() > holder.Priority()
}
