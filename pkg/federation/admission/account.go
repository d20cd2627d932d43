package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// accountPolicies bound what the federation's account does with what is Kubernetes' own. Roles cannot say it: they know
// neither prefixes, nor contents, nor exceptions.
func accountPolicies() map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{
		"account-namespaces.federation.trellis.garden": ofAccount(
			[]admissionregistrationv1.NamedRuleWithOperations{
				clusterWide("", []string{"namespaces"}, admissionregistrationv1.Create, admissionregistrationv1.Delete),
			},
			rule{
				fmt.Sprintf("(object == null ? oldObject : object).metadata.name.startsWith(%q)",
					clusterv1alpha1.ExecutionNamespacePrefix),
				"the federation makes and removes the namespaces of members' Works only",
			},
		),
		"account-apis.federation.trellis.garden": ofAccount(
			[]admissionregistrationv1.NamedRuleWithOperations{
				clusterWide("apiregistration.k8s.io", []string{"apiservices"}, admissionregistrationv1.Create),
			},
			rule{
				fmt.Sprintf("object.metadata.name in [%q, %q]", clusterv1alpha1.APIServiceName,
					clusterv1alpha1.TrialAPIServiceName), "the federation serves the API of Clusters only",
			},
		),
		"account-statuses.federation.trellis.garden": ofAccount(
			[]admissionregistrationv1.NamedRuleWithOperations{
				clusterWide("", []string{"namespaces/status", "nodes/status"}, admissionregistrationv1.Update),
				clusterWide("apiextensions.k8s.io", []string{"customresourcedefinitions/status"},
					admissionregistrationv1.Update),
				clusterWide("apiregistration.k8s.io", []string{"apiservices/status"}, admissionregistrationv1.Update),
			},
			rule{"false", "the federation writes no status of what the API itself depends on"},
		),
	}
}

// namespaceController removes what is left in namespaces that are being deleted.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// leaderLease keeps to the federation's account the Lease by which one of its processes is the one that works: who else
// writes it could have none of them work, or two. Administrators of the fleet are not meant to, either.
func leaderLease() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: matching(admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: clusterv1alpha1.CredentialsNamespace},
			},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{
						admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
					},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{coordinationv1.GroupName}, APIVersions: []string{"*"},
						Resources: []string{"leases"}, Scope: new(admissionregistrationv1.NamespacedScope),
					},
				},
			}},
		}),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "leader", Expression: fmt.Sprintf("(object == null ? oldObject : object).metadata.name == %q",
				fleetv1alpha1.LeaderLease),
		}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: fmt.Sprintf("request.userInfo.username == %q || request.userInfo.username == %q && "+
				"request.operation == 'DELETE'", registration.FleetAccount, namespaceController),
			Message: "only the federation's processes, which elect by this Lease who works, write it",
			Reason:  new(metav1.StatusReasonForbidden),
		}},
	}
}

func clusterWide(group string, resources []string,
	operations ...admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
				Scope: new(admissionregistrationv1.ClusterScope),
			},
		},
	}
}

// ofAccount refuses to the federation's account what does not keep to a rule.
func ofAccount(resources []admissionregistrationv1.NamedRuleWithOperations,
	r rule) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    new(admissionregistrationv1.Fail),
		MatchConstraints: matching(admissionregistrationv1.MatchResources{ResourceRules: resources}),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "federation", Expression: fmt.Sprintf("request.userInfo.username == %q", registration.FleetAccount)},
		},
		Validations: []admissionregistrationv1.Validation{
			{Expression: r.expression, Message: r.message, Reason: new(metav1.StatusReasonForbidden)},
		},
	}
}
