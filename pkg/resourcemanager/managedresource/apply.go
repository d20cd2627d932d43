package managedresource

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// parallelApplies bounds the requests in flight for one ManagedResource.
const parallelApplies = 8

// outcome of applying one ManagedResource.
type outcome struct {
	// live holds the objects as the server returned them, those with a health of their own only.
	live []*unstructured.Unstructured
	// pending lists objects that wait for their kind (a CustomResourceDefinition that is not established yet).
	pending []string
	// err joins everything that failed.
	err error
}

// applier works on one target cluster.
type applier struct {
	client client.Client
	// origin is written to applied objects, and only objects with it are deleted.
	origin string
	// inject holds labels for all objects.
	inject map[string]string
	// ownLabels and ownAnnotations remove from objects what others set.
	ownLabels, ownAnnotations bool
	// deleteClaims makes the claims of deleted StatefulSets go with them.
	deleteClaims bool
}

// scope gives namespaced objects without a namespace the namespace `default` and takes it from cluster-scoped ones.
// Unknown kinds are left as they are: they fail (and are retried) when they are applied.
func (a applier) scope(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		namespaced, err := a.client.IsObjectNamespaced(object)
		switch {
		case err != nil:
		case !namespaced:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(metav1.NamespaceDefault)
		}
	}
}

// apply brings all objects to the target, phase by phase. A failing object does not keep others back.
func (a applier) apply(ctx context.Context, objects []*unstructured.Unstructured) outcome {
	var (
		mu   sync.Mutex
		out  outcome
		errs []error
	)
	for _, phase := range Phases(objects) {
		parallel(phase, func(object *unstructured.Unstructured) {
			err := a.applyOne(ctx, object)

			mu.Lock()
			defer mu.Unlock()
			switch {
			case meta.IsNoMatchError(err):
				out.pending = append(out.pending, describe(object))
			case err != nil:
				errs = append(errs, err)
			case HasHealth(object):
				out.live = append(out.live, object)
			}
		})
	}
	out.err = errors.Join(errs...)
	return out
}

// applyOne applies an object; afterwards it holds what the server stored.
func (a applier) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	Mark(object, a.origin, a.inject)
	if err := a.preserveReplicas(ctx, object); err != nil {
		return err
	}
	desired := object.DeepCopy()
	err := apply.Unstructured(ctx, a.client, apply.ResourceManager, object)
	if apierrors.IsInvalid(err) && desired.GetAnnotations()[resourcesv1alpha1.DeleteOnInvalidUpdate] == "true" {
		return a.recreate(ctx, desired)
	}
	if err != nil {
		return err
	}
	return a.removeForeign(ctx, desired, object)
}

// recreate deletes an object whose immutable fields changed; it is created by the next run, when it is gone.
func (a applier) recreate(ctx context.Context, object *unstructured.Unstructured) error {
	err := a.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s, because an immutable field changed: %w", describe(object), err)
	}
	return apply.Unstructured(ctx, a.client, apply.ResourceManager, object)
}

// preserveReplicas takes the replicas from the target for objects that ask for it.
func (a applier) preserveReplicas(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetAnnotations()[resourcesv1alpha1.PreserveReplicas] != "true" {
		return nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := a.client.Get(ctx, client.ObjectKeyFromObject(object), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the replicas of %s to preserve: %w", describe(object), err)
	}
	if replicas, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas"); found && err == nil {
		return unstructured.SetNestedField(object.Object, replicas, "spec", "replicas")
	}
	return nil
}

// read gets the objects anew; those that are gone are left out and named.
func (a applier) read(ctx context.Context,
	refs []*unstructured.Unstructured) (live []*unstructured.Unstructured, gone []string, err error) {
	for _, ref := range refs {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(ref.GroupVersionKind())
		err := a.client.Get(ctx, client.ObjectKeyFromObject(ref), object)
		if apierrors.IsNotFound(err) {
			gone = append(gone, describe(ref))
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", describe(ref), err)
		}
		live = append(live, object)
	}
	return live, gone, nil
}

// remove deletes objects and returns those that are not gone yet. Objects that belong to another ManagedResource by
// now, are to be kept or ignored, or whose kind does not exist any more count as gone.
func (a applier) remove(ctx context.Context,
	refs []resourcesv1alpha1.ObjectReference) (remaining []resourcesv1alpha1.ObjectReference, err error) {
	var (
		mu   sync.Mutex
		errs []error
	)
	parallel(refs, func(ref resourcesv1alpha1.ObjectReference) {
		gone, err := a.removeOne(ctx, ref)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting %s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, err))
		}
		if !gone {
			remaining = append(remaining, ref)
		}
	})
	return remaining, errors.Join(errs...)
}

// removeOne deletes one object and says whether it is gone.
func (a applier) removeOne(ctx context.Context, ref resourcesv1alpha1.ObjectReference) (gone bool, err error) {
	if ref.Annotations[resourcesv1alpha1.KeepObject] == "true" ||
		ref.Annotations[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore {
		return true, nil
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(ref.GroupVersionKind())
	err = a.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	annotations := object.GetAnnotations()
	if annotations[resourcesv1alpha1.OriginAnnotation] != a.origin ||
		annotations[resourcesv1alpha1.KeepObject] == "true" ||
		annotations[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore {
		return true, nil
	}
	if a.deleteClaims && ref.GroupVersionKind().GroupKind() == statefulSets {
		return a.removeWithClaims(ctx, client.ObjectKeyFromObject(object))
	}
	if object.DeletionTimestamp == nil {
		err = a.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// parallel calls do for all items, some at a time.
func parallel[T any](items []T, do func(T)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, parallelApplies)
	for _, item := range items {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(item)
		})
	}
	group.Wait()
}

// describe names an object in messages.
func describe(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
