package managedseed

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// report writes conditions and the generation they are about, if that changes anything.
func (r *Reconciler) report(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	set ...gardencorev1beta1.Condition) error {
	before := managedSeed.DeepCopy()
	for _, condition := range set {
		managedSeed.Status.Conditions = conditions.Set(managedSeed.Status.Conditions, condition, time.Now())
	}
	managedSeed.Status.ObservedGeneration = managedSeed.Generation
	if apiequality.Semantic.DeepEqual(before.Status, managedSeed.Status) {
		return nil
	}
	if err := r.Garden.Status().Patch(ctx, managedSeed, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of ManagedSeed %s: %w", client.ObjectKeyFromObject(managedSeed), err)
	}
	return nil
}

// operationDone takes away the annotation that asked for an operation, unless another one was asked for meanwhile.
func (r *Reconciler) operationDone(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	before := managedSeed.DeepCopy()
	if _, asked := managedSeed.Annotations[gardencorev1beta1.GardenerOperation]; !asked {
		return nil
	}
	delete(managedSeed.Annotations, gardencorev1beta1.GardenerOperation)
	return r.Garden.Patch(ctx, managedSeed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
