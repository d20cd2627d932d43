package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

// credentials refuses to have the fleet show a Secret to an address by who may not read the Secret: the fleet's process
// may read all of them. And it refuses addresses without TLS.
func credentials() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	const changed = `oldObject == null || ['apiEndpoint', 'secretRef', 'impersonatorSecretRef', 'proxyURL', 'insecureSkipTLSVerification'].exists(f, ` +
		`(f in object.spec) != (f in oldObject.spec) || f in object.spec && object.spec[f] != oldObject.spec[f])`
	spec := whenSpecChanges(clusterv1alpha1.GroupVersion.Group, []string{"clusters"}, []variable{
		{"isMaster", fmt.Sprintf("%q in request.userInfo.?groups.orValue([])", fleetv1alpha1.MastersGroup)},
	}, []rule{
		{
			"!has(object.spec.apiEndpoint) || object.spec.apiEndpoint == '' || " +
				"object.spec.apiEndpoint.startsWith('https://')", "spec.apiEndpoint: must begin with https://",
		},
	})
	spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "changed", Expression: changed}}
	for _, field := range []string{"secretRef", "impersonatorSecretRef"} {
		spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{
			Expression: fmt.Sprintf("!has(object.spec.%[1]s) || variables.isMaster || "+
				"authorizer.group('').resource('secrets').namespace(object.spec.%[1]s.namespace).name(object.spec.%[1]s.name).check('get').allowed()", field),
			Message: "spec." + field + ": the fleet sends this Secret to the cluster's address; who names it, or " +
				"changes the address, must be allowed to get it",
			Reason: new(metav1.StatusReasonForbidden),
		})
	}
	return spec
}
