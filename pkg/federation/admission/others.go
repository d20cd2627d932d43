package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func clusters() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	// A model begins where one of a smaller grade ends; the smallest begins at 0, and the largest has no end.
	const amount = "quantity(string(%s))"
	least, most := fmt.Sprintf(amount, "r.min"), fmt.Sprintf(amount, "r.max")
	continues := "(variables.models.all(n, n.grade >= m.grade) ? " + least + ".compareTo(quantity('0')) == 0 : " +
		"variables.models.exists(n, n.grade < m.grade && n.ranges.exists(q, q.name == r.name && " +
		fmt.Sprintf(amount, "q.max") + ".compareTo(" + least + ") == 0)))"
	ends := "(variables.models.exists(n, n.grade > m.grade) || " + most +
		".compareTo(quantity('9223372036854775807')) == 0)"
	return whenSpecChanges(clusterv1alpha1.GroupVersion.Group, []string{"clusters"}, []variable{
		{"models", orEmptyList("object.spec", "resourceModels")},
		{"taints", orEmptyList("object.spec", "taints")},
	}, []rule{
		{"request.operation != 'CREATE' || size(object.metadata.name) <= 52 && " + isDNSLabel("object.metadata.name"),
			"metadata.name: must consist of at most 52 small letters, digits and '-', and begin and end with a " +
				"letter or digit"},
		{
			"!has(object.spec.apiEndpoint) || object.spec.apiEndpoint == '' || isURL(object.spec.apiEndpoint) && " +
				"url(object.spec.apiEndpoint).getHost() != '' && " +
				"size(url(object.spec.apiEndpoint).getQuery()) == 0 && !object.spec.apiEndpoint.contains('@') && " +
				"!object.spec.apiEndpoint.contains('#')",
			"spec.apiEndpoint: must be a URL with a host, without user, query or fragment",
		},
		{
			"!has(object.spec.proxyURL) || object.spec.proxyURL == '' || isURL(object.spec.proxyURL) && " +
				"url(object.spec.proxyURL).getScheme() in ['http', 'https', 'socks5']",
			"spec.proxyURL: must be a URL that begins with http://, https:// or socks5://",
		},
		{
			"['provider', 'region', 'zone'].all(f, !(f in object.spec) || " + isLabelValue("object.spec[f]") + ") && " +
				orEmptyList("object.spec", "zones") + ".all(z, " + isLabelValue("z") + ")",
			"spec: provider, region and zones must have the form of values of labels",
		},
		{
			"!(has(object.spec.zone) && object.spec.zone != '' && has(object.spec.zones) && size(object.spec.zones) " +
				"> 0)", "spec.zone: is the older form of spec.zones; give only one of them",
		},
		{
			"variables.taints.all(t, variables.taints.exists_one(u, u.key == t.key && u.effect == t.effect))",
			"spec.taints: a taint is told by key and effect, and may be listed once",
		},
		{
			taintsHold("variables.taints") +
				" && variables.taints.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
			badTaint + "; effect must be NoSchedule, PreferNoSchedule or NoExecute",
		},
		{
			"variables.models.all(m, variables.models.exists_one(n, n.grade == m.grade) && variables.models.all(n, " +
				"size(n.ranges) == size(m.ranges) && " +
				"n.ranges.all(q, m.ranges.exists_one(r, r.name == q.name))))",
			"spec.resourceModels: a grade must be there once, and all grades must have ranges of the same resources",
		},
		{
			"variables.models.all(m, m.ranges.all(r, " + most + ".compareTo(" + least + ") > 0 && " + continues +
				" && " + ends + "))",
			"spec.resourceModels: ranges must follow on each other without gaps, from 0 in the smallest grade to " +
				"9223372036854775807 in the largest",
		},
	})
}

// bindingsOfNamespaces are about objects of their own namespace: whoever may write them there may not be allowed to
// read elsewhere.
func bindingsOfNamespaces() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return written("spec.resource", workv1alpha2.GroupVersion.Group, []string{"resourcebindings"}, nil, []rule{
		{
			"!has(object.spec.resource.namespace) || object.spec.resource.namespace == '' || " +
				"object.spec.resource.namespace == object.metadata.namespace",
			"spec.resource.namespace: must be that of the binding",
		},
	})
}

func interpreterWebhooks() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return written("webhooks", configv1alpha1.GroupVersion.Group, []string{"resourceinterpreterwebhookconfigurations"},
		nil, []rule{
			{
				"object.webhooks.all(w, object.webhooks.exists_one(v, v.name == w.name) && " +
					"w.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?){2,}$'))",
				"webhooks: name must be unique, and have at least three parts, such as workloads.example.com",
			},
			{
				"object.webhooks.all(w, has(w.clientConfig.url) != has(w.clientConfig.service))",
				"webhooks: clientConfig needs a url or a service, not both",
			},
			{"object.webhooks.all(w, " + orEmptyList("w", "rules") +
				".all(r, size(r.operations) > 0 && (size(r.operations) == 1 || !('*' in r.operations))))",
				"webhooks: rules need operations; '*' stands alone"},
			{"object.webhooks.all(w, " + orEmptyList("w", "rules") +
				".all(r, size(r.apiGroups) > 0 && size(r.apiVersions) > 0 && size(r.kinds) > 0))",
				"webhooks: rules need apiGroups, apiVersions and kinds; '*' stands for all"},
			{
				"object.webhooks.all(w, w.interpreterContextVersions.all(v, " +
					"w.interpreterContextVersions.exists_one(u, u == v)))",
				"webhooks: interpreterContextVersions must not repeat one",
			},
		})
}

// deletionProtection refuses to delete what is labelled so. Other values of the label protect nothing.
func deletionProtection() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: matching(admissionregistrationv1.MatchResources{
			ObjectSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{
					workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways,
				},
			},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"},
						Scope: new(admissionregistrationv1.AllScopes),
					},
				}},
			},
		}),
		Validations: []admissionregistrationv1.Validation{{
			Expression: "false", Reason: new(metav1.StatusReasonForbidden),
			Message: "the object is protected: remove its label " + workv1alpha2.DeletionProtectionLabel +
				" before you delete it",
		}},
	}
}
