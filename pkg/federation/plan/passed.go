package plan

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

// PassedOver tells of objects that a policy of the documents selects, and that have another policy nevertheless.
type PassedOver struct {
	// Policy that is passed over, such as "PropagationPolicy shop/web".
	Policy string `json:"policy"`
	// Reason why, and what would have to be changed.
	Reason string `json:"reason"`
	// Objects that it doesn't get, in the order of namespace, kind and name.
	Objects []KeptObject `json:"objects"`
}

// KeptObject is one that another policy has, or gets.
type KeptObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Policy that has it, or gets it.
	Policy string `json:"policy"`
}

// passed collects what is passed over, by policy and reason.
type passed map[[2]string][]KeptObject

// of enters the policies of the documents that the object would not have though they select it.
func (p passed) of(proposed, all []policies.Policy, chosen *policies.Policy, object *unstructured.Unstructured,
	existing bindings.Binding) {
	for _, policy := range proposed {
		if reason := policy.WhyNot(all, object, existing); reason != "" {
			key := [2]string{policy.String(), reason}
			p[key] = append(p[key], KeptObject{
				APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(),
				Name: object.GetName(), Policy: chosen.String(),
			})
		}
	}
}

// list them in the order of policies and reasons.
func (p passed) list() []PassedOver {
	var result []PassedOver
	for key, objects := range p {
		slices.SortFunc(objects, func(a, b KeptObject) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
				strings.Compare(a.Name, b.Name), strings.Compare(a.APIVersion, b.APIVersion))
		})
		result = append(result, PassedOver{Policy: key[0], Reason: key[1], Objects: objects})
	}
	slices.SortFunc(result, func(a, b PassedOver) int {
		return cmp.Or(strings.Compare(a.Policy, b.Policy), strings.Compare(a.Reason, b.Reason))
	})
	return result
}

// proposedPolicies are those of the documents, as they would be.
func (in *Input) proposedPolicies() []policies.Policy {
	var result []policies.Policy
	for _, d := range in.Documents {
		for _, policy := range in.Then.Policies {
			if d.isOf(policy) {
				result = append(result, policy)
			}
		}
	}
	return result
}

// isOf tells whether the document is what the policy would be.
func (d Document) isOf(p policies.Policy) bool {
	kind := "ClusterPropagationPolicy"
	if p.Namespaced() {
		kind = "PropagationPolicy"
	}
	return d.Action != ActionDelete && d.group() == policyv1alpha1.GroupVersion.Group && d.Kind == kind &&
		d.Namespace == p.GetNamespace() && d.Name == p.GetName()
}
