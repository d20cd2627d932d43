package registration

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const agentAdmission = "agents.federation.trellis.garden"

// unchanged are the parts of a Work that its agent leaves alone. The annotations hold what people and the fleet decided about its deletion.
const unchanged = `object.spec == oldObject.spec && ` +
	`object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({}) && ` +
	`object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && ` +
	`object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])`

// ApplyAgentAdmission has the fleet's API server refuse what agents have no business to change in their Works. RBAC cannot tell
// finalizers from the rest.
func ApplyAgentAdmission(ctx context.Context, fleet client.Client) error {
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: agentAdmission}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, policy, func() error { fillAgentAdmission(&policy.Spec); return nil }); err != nil {
		return fmt.Errorf("admission policy %s in the fleet: %w", policy.Name, err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: agentAdmission}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, binding, func() error {
		binding.Spec.PolicyName = agentAdmission
		binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
		return nil
	}); err != nil {
		return fmt.Errorf("binding of admission policy %s in the fleet: %w", binding.Name, err)
	}
	return nil
}

func fillAgentAdmission(spec *admissionv1.ValidatingAdmissionPolicySpec) {
	spec.FailurePolicy = new(admissionv1.Fail)
	if spec.MatchConstraints == nil {
		spec.MatchConstraints = &admissionv1.MatchResources{}
	}
	spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"work.karmada.io"}, APIVersions: []string{"*"}, Resources: []string{"works"}, Scope: new(admissionv1.NamespacedScope)},
	}}}
	spec.MatchConditions = []admissionv1.MatchCondition{{Name: "agents", Expression: fmt.Sprintf("%q in request.userInfo.groups", AgentGroup)}}
	spec.Validations = []admissionv1.Validation{{Expression: unchanged, Message: "agents change only the finalizers and the status of Works"}}
}
