package command

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// Uncached lists the kinds that extensions read from the API server directly.
func Uncached() []client.Object {
	return []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}, &corev1.ServiceAccount{}, &corev1.Pod{},
		&corev1.Service{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &appsv1.Deployment{}, &coordinationv1.Lease{},
		&networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &resourcesv1alpha1.ManagedResource{},
	}
}
