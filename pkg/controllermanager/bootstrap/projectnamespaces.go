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

// projectNamespaces keeps people from deleting the namespace of a project, and from taking the project's label away
// before that: Kubernetes would delete the Secrets in it while its shoots live. garden-controller-manager deletes it
// with the project, which has to be without shoots. The parameters of the policy are all projects, so a namespace whose
// project is gone may be deleted.
func projectNamespaces() *admissionregistrationv1.ValidatingAdmissionPolicy {
	lost := admissionregistrationv1.NamedRuleWithOperations{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Delete, admissionregistrationv1.Update,
			},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{corev1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"namespaces"},
			},
		},
	}
	ofProject := func(object string) string {
		return fmt.Sprintf("%s.metadata.?labels[?'%s'].orValue('') == params.metadata.name", object,
			gardencorev1beta1.ProjectName)
	}
	message := fmt.Sprintf("'the namespace belongs to project ' + params.metadata.name + "+
		"(request.operation == 'DELETE' ? ': delete its shoots, then the project, and the namespace goes with it' "+
		": ': its label %s stays until the project is deleted')", gardencorev1beta1.ProjectName)
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: projectNamespacesName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			ParamKind: &admissionregistrationv1.ParamKind{
				APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Project",
			},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{lost},
				// While kube-apiserver does not know the projects, other namespaces are to go on.
				ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: gardencorev1beta1.ProjectName, Operator: metav1.LabelSelectorOpExists},
				}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "of-the-project", Expression: ofProject("oldObject")},
				{
					Name:       "not-any-more",
					Expression: fmt.Sprintf("request.operation == 'DELETE' || !(%s)", ofProject("object")),
				},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username == '%s'",
					gardencorev1beta1.GardenControllerManagerUser),
				MessageExpression: message, Reason: new(metav1.StatusReasonForbidden),
			}},
		},
	}
}

// projectNamespacesBinding has the policy decide about every project.
func projectNamespacesBinding() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	binding := denying(projectNamespacesName)
	binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{
		Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: new(admissionregistrationv1.AllowAction),
	}
	return binding
}
