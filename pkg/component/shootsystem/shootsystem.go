// Package shootsystem holds the rules of access that every shoot starts with: how nodes join, what users that the
// garden has authorized may do, and what node-agent may read; and the priority classes that charts of extensions name.
package shootsystem

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

const (
	groupBootstrappers = "system:bootstrappers"
	groupNodes         = "system:nodes"
	viewerRole         = "gardener.cloud:system:read-only"
	nodeAgentRole      = "gardener-node-agent"
)

// Values of the rules.
type Values struct {
	// IsWorkerless leaves out what only clusters with nodes need.
	IsWorkerless bool
	// NodeAgentSecrets are the Secrets in kube-system that machines read their operating system configuration from.
	NodeAgentSecrets []string
}

// Decide makes the values of a cluster's rules.
func Decide(f component.Facts) Values {
	return Values{IsWorkerless: f.IsWorkerless, NodeAgentSecrets: f.NodeAgentSecrets}
}

// Objects returns the objects in the shoot.
func Objects(v Values) []client.Object {
	objects := []client.Object{
		bindGroups("gardener.cloud:system:admins", "cluster-admin",
			gardencorev1beta1.ShootGroupSystemAdmins, gardencorev1beta1.ShootGroupProjectAdmins),
		viewerClusterRole(),
		bindGroups("gardener.cloud:system:viewers", viewerRole,
			gardencorev1beta1.ShootGroupSystemViewers, gardencorev1beta1.ShootGroupProjectViewers),
	}
	if v.IsWorkerless {
		return objects
	}
	objects = append(objects, component.ShootPriorityClasses()...)
	return append(objects,
		bindGroups("gardener.cloud:target:node-bootstrapper", "system:node-bootstrapper", groupBootstrappers),
		bindGroups("gardener.cloud:target:approve-node-client-certificates",
			"system:certificates.k8s.io:certificatesigningrequests:nodeclient", groupBootstrappers),
		bindGroups("gardener.cloud:target:renew-node-client-certificates",
			"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", groupNodes),
		kubeletAccess(),
		nodeAgentSecrets(v.NodeAgentSecrets),
		nodeAgentBinding(),
	)
}

func labels() map[string]string {
	return map[string]string{component.LabelOrigin: component.OriginGardener}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func groups(names ...string) []rbacv1.Subject {
	subjects := make([]rbacv1.Subject, 0, len(names))
	for _, name := range names {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return subjects
}

func bindGroups(name, role string, names ...string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()}, RoleRef: clusterRole(role),
		Subjects: groups(names...),
	}
}

// kubeletAccess lets kube-apiserver use the API of kubelets, for logs, exec and metrics.
func kubeletAccess() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:kube-apiserver:kubelet", Labels: labels()},
		RoleRef:    clusterRole("system:kubelet-api-admin"),
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: kubeapiserver.KubeletClientUser},
		},
	}
}

// viewerClusterRole lets one read everything but Secrets. Rules cannot except a resource, so the core group is spelled
// out, and that of works, which embed what a fleet places in members; the other groups of Kubernetes hold no secrets,
// and those of custom resources opt in by aggregation.
func viewerClusterRole() *rbacv1.ClusterRole {
	read := []string{"get", "list", "watch"}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: viewerRole, Labels: labels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Verbs: read, Resources: []string{
				"bindings", "componentstatuses", "configmaps", "endpoints", "events", "limitranges", "namespaces",
				"namespaces/status", "nodes",
				"nodes/status", "persistentvolumeclaims", "persistentvolumeclaims/status", "persistentvolumes",
				"persistentvolumes/status",
				"pods", "pods/log", "pods/status", "podtemplates", "replicationcontrollers",
				"replicationcontrollers/scale",
				"replicationcontrollers/status", "resourcequotas", "resourcequotas/status", "serviceaccounts",
				"services", "services/status",
			}},
			{Verbs: read, Resources: []string{"*"}, APIGroups: []string{
				"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling",
				"batch",
				"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
				"flowcontrol.apiserver.k8s.io",
				"metrics.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
				"resource.k8s.io",
				"scheduling.k8s.io", "storage.k8s.io",
				"cluster.karmada.io", "policy.karmada.io",
			}},
			{APIGroups: []string{"work.karmada.io"}, Verbs: read, Resources: []string{
				"clusterresourcebindings", "clusterresourcebindings/status", "resourcebindings",
				"resourcebindings/status",
			}},
			{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		},
	}
}

// nodeAgentSecrets lets machines read their operating system configuration: with the bootstrap token that they start
// with, and with kubelet's certificate later.
func nodeAgentSecrets(names []string) *rbacv1.Role {
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: nodeAgentRole, Labels: labels()},
	}
	if len(names) > 0 {
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"},
			ResourceNames: slices.Sorted(slices.Values(names)),
		}}
	}
	return role
}

func nodeAgentBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: nodeAgentRole, Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: nodeAgentRole},
		Subjects:   groups(groupBootstrappers, groupNodes),
	}
}
