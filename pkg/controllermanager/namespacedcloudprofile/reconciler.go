// Package namespacedcloudprofile merges cloud profiles of projects with their parents, and follows changes of both.
package namespacedcloudprofile

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Reconciler writes status.cloudProfileSpec.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller. A change of a parent enqueues its children.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("namespacedcloudprofile").
		For(&gardencorev1beta1.NamespacedCloudProfile{}, changed).
		Watches(&gardencorev1beta1.CloudProfile{}, handler.EnqueueRequestsFromMapFunc(r.children), changed).
		Complete(r)
}

func (r *Reconciler) children(ctx context.Context, parent client.Object) []reconcile.Request {
	profiles := &gardencorev1beta1.NamespacedCloudProfileList{}
	if err := r.Client.List(ctx, profiles, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list namespaced cloud profiles")
		return nil
	}
	var requests []reconcile.Request
	for i := range profiles.Items {
		if profiles.Items[i].Spec.Parent.Name == parent.GetName() {
			requests = append(requests, reconcile.Request{
				NamespacedName: client.ObjectKeyFromObject(&profiles.Items[i]),
			})
		}
	}
	return requests
}

// Reconcile merges one profile with its parent.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	profile := &gardencorev1beta1.NamespacedCloudProfile{}
	if err := r.Client.Get(ctx, request.NamespacedName, profile); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if profile.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	parent := &gardencorev1beta1.CloudProfile{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: profile.Spec.Parent.Name}, parent); err != nil {
		return reconcile.Result{}, fmt.Errorf("namespaced cloud profile %s: spec.parent: %w", request, err)
	}
	merged, err := Merge(&parent.Spec, &profile.Spec)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("namespaced cloud profile %s: %w", request, err))
	}
	before := profile.DeepCopy()
	profile.Status.CloudProfileSpec, profile.Status.ObservedGeneration = merged, profile.Generation
	if apiequality.Semantic.DeepEqual(before.Status, profile.Status) {
		return reconcile.Result{}, nil
	}
	// The status is written as a whole: two processes that merge must not mix their results.
	if err := r.Client.Status().Update(ctx, profile); err != nil {
		return reconcile.Result{}, fmt.Errorf("status of namespaced cloud profile %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}
