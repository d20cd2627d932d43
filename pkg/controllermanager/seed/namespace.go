package seed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// NamespaceReconciler gives every seed a namespace of the garden, seed-<name>, for what is exchanged with its gardenlet
// and for the identities of the extensions that run in it.
type NamespaceReconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller.
func (r *NamespaceReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("seed-namespace").
		For(&gardencorev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile creates the namespace of a seed, or deletes that of a seed that is gone.
func (r *NamespaceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   gardencorev1beta1.SeedNamespaceNamePrefix + request.Name,
		Labels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleSeed},
	}}
	err := r.Client.Get(ctx, request.NamespacedName, &gardencorev1beta1.Seed{})
	switch {
	case apierrors.IsNotFound(err):
		err = client.IgnoreNotFound(r.deleteOwn(ctx, namespace))
	case err == nil:
		err = client.IgnoreAlreadyExists(r.Client.Create(ctx, namespace))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("namespace %s of seed %s: %w", namespace.Name, request.Name, err)
	}
	return reconcile.Result{}, nil
}

// deleteOwn deletes the namespace unless it is somebody else's of that name.
func (r *NamespaceReconciler) deleteOwn(ctx context.Context, namespace *corev1.Namespace) error {
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return err
	}
	if namespace.Labels[gardencorev1beta1.GardenRole] != gardencorev1beta1.GardenRoleSeed ||
		namespace.DeletionTimestamp != nil {
		return nil
	}
	return r.Client.Delete(ctx, namespace)
}
