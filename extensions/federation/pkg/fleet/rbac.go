package fleet

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const roleName = "trellis.garden:federation"

// fleetRules is what the controllers do in a fleet: read whatever a policy may select, write statuses, and own what
// federation consists of.
func fleetRules() []rbacv1.PolicyRule {
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"*"}, Resources: []string{"*/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"work.karmada.io"}, Resources: []string{"*"}, Verbs: all},
		{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters", "clusters/status", "clusters/finalizers"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"apps.karmada.io"}, Resources: []string{"workloadrebalancers"}, Verbs: []string{"delete"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "delete"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	}
}

// ApplyRBAC lets the controllers' service account do in the fleet what they do there.
func ApplyRBAC(ctx context.Context, fleet client.Client) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, role, func() error { role.Rules = fleetRules(); return nil }); err != nil {
		return fmt.Errorf("cluster role %s in the fleet: %w", roleName, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: roleName}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: metav1.NamespaceSystem}}
		return nil
	}); err != nil {
		return fmt.Errorf("cluster role binding %s in the fleet: %w", roleName, err)
	}
	return nil
}
