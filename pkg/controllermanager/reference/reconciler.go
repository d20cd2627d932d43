// Package reference keeps Secrets and ConfigMaps that shoots and seeds refer to: they carry a finalizer for as long as
// somebody does.
package reference

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// Reconciler protects the objects of one namespace at a time: what the shoots and seeds that are there now refer to. It
// needs no memory, so nothing stays protected when the last reference went unseen.
type Reconciler struct {
	Client client.Client
	// Objects reads metadata without a cache: those of all projects are many, and needed rarely.
	Objects client.Reader
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Objects == nil {
		r.Objects = mgr.GetAPIReader()
	}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("reference-protection").
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(isProject))).
		Watches(&gardencorev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(namespaceOf),
			builder.WithPredicates(referencesChanged())).
		Watches(&gardencorev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(namespacesOfSeed), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(r)
}

func isProject(object client.Object) bool {
	return object.GetLabels()[gardencorev1beta1.GardenRole] == gardencorev1beta1.GardenRoleProject
}

// referencesChanged lets pass shoots that refer to other objects than before. Their generation does not tell: changes
// that are confined to the maintenance window leave it as it is.
func referencesChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*gardencorev1beta1.Shoot)
		after, isShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
		return !ok || !isShoot || !ByShoot(before).Equal(ByShoot(after))
	}}
}

func namespaceOf(_ context.Context, shoot client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: shoot.GetNamespace()}}}
}

// namespacesOfSeed: a change of a seed is seen with its old and its new references, so both are looked at.
func namespacesOfSeed(_ context.Context, object client.Object) []reconcile.Request {
	seed, ok := object.(*gardencorev1beta1.Seed)
	if !ok {
		return nil
	}
	namespaces := sets.New(gardencorev1beta1.GardenNamespace)
	for _, reference := range credentialsOf(seed) {
		namespaces.Insert(reference.Namespace)
	}
	var requests []reconcile.Request
	for _, namespace := range sets.List(namespaces.Delete("")) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: namespace}})
	}
	return requests
}

// Reconcile adds the finalizer to what is referred to in one namespace, and takes it from the rest.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wanted, err := r.referenced(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("references in namespace %s: %w", request.Name, err)
	}
	var errs []error
	for _, kind := range []string{kindSecret, kindConfigMap} {
		errs = append(errs, r.protect(ctx, request.Name, kind, wanted))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (r *Reconciler) referenced(ctx context.Context, namespace string) (sets.Set[Object], error) {
	shoots, seeds := &gardencorev1beta1.ShootList{}, &gardencorev1beta1.SeedList{}
	if err := r.Client.List(ctx, shoots, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing shoots: %w", err)
	}
	if err := r.Client.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing seeds: %w", err)
	}
	found := sets.New[Object]()
	for i := range shoots.Items {
		found = found.Union(ByShoot(&shoots.Items[i]))
	}
	for i := range seeds.Items {
		found = found.Union(BySeed(&seeds.Items[i], namespace))
	}
	return found, nil
}

func (r *Reconciler) protect(ctx context.Context, namespace, kind string, wanted sets.Set[Object]) error {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind + "List"}}
	if err := r.Objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing objects of kind %s in namespace %s: %w", kind, namespace, err)
	}
	var errs []error
	for i := range list.Items {
		object := &list.Items[i]
		object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: kind}
		if err := r.mark(ctx, object, wanted.Has(Object{kind, object.Name})); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("finalizer of %s %s/%s: %w", kind, namespace, object.Name, err))
		}
	}
	return errors.Join(errs...)
}

// mark adds or removes the finalizer. An object that is being deleted takes no new one.
func (r *Reconciler) mark(ctx context.Context, object *metav1.PartialObjectMetadata, wanted bool) error {
	if !wanted {
		return finalizer.Remove(ctx, r.Client, object, gardencorev1beta1.FinalizerReferenceProtection)
	}
	if object.DeletionTimestamp != nil {
		return nil
	}
	return finalizer.Ensure(ctx, r.Client, object, gardencorev1beta1.FinalizerReferenceProtection)
}
