package bootstrap

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// projectNamespacesName is the name of the policy and its binding.
const projectNamespacesName = "project-namespaces.gardener.cloud"

// projectNamespaces keeps people from deleting the namespace of a project: Kubernetes would delete the Secrets in it
// while its shoots live. garden-controller-manager deletes it with the project, which has to be without shoots.
func projectNamespaces() *admissionregistrationv1.ValidatingAdmissionPolicy {
	deleted := admissionregistrationv1.NamedRuleWithOperations{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{corev1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"namespaces"},
			},
		},
	}
	const labels = "oldObject.metadata.labels"
	ofProject := fmt.Sprintf("has(%s) && '%s' in %s", labels, gardencorev1beta1.ProjectName, labels)
	message :=
		fmt.Sprintf("'the namespace belongs to project ' + %s['%s'] + ': delete its shoots, then the project, and the "+
			"namespace goes with it; if there is no such project any more, remove the label %s first'",
			labels, gardencorev1beta1.ProjectName, gardencorev1beta1.ProjectName)
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: projectNamespacesName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{deleted},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "of-projects", Expression: ofProject}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username == '%s'",
					gardencorev1beta1.GardenControllerManagerUser),
				MessageExpression: message, Reason: new(metav1.StatusReasonForbidden),
			}},
		},
	}
}
