package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// agents refuses what agents have no business to change in their Works: RBAC cannot tell finalizers from the rest. The annotations hold
// what people and the fleet decided about a Work's deletion.
func agents() admissionv1.ValidatingAdmissionPolicySpec {
	const unchanged = `object.spec == oldObject.spec && ` +
		`object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({}) && ` +
		`object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && ` +
		`object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])`
	return admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail),
		MatchConstraints: matching(admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{workv1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"works"}, Scope: new(admissionv1.NamespacedScope),
				},
			},
		}}}),
		MatchConditions: []admissionv1.MatchCondition{{Name: "agents", Expression: fmt.Sprintf("%q in request.userInfo.groups", registration.AgentGroup)}},
		Validations:     []admissionv1.Validation{{Expression: unchanged, Message: "agents change only the finalizers and the status of Works"}},
	}
}
