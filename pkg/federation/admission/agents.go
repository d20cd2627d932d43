package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// agents refuses what agents have no business to change in their Works: RBAC cannot tell finalizers from the rest. The
// annotations hold what people and the fleet decided about a Work's deletion.
func agents() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	const unchanged = `object.spec == oldObject.spec && ` +
		`object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({}) && ` +
		`object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && ` +
		`object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])`
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: matching(admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{workv1alpha1.GroupVersion.Group}, APIVersions: []string{"*"},
						Resources: []string{"works"}, Scope: new(admissionregistrationv1.NamespacedScope),
					},
				},
			}},
		}),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "agents", Expression: fmt.Sprintf("%q in request.userInfo.groups", registration.AgentGroup)},
		},
		Validations: []admissionregistrationv1.Validation{
			{Expression: unchanged, Message: "agents change only the finalizers and the status of Works"},
		},
	}
}
