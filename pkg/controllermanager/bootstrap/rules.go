package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

var (
	read   = []string{"get", "list", "watch"}
	write  = []string{"create", "update", "patch", "delete"}
	manage = slices.Concat(read, write, []string{"deletecollection"})
)

func rule(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// seedRules is what a gardenlet does in the garden.
func seedRules() []rbacv1.PolicyRule {
	core, security := corev1beta1.GroupName, securityv1alpha1.GroupName
	return []rbacv1.PolicyRule{
		rule(read, core, "cloudprofiles", "namespacedcloudprofiles", "controllerdeployments", "controllerregistrations", "exposureclasses", "projects", "quotas", "secretbindings"),
		rule(read, security, "credentialsbindings", "workloadidentities"),
		rule([]string{"patch", "update"}, core, "controllerdeployments", "secretbindings", "exposureclasses"),
		rule(slices.Concat(read, write), core, "seeds", "backupbuckets", "backupentries", "shootstates", "internalsecrets"),
		rule([]string{"get", "update", "patch"}, core, "seeds/status", "backupbuckets/status", "backupentries/status", "shoots/status", "controllerinstallations/status"),
		rule([]string{"get", "list", "watch", "update", "patch"}, core, "shoots", "controllerinstallations"),
		rule([]string{"create"}, core, "shoots/adminkubeconfig", "shoots/viewerkubeconfig"),
		rule(read, "", "namespaces", "services"),
		// The namespace seed-<name>, for the service accounts of the seed's extensions.
		rule([]string{"create"}, "", "namespaces"),
		rule(slices.Concat(read, write), "", "secrets", "configmaps", "serviceaccounts"),
		rule([]string{"create"}, "", "serviceaccounts/token"),
		rule([]string{"create", "patch", "update"}, "", "events"),
		rule([]string{"create", "patch", "update"}, "events.k8s.io", "events"),
		rule(slices.Concat(read, write), "coordination.k8s.io", "leases"),
		rule([]string{"get", "list", "watch", "create"}, "certificates.k8s.io", "certificatesigningrequests"),
		rule(slices.Concat(read, write), "rbac.authorization.k8s.io", "roles", "rolebindings", "clusterroles", "clusterrolebindings"),
		rule([]string{"bind", "escalate"}, "rbac.authorization.k8s.io", "roles", "clusterroles"),
	}
}

// bootstrapperRules is what a bootstrap token is good for: asking for a certificate.
func bootstrapperRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule([]string{"create", "get", "list", "watch"}, "certificates.k8s.io", "certificatesigningrequests")}
}

// globalReadRules is what every user may see.
func globalReadRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(read, corev1beta1.GroupName, "cloudprofiles", "exposureclasses", "seeds"),
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{corev1beta1.ClusterIdentity}, Verbs: []string{"get"}},
		// Everybody may found a project, and becomes its owner.
		rule([]string{"create"}, corev1beta1.GroupName, "projects"),
	}
}

// memberRules is what a project's admins do in its namespace.
func memberRules() []rbacv1.PolicyRule {
	core, security := corev1beta1.GroupName, securityv1alpha1.GroupName
	return []rbacv1.PolicyRule{
		rule(manage, core, "shoots", "secretbindings", "quotas", "namespacedcloudprofiles"),
		rule([]string{"create"}, core, "shoots/adminkubeconfig", "shoots/viewerkubeconfig"),
		rule(manage, security, "credentialsbindings", "workloadidentities"),
		rule(manage, "", "secrets", "configmaps"),
		rule(read, "", "events", "resourcequotas", "namespaces", "serviceaccounts"),
		rule(manage, "rbac.authorization.k8s.io", "roles", "rolebindings"),
		rule(read, "events.k8s.io", "events"),
	}
}

// viewerRules is what a project's viewers see in its namespace. Secrets are not among it.
func viewerRules() []rbacv1.PolicyRule {
	core, security := corev1beta1.GroupName, securityv1alpha1.GroupName
	return []rbacv1.PolicyRule{
		rule(read, core, "shoots", "secretbindings", "quotas", "namespacedcloudprofiles"),
		rule([]string{"create"}, core, "shoots/viewerkubeconfig"),
		rule(read, security, "credentialsbindings", "workloadidentities"),
		rule(read, "", "configmaps", "events", "resourcequotas", "namespaces", "serviceaccounts"),
		rule(read, "rbac.authorization.k8s.io", "roles", "rolebindings"),
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
