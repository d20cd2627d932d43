package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// aggregateTo begins the label with which cluster roles of extensions add their rules to a role of project members.
const aggregateTo = "rbac.gardener.cloud/aggregate-to-"

// extensible returns a role of project members to which extensions may add rules: the role itself, whose rules
// Kubernetes keeps to be the sum, and the part that every garden has.
func extensible(name, kind string, rules []rbacv1.PolicyRule) []client.Object {
	part := clusterRole(name+"-aggregation", rules)
	part.Labels = map[string]string{aggregateTo + kind: "true"}
	sum := sumOf(name, rules, map[string]string{aggregateTo + kind: "true"})
	sum.Labels = map[string]string{gardencorev1beta1.GardenRole: kind}
	return []client.Object{part, sum}
}

// operators returns a role of operators: the sum of a part of its own and of roles of project members.
func operators(name, part string, rules, members []rbacv1.PolicyRule, kinds ...string) []client.Object {
	own := clusterRole("gardener.cloud:"+part, rules)
	own.Labels = map[string]string{gardencorev1beta1.GardenRole: part}
	selectors := []map[string]string{own.Labels}
	for _, kind := range kinds {
		selectors = append(selectors, map[string]string{gardencorev1beta1.GardenRole: kind})
	}
	return []client.Object{own, sumOf(name, append(rules, members...), selectors...)}
}

// sumOf is a role with the rules of all roles that one of the sets of labels selects. It begins with the rules that are
// known here, since it may take a while until Kubernetes has summed them up.
func sumOf(name string, known []rbacv1.PolicyRule, selectors ...map[string]string) *rbacv1.ClusterRole {
	role := clusterRole(name, known)
	role.AggregationRule = &rbacv1.AggregationRule{}
	for _, labels := range selectors {
		role.AggregationRule.ClusterRoleSelectors = append(role.AggregationRule.ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: labels})
	}
	return role
}

// bringRoleTo corrects a role. The rules of a sum are left to Kubernetes once it is one.
func bringRoleTo(present, wanted *rbacv1.ClusterRole) {
	for key, value := range wanted.Labels {
		metav1.SetMetaDataLabel(&present.ObjectMeta, key, value)
	}
	if wanted.AggregationRule == nil || present.AggregationRule == nil {
		present.Rules = heldBack(present, wanted)
	}
	present.AggregationRule = wanted.AggregationRule
}
