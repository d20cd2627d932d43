package bootstrap

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accountTokensName is the name of the policy and its binding.
const accountTokensName = "service-account-tokens.gardener.cloud"

// accountTokens has everybody who makes a Secret into which Kubernetes writes the token of a service account be allowed
// to create such tokens. Without it, who may write Secrets is every service account of the namespace, whatever roles
// their project gave those.
func accountTokens() *admissionregistrationv1.ValidatingAdmissionPolicy {
	nameIn := func(object string) string {
		annotations := object + ".metadata.annotations"
		return fmt.Sprintf("(has(%s) && '%s' in %s ? %s['%s'] : '')", annotations, corev1.ServiceAccountNameKey,
			annotations, annotations, corev1.ServiceAccountNameKey)
	}
	isToken := fmt.Sprintf("has(object.type) && object.type == '%s'", corev1.SecretTypeServiceAccountToken)
	names := "oldObject == null || " + nameIn("object") + " != " + nameIn("oldObject")
	allowed :=
		"authorizer.group('').resource('serviceaccounts').subresource('token').namespace(request.namespace).name(" +
			nameIn("object") + ").check('create').allowed()"
	written := writtenIn(corev1.GroupName, "secrets")
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: accountTokensName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{written},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "tokens", Expression: isToken}, {Name: "of-another-account", Expression: names},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: allowed, Reason: new(metav1.StatusReasonForbidden),
				Message: "who makes a Secret with the token of a service account needs the verb create on " +
					"serviceaccounts/token",
			}},
		},
	}
}
