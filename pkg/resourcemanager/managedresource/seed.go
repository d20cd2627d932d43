package managedresource

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

// SeedRole is the ClusterRole, of resource-manager's chart, that a namespace's account has in its own namespace.
const SeedRole = "trellis.garden:managed-resources"

// seed returns the seed for ManagedResources of a namespace. Those of the garden namespace are gardenlet's and the
// operator's, and have all rights. Others have those of their namespace's account: whoever may write a ManagedResource
// in a namespace gets nothing beyond it.
func (r *Reconciler) seed(ctx context.Context, namespace string) (*target.Target, error) {
	if namespace == gardencorev1beta1.GardenNamespace {
		return r.Targets.Seed(), nil
	}
	if err := r.grant(ctx, namespace); err != nil {
		return nil, fmt.Errorf("rights of ManagedResources of class seed in namespace %s: %w", namespace, err)
	}
	return r.Targets.SeedFor(namespace)
}

// grant lets the account of a namespace of a shoot or an extension do everything within it. In other namespaces it has
// what an operator gave it.
func (r *Reconciler) grant(ctx context.Context, name string) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: SeedRole}}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(binding), binding); !apierrors.IsNotFound(err) {
		return err
	}
	namespace, err := r.namespace(ctx, name)
	if err != nil || namespace.DeletionTimestamp != nil {
		return err
	}
	role := namespace.Labels[gardencorev1beta1.GardenRole]
	if role != gardencorev1beta1.GardenRoleShoot && role != gardencorev1beta1.GardenRoleExtension {
		return nil
	}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: SeedRole}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: target.SeedAccount}}
	if err := r.Client.Create(ctx, binding); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (r *Reconciler) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	return namespace, r.Reader.Get(ctx, client.ObjectKey{Name: name}, namespace)
}

// leftBehind are the objects of a ManagedResource that have to be deleted. With a namespace that goes, all that is in
// it goes, the rights of its account first.
func (r *Reconciler) leftBehind(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) ([]resourcesv1alpha1.ObjectReference, error) {
	if ptr.Deref(mr.Spec.Class, "") != resourcesv1alpha1.ClassSeed ||
		mr.Namespace == gardencorev1beta1.GardenNamespace {
		return mr.Status.Resources, nil
	}
	namespace, err := r.namespace(ctx, mr.Namespace)
	if err != nil || namespace.DeletionTimestamp == nil {
		return mr.Status.Resources, client.IgnoreNotFound(err)
	}
	return slices.DeleteFunc(slices.Clone(mr.Status.Resources),
		func(ref resourcesv1alpha1.ObjectReference) bool { return ref.Namespace == mr.Namespace }), nil
}
