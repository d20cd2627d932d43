package clusterautoscaler

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// shootObjects are what belongs to the cluster-autoscaler in the shoot: its rights, and the priorities of the pools.
func shootObjects(v Values) ([]client.Object, error) {
	objects := rights()
	if !wantsPriorities(v) {
		return objects, nil
	}
	data, err := priorities(v.MachineDeployments)
	if err != nil {
		return nil, err
	}
	return append(objects, &corev1.ConfigMap{
		ObjectMeta: component.SystemMeta(gardencorev1beta1.ClusterAutoscalerPriorityConfigMap, Name),
		Data:       map[string]string{gardencorev1beta1.ClusterAutoscalerPriorityKey: data},
	}), nil
}

// rights are what the cluster-autoscaler may do in the shoot: look at what decides where pods can run, and empty nodes.
func rights() []client.Object {
	const name = "system:" + Name
	read := []string{"get", "list", "watch"}
	global, local := component.SystemMeta(name, Name), component.SystemMeta(name, Name)
	global.Namespace = ""
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: metav1.NamespaceSystem}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: global, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{
					"namespaces", "persistentvolumeclaims", "persistentvolumes", "pods",
				}, Verbs: read,
			},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: read},
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: read},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: global, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: subjects,
		},
		&rbacv1.Role{ObjectMeta: local, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{gardencorev1beta1.ClusterAutoscalerPriorityConfigMap}, Verbs: read,
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: local, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: subjects,
		},
	}
}

// wantsPriorities says whether pools have priorities that count. Without one the ConfigMap is left to the user, who may
// say more in it than pools can.
func wantsPriorities(v Values) bool {
	if v.Config == nil || v.Config.Expander == nil {
		return false
	}
	modes := strings.Split(string(*v.Config.Expander), ",")
	return slices.Contains(modes, string(gardencorev1beta1.ClusterAutoscalerExpanderPriority)) &&
		slices.ContainsFunc(v.MachineDeployments,
			func(d extensionsv1alpha1.MachineDeployment) bool { return d.Priority != nil })
}

// priorities renders the priorities of pools as the expander reads them; that of a pool without one is 0.
func priorities(deployments []extensionsv1alpha1.MachineDeployment) (string, error) {
	expressions := map[int32][]string{}
	for _, deployment := range deployments {
		priority := int32(0)
		if deployment.Priority != nil {
			priority = *deployment.Priority
		}
		expressions[priority] = append(expressions[priority], "^"+regexp.QuoteMeta(deployment.Name)+"$")
	}
	rendered, err := yaml.Marshal(expressions)
	return string(rendered), err
}
