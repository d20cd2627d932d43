// Package admission has a fleet's API refuse what its custom resource definitions cannot: rules that compare fields with the name or
// namespace of an object, that need the validation of label keys and values, that are about who asks, or that are about objects of any kind. They are
// ValidatingAdmissionPolicies, so that no webhook has to run for the fleet's API to be writable.
package admission

import (
	"context"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Policies are all that a fleet has, by name.
func Policies() map[string]admissionv1.ValidatingAdmissionPolicySpec {
	policies := map[string]admissionv1.ValidatingAdmissionPolicySpec{
		"propagation-policies.federation.trellis.garden":   propagationPolicies(),
		"override-policies.federation.trellis.garden":      overridePolicies(),
		"cluster-taint-policies.federation.trellis.garden": clusterTaintPolicies(),
		"quotas.federation.trellis.garden":                 quotas(),
		"clusters.federation.trellis.garden":               clusters(),
		"cluster-credentials.federation.trellis.garden":    credentials(),
		"autoscalers.federation.trellis.garden":            autoscalers(),
		"interpreter-webhooks.federation.trellis.garden":   interpreterWebhooks(),
		"bindings.federation.trellis.garden":               bindingsOfNamespaces(),
		"agents.federation.trellis.garden":                 agents(),
		"deletion-protection.federation.trellis.garden":    deletionProtection(),
	}
	maps.Copy(policies, accountPolicies())
	return policies
}

// Install brings the policies into a fleet, and binds each so that it denies. The API server enforces them a moment later.
func Install(ctx context.Context, c client.Client) error {
	for name, spec := range Policies() {
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := controllerutil.CreateOrPatch(ctx, c, policy, func() error { policy.Spec = spec; return nil }); err != nil {
			return fmt.Errorf("admission policy %s: %w", name, err)
		}
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := controllerutil.CreateOrPatch(ctx, c, binding, func() error {
			binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			}
			return nil
		}); err != nil {
			return fmt.Errorf("binding of admission policy %s: %w", name, err)
		}
	}
	return nil
}

// rule is an expression that must be true, and what is said if it isn't.
type rule struct{ expression, message string }

// variable is computed at most once per request; expressions call it variables.name.
type variable struct{ name, expression string }

// whenSpecChanges has rules about the spec of resources. Objects that were there before the rules may still be finalized and labelled.
func whenSpecChanges(group string, resources []string, variables []variable, rules []rule) admissionv1.ValidatingAdmissionPolicySpec {
	return written("spec", group, resources, variables, rules)
}

func written(field, group string, resources []string, variables []variable, rules []rule) admissionv1.ValidatingAdmissionPolicySpec {
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail),
		MatchConstraints: matching(admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: new(admissionv1.AllScopes)},
			},
		}}}),
		MatchConditions: []admissionv1.MatchCondition{{
			Name: "changed", Expression: fmt.Sprintf("oldObject == null || object.%[1]s != oldObject.%[1]s", field),
		}},
	}
	for _, v := range variables {
		spec.Variables = append(spec.Variables, admissionv1.Variable{Name: v.name, Expression: v.expression})
	}
	for _, r := range rules {
		spec.Validations = append(spec.Validations, admissionv1.Validation{Expression: r.expression, Message: r.message, Reason: new(metav1.StatusReasonInvalid)})
	}
	return spec
}

// matching fills in what the API server would, so that applying the policy again changes nothing.
func matching(resources admissionv1.MatchResources) *admissionv1.MatchResources {
	resources.MatchPolicy = new(admissionv1.Equivalent)
	if resources.NamespaceSelector == nil {
		resources.NamespaceSelector = &metav1.LabelSelector{}
	}
	if resources.ObjectSelector == nil {
		resources.ObjectSelector = &metav1.LabelSelector{}
	}
	return &resources
}
