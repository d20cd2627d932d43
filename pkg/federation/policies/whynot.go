package policies

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/selector"
)

// WhyNot tells why [Choose] gives an object to another policy than this one, and what would have to be changed; it is
// empty if this one is chosen, or doesn't select the object. The policy is known among all by its scope and name.
func (p Policy) WhyNot(policies []Policy, object *unstructured.Unstructured, existing bindings.Binding) string {
	if !p.Selects(object) {
		return ""
	}
	chosen := Choose(policies, object, existing)
	candidates, holder := rankedFor(policies, object, existing)
	var this, other *rankedPolicy
	for i := range candidates {
		switch {
		case candidates[i].Policy == chosen:
			other = &candidates[i]
		case candidates[i].is(p):
			this = &candidates[i]
		}
	}
	if this == nil || other == nil {
		return ""
	}
	if holder != nil && holder != this.Policy && !preempts(this.Policy, holder) {
		return whyNotPreempting(this.Policy, holder)
	}
	return whyBehind(*this, *other)
}

func (p Policy) is(other Policy) bool {
	return p.GetNamespace() == other.GetNamespace() && p.GetName() == other.GetName()
}

// whyNotPreempting tells what a policy lacks to take an object from the one that has it.
func whyNotPreempting(challenger, holder *Policy) string {
	if scopeRank(challenger) < scopeRank(holder) {
		return "an object keeps its namespaced policy: a cluster-wide one cannot take it over"
	}
	var needs []string
	if challenger.Spec.Preemption != policyv1alpha1.PreemptAlways {
		needs = append(needs, "spec.preemption: Always, which asks for a name in each of its spec.resourceSelectors")
	}
	if scopeRank(challenger) == scopeRank(holder) && challenger.Priority() <= holder.Priority() {
		needs = append(needs, fmt.Sprintf("a spec.priority above %d instead of %d", holder.Priority(),
			challenger.Priority()))
	}
	return "an object keeps its policy; to take it over, this one needs " + strings.Join(needs, ", and ")
}

// whyBehind tells by what one policy goes before another one, in the order of compareRanked.
func whyBehind(behind, before rankedPolicy) string {
	switch {
	case scopeRank(behind.Policy) != scopeRank(before.Policy):
		return "a namespaced policy goes before a cluster-wide one"
	case behind.Priority() != before.Priority():
		return fmt.Sprintf("the larger spec.priority goes first: %d, this one has %d", before.Priority(),
			behind.Priority())
	case behind.rank != before.rank:
		return fmt.Sprintf("at the same spec.priority, %d, a policy that selects by %s goes before one that selects "+
			"by %s",
			behind.Priority(), rankNames[before.rank], rankNames[behind.rank])
	}
	return fmt.Sprintf("at the same spec.priority, %d, and equally close selectors, the smaller name goes first",
		behind.Priority())
}

var rankNames = map[selector.Rank]string{selector.ByKind: "kind", selector.ByLabels: "labels", selector.ByName: "name"}
