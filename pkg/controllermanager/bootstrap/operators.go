package bootstrap

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Roles of a garden's operators. Nobody has them until an operator binds them with a ClusterRoleBinding.
const (
	administratorsRole = "gardener.cloud:system:administrators"
	auditorsRole       = "gardener.cloud:system:viewers"
)

// Values of the label gardener.cloud/role on cluster roles that are parts of the operators' roles.
const (
	partOfAdministrators = "admin"
	partOfAuditors       = "viewer"
	roleOfMembers        = "project-member"
	roleOfViewers        = "project-viewer"
	roleOfAccounts       = "project-serviceaccountmanager"
)

// garden-wide kinds of the API, by group. Internal secrets and the states of shoots are not among them: they hold the
// private keys of clusters, which no person needs.
var operatedKinds = map[string][]string{
	gardencorev1beta1.GroupName: {
		"shoots", "shoots/status", "shoots/binding", "shoots/adminkubeconfig", "shoots/viewerkubeconfig",
		"seeds", "seeds/status", "projects", "projects/status", "cloudprofiles", "cloudprofiles/status",
		"namespacedcloudprofiles", "namespacedcloudprofiles/status", "secretbindings", "quotas", "exposureclasses",
		"backupbuckets", "backupbuckets/status", "backupentries", "backupentries/status",
		"controllerregistrations", "controllerdeployments", "controllerinstallations", "controllerinstallations/status",
	},
	// Not workloadidentities/token: a token is a way into somebody's infrastructure.
	securityv1alpha1.GroupName: {"credentialsbindings", "workloadidentities"},
	seedmanagementv1alpha1.GroupName: {
		"managedseeds", "managedseeds/status", "managedseedsets", "managedseedsets/status", "managedseedsets/scale",
		"gardenlets", "gardenlets/status",
	},
	operationsv1alpha1.GroupName: {"bastions", "bastions/status"},
}

// kubernetesKinds are kinds of Kubernetes with which a garden is run.
var kubernetesKinds = map[string][]string{
	"":                             {"events", "namespaces", "resourcequotas"},
	"events.k8s.io":                {"events"},
	rbacv1.GroupName:               {"clusterroles", "clusterrolebindings", "roles", "rolebindings"},
	"admissionregistration.k8s.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
	"apiregistration.k8s.io":       {"apiservices"},
	"apiextensions.k8s.io":         {"customresourcedefinitions"},
	"coordination.k8s.io":          {"leases"},
}

// administratorRules is everything that operators do beyond what members of projects do.
func administratorRules() []rbacv1.PolicyRule {
	return append(rulesFor([]string{rbacv1.VerbAll}, operatedKinds, kubernetesKinds),
		rule([]string{rbacv1.VerbAll}, "certificates.k8s.io", "certificatesigningrequests"))
}

// unseen are kinds that auditors do not read: the values for an extension's chart may hold passwords.
var unseen = map[string][]string{gardencorev1beta1.GroupName: {"controllerdeployments"}}

// auditorRules is what operators see.
func auditorRules() []rbacv1.PolicyRule {
	seen := maps.Clone(operatedKinds)
	for group, kinds := range unseen {
		seen[group] = slices.DeleteFunc(slices.Clone(seen[group]),
			func(kind string) bool { return slices.Contains(kinds, kind) })
	}
	return rulesFor(read, seen, kubernetesKinds)
}

func rulesFor(verbs []string, kinds ...map[string][]string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, byGroup := range kinds {
		for _, group := range slices.Sorted(maps.Keys(byGroup)) {
			rules = append(rules, rule(verbs, group, byGroup[group]...))
		}
	}
	return rules
}
