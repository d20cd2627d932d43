package registration

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// rulesOf are what a user may do in a namespace, or everywhere if that is "".
func rulesOf(user, namespace string) []rbacv1.PolicyRule {
	roles := map[string][]rbacv1.PolicyRule{}
	var bound []string
	isUser := func(subject rbacv1.Subject) bool { return subject.Kind == rbacv1.UserKind && subject.Name == user }
	for _, object := range accessObjects() {
		if object.GetNamespace() != namespace {
			continue
		}
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			roles["ClusterRole "+o.Name] = o.Rules
		case *rbacv1.Role:
			roles["Role "+o.Name] = o.Rules
		case *rbacv1.ClusterRoleBinding:
			if slices.ContainsFunc(o.Subjects, isUser) {
				bound = append(bound, o.RoleRef.Kind+" "+o.RoleRef.Name)
			}
		case *rbacv1.RoleBinding:
			if slices.ContainsFunc(o.Subjects, isUser) {
				bound = append(bound, o.RoleRef.Kind+" "+o.RoleRef.Name)
			}
		}
	}
	var rules []rbacv1.PolicyRule
	for _, name := range bound {
		rules = append(rules, roles[name]...)
	}
	return rules
}

// mayWriteLease says whether the rules let somebody write a lease that is there.
func mayWriteLease(rules []rbacv1.PolicyRule, name string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		has := func(list []string, wanted ...string) bool {
			return slices.ContainsFunc(append(wanted, "*"), func(w string) bool { return slices.Contains(list, w) })
		}
		return has(rule.APIGroups, "coordination.k8s.io") && has(rule.Resources, "leases") &&
			has(rule.Verbs, "update", "patch", "delete", "deletecollection") &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
	})
}

// TestAttackLeasesOfTheGarden plays a scheduler, or an API server, that was taken over: it holds the lease by which
// replicas of another process, or gardenlets, say that they work.
func TestAttackLeasesOfTheGarden(t *testing.T) {
	for _, user := range []string{gardencorev1beta1.GardenSchedulerUser, gardencorev1beta1.GardenAPIServerUser} {
		everywhere := rulesOf(user, "")
		if len(everywhere) == 0 {
			t.Errorf("%s may do nothing", user)
		}
		rules := append(everywhere, rulesOf(user, Namespace)...)
		for _, lease := range []string{"garden-controller-manager", "local"} {
			if mayWriteLease(everywhere, lease) || mayWriteLease(rules, lease) {
				t.Errorf("%s may write lease %s", user, lease)
			}
		}
		if own := mayWriteLease(rules, "garden-scheduler"); own != (user == gardencorev1beta1.GardenSchedulerUser) {
			t.Errorf("%s may write the scheduler's lease: %v", user, own)
		}
		if mayWriteLease(everywhere, "garden-scheduler") {
			t.Errorf("%s may write leases of all namespaces", user)
		}
	}
}
