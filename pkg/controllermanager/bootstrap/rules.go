package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

var (
	read   = []string{"get", "list", "watch"}
	manage = slices.Concat(read, []string{"create", "update", "patch", "delete", "deletecollection"})
)

func rule(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// seedRules is what gardenlets do that does not depend on what belongs to their seed. All other rights are decided by
// the seed authorizer (pkg/apiserver/seedauthorizer); which certificates are granted, by the certificate controller.
func seedRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule([]string{"create"}, "certificates.k8s.io", "certificatesigningrequests")}
}

// bootstrapperRules is what a bootstrap token is good for: asking for a certificate, and waiting for it. It lists
// nobody's requests.
func bootstrapperRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule([]string{"create", "get"}, "certificates.k8s.io", "certificatesigningrequests")}
}

// globalReadRules is what every user may see, with or without lists of projects.
func globalReadRules(listProjects bool) []rbacv1.PolicyRule {
	ofProjects := []string{"create"}
	if listProjects {
		ofProjects = append(ofProjects, "list", "watch")
	}
	return []rbacv1.PolicyRule{
		rule(read, gardencorev1beta1.GroupName, "cloudprofiles", "exposureclasses", "seeds"),
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{gardencorev1beta1.ClusterIdentity}, Verbs: []string{"get"},
		},
		// Everybody may found a project, and becomes its owner.
		// They list those that they are a member of: garden-apiserver leaves out others (Kind.Readers of its registry).
		rule(ofProjects, gardencorev1beta1.GroupName, "projects"),
	}
}

// memberRules is what a project's admins do in its namespace. Managed seeds, of which every user of a seed has to know,
// exist in the project of the operators only.
func memberRules() []rbacv1.PolicyRule {
	core, security := gardencorev1beta1.GroupName, securityv1alpha1.GroupName
	return []rbacv1.PolicyRule{
		rule(manage, core, "shoots", "secretbindings", "quotas", "namespacedcloudprofiles"),
		rule([]string{"create"}, core, "shoots/adminkubeconfig", "shoots/viewerkubeconfig"),
		rule(manage, security, "credentialsbindings", "workloadidentities"),
		rule(manage, operationsv1alpha1.GroupName, "bastions"),
		rule(read, seedmanagementv1alpha1.GroupName, "managedseeds"),
		rule(manage, "", "secrets", "configmaps"),
		rule(read, "", "events", "resourcequotas", "serviceaccounts"),
		rule([]string{"get"}, "", "namespaces"),
		rule(manage, rbacv1.GroupName, "roles", "rolebindings"),
		rule(read, "events.k8s.io", "events"),
	}
}

// viewerRules is what a project's viewers see in its namespace. Secrets are not among it.
func viewerRules() []rbacv1.PolicyRule {
	core, security := gardencorev1beta1.GroupName, securityv1alpha1.GroupName
	return []rbacv1.PolicyRule{
		rule(read, core, "shoots", "secretbindings", "quotas", "namespacedcloudprofiles"),
		rule([]string{"create"}, core, "shoots/viewerkubeconfig"),
		rule(read, security, "credentialsbindings", "workloadidentities"),
		rule(read, operationsv1alpha1.GroupName, "bastions"),
		rule(read, seedmanagementv1alpha1.GroupName, "managedseeds"),
		rule(read, "", "configmaps", "events", "resourcequotas", "serviceaccounts"),
		rule([]string{"get"}, "", "namespaces"),
		rule(read, rbacv1.GroupName, "roles", "rolebindings"),
		rule(read, "events.k8s.io", "events"),
	}
}

// serviceAccountManagerRules lets members manage service accounts for automation.
func serviceAccountManagerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(manage, "", "serviceaccounts"),
		rule([]string{"create"}, "", "serviceaccounts/token"),
	}
}
