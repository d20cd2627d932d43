package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// remove takes a Work's objects out of the member and then lets the Work go. A member that doesn't answer keeps its
// Works until it does, or until it leaves the fleet.
func (e *execution) remove(ctx context.Context, work *workv1alpha1.Work, name string,
	cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(work, workv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	if cluster == nil || isGivenUp(cluster, time.Now()) {
		return reconcile.Result{}, finalizer.Remove(ctx, e.client, work, workv1alpha1.Finalizer)
	}
	answer, err := e.gate.Ask(ctx, work, cluster)
	if err != nil || !answer.Go && !answer.Keep {
		return reconcile.Result{RequeueAfter: answer.After}, err
	}
	if answer.Keep {
		return reconcile.Result{}, finalizer.Remove(ctx, e.client, work, workv1alpha1.Finalizer)
	}
	member, connected := e.members.Get(name)
	if !connected || knownDown(cluster) {
		return reconcile.Result{RequeueAfter: retryRemoval}, nil
	}
	left, err := e.removeAll(ctx, member, work)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left > 0 {
		// The watch tells when they are gone; this is for kinds that it cannot watch.
		return reconcile.Result{RequeueAfter: retryRemoval}, nil
	}
	return reconcile.Result{}, finalizer.Remove(ctx, e.client, work, workv1alpha1.Finalizer)
}

// isGivenUp: a cluster that leaves the fleet and does not answer is most likely gone itself.
func isGivenUp(cluster *clusterv1alpha1.Cluster, now time.Time) bool {
	return cluster.DeletionTimestamp != nil && knownDown(cluster) &&
		now.Sub(cluster.DeletionTimestamp.Time) > giveUpUnreachable
}

// removeAll gives the number of objects that are still there.
func (e *execution) removeAll(ctx context.Context, member *members.Member, work *workv1alpha1.Work) (int, error) {
	var left int
	var failures []error
	for i := range work.Spec.Workload.Manifests {
		gone, err := e.removeManifest(ctx, member, work, i)
		if err != nil {
			failures = append(failures, err)
		}
		if !gone {
			left++
		}
	}
	return left, errors.Join(failures...)
}

// removeManifest leaves alone what the Work doesn't own, and what the member's owner keeps from the fleet.
func (e *execution) removeManifest(ctx context.Context, member *members.Member, work *workv1alpha1.Work,
	index int) (gone bool, err error) {
	object, err := decodeManifest(work, index)
	if err != nil {
		return false, err
	}
	if e.check(object) != nil {
		return true, nil
	}
	mapping, err := member.Mapping(object.GroupVersionKind())
	if isNoMatch(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	observed, err := member.Managed(ctx, mapping, object.GetNamespace(), object.GetName())
	if err != nil {
		return false, describe(object, err)
	}
	switch {
	case observed == nil || !isManaged(observed) || !belongsTo(observed, work):
		return true, nil
	case work.Spec.PreserveResourcesOnDeletion != nil && *work.Spec.PreserveResourcesOnDeletion:
		return true, unmark(ctx, member, mapping, observed)
	case observed.GetDeletionTimestamp() != nil:
		return false, nil
	}
	return false, deleteObject(ctx, member, mapping, observed)
}

func deleteObject(ctx context.Context, member *members.Member, mapping *meta.RESTMapping,
	observed *unstructured.Unstructured) error {
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	err := member.Resource(mapping, observed.GetNamespace()).Delete(ctx, observed.GetName(), metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground),
		Preconditions:     &metav1.Preconditions{UID: new(observed.GetUID())},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return describe(observed, err)
	}
	return nil
}

// unmark leaves the object to the member.
func unmark(ctx context.Context, member *members.Member, mapping *meta.RESTMapping,
	observed *unstructured.Unstructured) error {
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	patch :=
		fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null},"annotations":{%q:null,%q:null,%q:null,%q:null,%q:null,%q:null}}}`,
			workv1alpha1.ManagedLabel, workv1alpha1.PermanentIDLabel,
			workv1alpha1.NamespaceAnnotation, workv1alpha1.NameAnnotation, workv1alpha1.ConflictResolutionAnnotation,
			workv1alpha1.ContentHashAnnotation, workv1alpha1.TemplateGenerationAnnotation,
			workv1alpha1.TemplateUIDAnnotation)
	_, err := member.Resource(mapping, observed.GetNamespace()).Patch(ctx, observed.GetName(), types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: fieldManager})
	return client.IgnoreNotFound(err)
}
