// Package admission has a fleet's API refuse what its custom resource definitions cannot: rules that compare fields
// with the name or namespace of an object, that need the validation of label keys and values, that are about who asks,
// or that are about objects of any kind. They are ValidatingAdmissionPolicies, so that no webhook has to run for the
// fleet's API to be writable.
package admission

import (
	"context"
	"fmt"
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Policies are all that a fleet has, by name.
func Policies() map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec {
	policies := map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{
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
		"leader-lease.federation.trellis.garden":           leaderLease(),
	}
	maps.Copy(policies, accountPolicies())
	return policies
}

// Install brings the policies into a fleet, and binds each so that it denies. The API server enforces them a moment
// later.
func Install(ctx context.Context, c client.Client) error {
	for name, spec := range Policies() {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := controllerutil.CreateOrPatch(ctx, c, policy,
			func() error { policy.Spec = spec; return nil }); err != nil {
			return fmt.Errorf("admission policy %s: %w", name, err)
		}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := controllerutil.CreateOrPatch(ctx, c, binding, func() error {
			binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{
					admissionregistrationv1.Deny,
				},
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

// whenSpecChanges has rules about the spec of resources. Objects that were there before the rules may still be
// finalized and labelled.
func whenSpecChanges(group string, resources []string, variables []variable,
	rules []rule) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return written("spec", group, resources, variables, rules)
}

func written(field, group string, resources []string, variables []variable,
	rules []rule) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: matching(admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{
						admissionregistrationv1.Create, admissionregistrationv1.Update,
					},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
						Scope: new(admissionregistrationv1.AllScopes),
					},
				},
			}},
		}),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "changed", Expression: fmt.Sprintf("oldObject == null || object.%[1]s != oldObject.%[1]s", field),
		}},
	}
	for _, v := range variables {
		spec.Variables = append(spec.Variables,
			admissionregistrationv1.Variable{Name: v.name, Expression: v.expression})
	}
	for _, r := range rules {
		spec.Validations = append(spec.Validations,
			admissionregistrationv1.Validation{
				Expression: r.expression, Message: r.message, Reason: new(metav1.StatusReasonInvalid),
			})
	}
	return spec
}

// matching fills in what the API server would, so that applying the policy again changes nothing.
func matching(resources admissionregistrationv1.MatchResources) *admissionregistrationv1.MatchResources {
	resources.MatchPolicy = new(admissionregistrationv1.Equivalent)
	if resources.NamespaceSelector == nil {
		resources.NamespaceSelector = &metav1.LabelSelector{}
	}
	if resources.ObjectSelector == nil {
		resources.ObjectSelector = &metav1.LabelSelector{}
	}
	return &resources
}
