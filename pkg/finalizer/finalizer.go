// Package finalizer adds finalizers to objects and takes them away, in one way: with a patch that holds only if the
// object is still as it was read. A list of finalizers is written as a whole; without that lock, a controller would
// take away what another added in the meantime.
package finalizer

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Ensure adds the finalizer unless the object has it. The object is as the API has it afterwards. A conflict means that
// the object has changed since it was read; reconciling it again is the answer.
func Ensure(ctx context.Context, c client.Writer, object client.Object, name string) error {
	if controllerutil.ContainsFinalizer(object, name) {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(object, name)
	if err := patch(ctx, c, object, before); err != nil {
		return fmt.Errorf("adding finalizer %s: %w", name, err)
	}
	return nil
}

// Remove takes the finalizer away. It is no error if the object is gone or does not have it. On conflicts see [Ensure].
func Remove(ctx context.Context, c client.Writer, object client.Object, name string) error {
	if !controllerutil.ContainsFinalizer(object, name) {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(object, name)
	if err := client.IgnoreNotFound(patch(ctx, c, object, before)); err != nil {
		return fmt.Errorf("removing finalizer %s: %w", name, err)
	}
	return nil
}

func patch(ctx context.Context, c client.Writer, object, before client.Object) error {
	return c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
