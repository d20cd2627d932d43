package bootstrap

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// seedRestrictionName is the name of the policy and its binding.
const seedRestrictionName = "seed-restriction.gardener.cloud"

// seedRestriction keeps gardenlets to their own names when they create objects of Kubernetes: a request to create does not tell
// authorizers the name. The policy asks them again, now with the name. For the kinds of the garden the admission plugin
// SeedRestriction does so, and looks into the objects.
func seedRestriction() *admissionregistrationv1.ValidatingAdmissionPolicy {
	isSeed := fmt.Sprintf("request.userInfo.username.startsWith('%s') || request.userInfo.username.startsWith('system:serviceaccount:%s')",
		corev1beta1.SeedUserNamePrefix, corev1beta1.SeedNamespaceNamePrefix)
	allowed := "authorizer.group(request.resource.group).resource(request.resource.resource)" +
		".namespace(has(request.namespace) ? request.namespace : '').name(object.metadata.name).check('create').allowed()"
	message := "'seeds may not create ' + request.resource.resource + ' named ' + object.metadata.name + ' here: it does not belong to the seed'"
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: seedRestrictionName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				createdIn("", "namespaces", "secrets", "configmaps", "serviceaccounts"), createdIn("coordination.k8s.io", "leases"),
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "seeds", Expression: isSeed}},
			Validations: []admissionregistrationv1.Validation{
				{Expression: allowed, MessageExpression: message, Reason: ptr.To(metav1.StatusReasonForbidden)}, boundToken(),
			},
		},
	}
}

// boundToken has the bootstrap tokens that gardenlets make for managed seeds name the managed seed: the certificate controller grants
// them its certificate only.
func boundToken() admissionregistrationv1.Validation {
	label := fmt.Sprintf("object.metadata.labels['%s']", seedmanagementv1alpha1.BootstrapSeedLabel)
	expression := fmt.Sprintf("request.resource.resource != 'secrets' || request.namespace != '%s' || "+
		"(has(object.metadata.labels) && '%s' in object.metadata.labels && "+
		"authorizer.group('%s').resource('managedseeds').namespace('%s').name(%s).check('update').allowed())",
		seedmanagementv1alpha1.BootstrapTokenNamespace, seedmanagementv1alpha1.BootstrapSeedLabel, seedmanagementv1alpha1.GroupName, corev1beta1.GardenNamespace, label)
	return admissionregistrationv1.Validation{
		Expression: expression, Reason: ptr.To(metav1.StatusReasonForbidden),
		Message: fmt.Sprintf("bootstrap tokens made by seeds need the label %s with the name of a managed seed on one of their shoots", seedmanagementv1alpha1.BootstrapSeedLabel),
	}
}

func createdIn(group string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
	}}
}

// bringPolicyTo takes over what a policy says, and leaves what the API server has defaulted.
func bringPolicyTo(present, wanted *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	present.MatchConditions, present.Validations = wanted.MatchConditions, wanted.Validations
	if present.MatchConstraints == nil || len(present.MatchConstraints.ResourceRules) != len(wanted.MatchConstraints.ResourceRules) {
		present.MatchConstraints = wanted.MatchConstraints
		return
	}
	for i := range wanted.MatchConstraints.ResourceRules {
		rule := &present.MatchConstraints.ResourceRules[i]
		rule.APIGroups, rule.Resources = wanted.MatchConstraints.ResourceRules[i].APIGroups, wanted.MatchConstraints.ResourceRules[i].Resources
	}
}

// denying binds a policy to the whole garden.
func denying(policy string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}
