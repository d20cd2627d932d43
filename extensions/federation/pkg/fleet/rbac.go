package fleet

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

const (
	roleName        = "trellis.garden:federation"
	mastersRoleName = "trellis.garden:federation:masters"
)

// fleetRules is what the controllers do in a fleet: read whatever a policy may select, write statuses, and own what
// federation consists of.
func fleetRules() []rbacv1.PolicyRule {
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"*"}, Resources: []string{"*/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"work.karmada.io"}, Resources: []string{"*"}, Verbs: all},
		{
			APIGroups: []string{"cluster.karmada.io"},
			Resources: []string{"clusters", "clusters/status", "clusters/finalizers"},
			Verbs:     []string{"patch", "update"},
		},
		{APIGroups: []string{"apps.karmada.io"}, Resources: []string{"workloadrebalancers"}, Verbs: []string{"delete"}},
		{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"patch"}},
		// CronFederatedHPAs change the limits of FederatedHPAs.
		{APIGroups: []string{"autoscaling.karmada.io"}, Resources: []string{"federatedhpas"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "delete"}},
		// Requests for Clusters are handed back as those of who asked (package memberapi). Nothing else is done as
		// somebody else: the verb "impersonate" would allow that. Extra fields are subresources of any name.
		{
			APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"*"},
			Verbs: []string{"impersonate:user-info"},
		},
		{
			APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"serviceaccounts"},
			Verbs: []string{"impersonate:serviceaccount"},
		},
		{
			APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters", "clusters/status"},
			Verbs: append(registration.ImpersonateOn("user-info"), registration.ImpersonateOn("serviceaccount")...),
		},
		{APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"},
			ResourceNames: []string{clusterv1alpha1.APIServiceName, clusterv1alpha1.TrialAPIServiceName},
			Verbs:         []string{"delete", "patch"},
		},
		{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
			Verbs: []string{"create", "patch", "update"},
		},
	}
}

// mastersRules is what fleetv1alpha1.MastersGroup may do.
func mastersRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters", "clusters/status"},
			Verbs: []string{"*"},
		},
	}
}

// credentialsRules is what the controllers do in the namespace of the members' credentials: renew them, make those of
// impersonators, and remove those of members that left. The way to the process for the kube-apiserver is there too.
func credentialsRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"create", "delete", "patch", "update"},
		},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create", "patch"}},
		{
			APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"},
			Verbs: []string{"create", "patch"},
		},
		// One of several processes leads. What is to be created has no name yet that a rule could give.
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
			ResourceNames: []string{fleetv1alpha1.LeaderLease}, Verbs: []string{"update"},
		},
	}
}

// revisionsRules is what the controllers do in the namespace of the revisions of objects with a staged rollout.
func revisionsRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete"}},
	}
}

// ApplyRBAC lets the controllers' service account do in the fleet what they do there.
func ApplyRBAC(ctx context.Context, fleet client.Client) error {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: metav1.NamespaceSystem}
	masters := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: fleetv1alpha1.MastersGroup}
	return errors.Join(
		applyClusterRBAC(ctx, fleet, roleName, fleetRules(), account),
		applyClusterRBAC(ctx, fleet, mastersRoleName, mastersRules(), masters),
		applyNamespaceRBAC(ctx, fleet, clusterv1alpha1.CredentialsNamespace, credentialsRules(), account),
		applyNamespaceRBAC(ctx, fleet, workv1alpha2.RevisionsNamespace, revisionsRules(), account),
	)
}

// applyClusterRBAC lets somebody do something everywhere.
func applyClusterRBAC(ctx context.Context, fleet client.Client, name string, rules []rbacv1.PolicyRule,
	subject rbacv1.Subject) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, role,
		func() error { role.Rules = rules; return nil }); err != nil {
		return fmt.Errorf("cluster role %s in the fleet: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		binding.Subjects = []rbacv1.Subject{subject}
		return nil
	}); err != nil {
		return fmt.Errorf("cluster role binding %s in the fleet: %w", name, err)
	}
	return nil
}

// applyNamespaceRBAC lets the controllers do more in a namespace, which it creates.
func applyNamespaceRBAC(ctx context.Context, fleet client.Client, name string, rules []rbacv1.PolicyRule,
	subject rbacv1.Subject) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, namespace, func() error { return nil }); err != nil {
		return fmt.Errorf("namespace %s in the fleet: %w", namespace.Name, err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: roleName}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, role,
		func() error { role.Rules = rules; return nil }); err != nil {
		return fmt.Errorf("role %s in the fleet: %w", client.ObjectKeyFromObject(role), err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: roleName}}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName}
		binding.Subjects = []rbacv1.Subject{subject}
		return nil
	}); err != nil {
		return fmt.Errorf("role binding %s in the fleet: %w", client.ObjectKeyFromObject(binding), err)
	}
	return nil
}
