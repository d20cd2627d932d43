package policies

import (
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// Claim marks a binding as made for this policy.
func (p Policy) Claim(b bindings.Binding) {
	if p.Namespaced() {
		bindings.SetLabel(b, policyv1alpha1.PropagationPolicyPermanentIDLabel, string(p.GetUID()))
		bindings.SetAnnotation(b, policyv1alpha1.PropagationPolicyNamespaceAnnotation, p.GetNamespace())
		bindings.SetAnnotation(b, policyv1alpha1.PropagationPolicyNameAnnotation, p.GetName())
		bindings.RemoveMarks(b, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
			policyv1alpha1.ClusterPropagationPolicyNameAnnotation)
		return
	}
	bindings.SetLabel(b, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, string(p.GetUID()))
	bindings.SetAnnotation(b, policyv1alpha1.ClusterPropagationPolicyNameAnnotation, p.GetName())
	bindings.RemoveMarks(b, policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.PropagationPolicyNamespaceAnnotation, policyv1alpha1.PropagationPolicyNameAnnotation)
}

// RemoveClaims takes the marks of any policy away, and what was decided for it.
func RemoveClaims(b bindings.Binding) {
	bindings.RemoveMarks(b, policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.PropagationPolicyNamespaceAnnotation, policyv1alpha1.PropagationPolicyNameAnnotation,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyNameAnnotation,
		policyv1alpha1.AppliedPlacementAnnotation, ActivatedTemplateAnnotation,
		workv1alpha2.AppliedAffinityAnnotation, workv1alpha2.DecisionAnnotation, workv1alpha2.DecisionReportAnnotation)
}

// IsClaimed tells whether any policy has claimed the binding.
func IsClaimed(b bindings.Binding) bool {
	a := b.GetAnnotations()
	return a[policyv1alpha1.PropagationPolicyNameAnnotation] != "" ||
		a[policyv1alpha1.ClusterPropagationPolicyNameAnnotation] != ""
}

// Claims tells whether the binding was made for this policy.
func (p Policy) Claims(b bindings.Binding) bool {
	a := b.GetAnnotations()
	if p.Namespaced() {
		return a[policyv1alpha1.PropagationPolicyNamespaceAnnotation] == p.GetNamespace() &&
			a[policyv1alpha1.PropagationPolicyNameAnnotation] == p.GetName()
	}
	return a[policyv1alpha1.ClusterPropagationPolicyNameAnnotation] == p.GetName()
}

// ClaimedBy names the policy that claims a binding, as [Policy.String] does; it is empty if none does.
func ClaimedBy(b bindings.Binding) string {
	a := b.GetAnnotations()
	if name := a[policyv1alpha1.PropagationPolicyNameAnnotation]; name != "" {
		return "PropagationPolicy " + a[policyv1alpha1.PropagationPolicyNamespaceAnnotation] + "/" + name
	}
	if name := a[policyv1alpha1.ClusterPropagationPolicyNameAnnotation]; name != "" {
		return "ClusterPropagationPolicy " + name
	}
	return ""
}
