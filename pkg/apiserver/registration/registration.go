// Package registration makes the objects with which the garden's kube-apiserver reaches garden-apiserver and trusts the
// garden's own processes. Whoever sets up a garden applies them to its kube-apiserver.
package registration

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Namespace and ServiceName are where the APIServices look for garden-apiserver. Its serving certificate has to be
// valid for ServerName.
const (
	Namespace   = "garden"
	ServiceName = "garden-apiserver"
	ServerName  = ServiceName + "." + Namespace + ".svc"
)

// Target is where garden-apiserver listens, as the garden's kube-apiserver sees it.
type Target struct {
	// Host is a DNS name that resolves in the pod of the garden's kube-apiserver. Default:
	// garden-apiserver.garden.svc.cluster.local, the Service of the runtime cluster.
	Host string
	// Port defaults to 443.
	Port int32
	// CABundle verifies the serving certificate (PEM).
	CABundle []byte
}

// groupVersions are the versions that garden-apiserver serves.
var groupVersions = []schema.GroupVersion{
	gardencorev1.SchemeGroupVersion, gardencorev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
	seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion,
}

// Objects returns everything to apply, in order.
//
// The garden runs no pods, so the Service is of type ExternalName: kube-aggregator connects to the name it gives, on
// the port of the APIService, and verifies the certificate for ServerName. kube-apiserver must run with
// --enable-aggregator-routing=false, its default.
func Objects(target Target) []client.Object {
	if target.Host == "" {
		target.Host = ServerName + ".cluster.local"
	}
	if target.Port == 0 {
		target.Port = 443
	}
	objects := []client.Object{
		&corev1.Namespace{TypeMeta: typeMeta("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		service(target),
	}
	for _, version := range groupVersions {
		objects = append(objects, apiService(target, version))
	}
	return append(objects, accessObjects()...)
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func service(target Target) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ServiceName},
		Spec: corev1.ServiceSpec{
			Type:         corev1.ServiceTypeExternalName,
			ExternalName: target.Host,
			Ports:        []corev1.ServicePort{{Name: "https", Port: target.Port, Protocol: corev1.ProtocolTCP}},
		},
	}
}

func apiService(target Target, version schema.GroupVersion) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		TypeMeta:   typeMeta("apiregistration.k8s.io/v1", "APIService"),
		ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group:                version.Group,
			Version:              version.Version,
			GroupPriorityMinimum: 9999,
			VersionPriority:      10,
			CABundle:             target.CABundle,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: Namespace, Name: ServiceName, Port: new(target.Port),
			},
		},
	}
}

// accessObjects let the garden's own processes do their work, and nothing else.
func accessObjects() []client.Object {
	objects := []client.Object{
		clusterRole("gardener.cloud:system:garden-apiserver", apiServerRules()...),
		clusterRoleBinding("gardener.cloud:system:garden-apiserver", "gardener.cloud:system:garden-apiserver",
			gardencorev1beta1.GardenAPIServerUser),
		clusterRoleBinding("gardener.cloud:system:garden-apiserver:auth-delegator", "system:auth-delegator",
			gardencorev1beta1.GardenAPIServerUser),
		roleBinding(metav1.NamespaceSystem, "gardener.cloud:system:garden-apiserver:auth-reader",
			"extension-apiserver-authentication-reader", gardencorev1beta1.GardenAPIServerUser),
		clusterRoleBinding("gardener.cloud:system:garden-controller-manager", "cluster-admin",
			gardencorev1beta1.GardenControllerManagerUser),
		clusterRole("gardener.cloud:system:garden-scheduler", schedulerRules()...),
		clusterRoleBinding("gardener.cloud:system:garden-scheduler", "gardener.cloud:system:garden-scheduler",
			gardencorev1beta1.GardenSchedulerUser),
		// Distances between regions, which the scheduler reads, are ConfigMaps in the garden's namespace.
		role(Namespace, "gardener.cloud:system:garden-scheduler", append(leaseRules("garden-scheduler"),
			rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"},
			})...),
		roleBinding(Namespace, "gardener.cloud:system:garden-scheduler", "gardener.cloud:system:garden-scheduler",
			gardencorev1beta1.GardenSchedulerUser),
	}
	return objects
}

func apiServerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
		// Those that are let to seeds are watched by their label.
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create"}},
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch"},
		},
		// The admission plugin ResourceQuota counts what users create.
		{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"resourcequotas/status"}, Verbs: []string{"update"}},
		// Gardenlets see their own requests only; who asked for which one is to be known.
		{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"},
			Verbs: []string{"get", "list", "watch"},
		},
	}
}

func schedulerRules() []rbacv1.PolicyRule {
	group := gardencorev1beta1.SchemeGroupVersion.Group
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{group}, Resources: []string{
				"shoots", "seeds", "cloudprofiles", "namespacedcloudprofiles", "projects", "exposureclasses",
			}, Verbs: []string{
				"get", "list", "watch",
			},
		},
		{
			APIGroups: []string{group}, Resources: []string{"shoots/binding", "shoots/status"},
			Verbs: []string{"get", "update", "patch"},
		},
		{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
			Verbs: []string{"create", "patch", "update"},
		},
	}
}

// leaseRules let one of several replicas hold a lease, and none of another process.
func leaseRules(name string) []rbacv1.PolicyRule {
	const group, resource = "coordination.k8s.io", "leases"
	return []rbacv1.PolicyRule{
		// It has no name yet when it is asked who may create it.
		{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}},
		{
			APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name},
			Verbs: []string{"get", "update"},
		},
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"),
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules,
	}
}

func clusterRoleBinding(name, role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{userSubject(user)},
	}
}

func roleBinding(namespace, name, role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{userSubject(user)},
	}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}
