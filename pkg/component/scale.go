package component

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// Scale sets the replicas of a Deployment or StatefulSet and does not wait. The next Deploy sets what its Values say.
// The watchdog holds it no longer (see IsHeld).
func Scale(ctx context.Context, c client.Client, object client.Object, replicas int32) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,%q:null}},"spec":{"replicas":%d}}`,
		gardencorev1beta1.AnnotationMeltdownProtectionActive, gardencorev1beta1.AnnotationWatchdogReplicas, replicas)
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("scaling %s to %d: %w", apply.Describe(c.Scheme(), object), replicas, err)
	}
	return nil
}

// Stop scales a Deployment or StatefulSet to nothing and waits until its last pod is gone, which may still write. None
// at all is fine.
func Stop(ctx context.Context, c client.Client, object client.Object) error {
	if err := Scale(ctx, c, object, 0); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	// The answer to the patch is the object as it is.
	selector := podSelector(object)
	if selector == nil {
		return fmt.Errorf("%s has no selector of pods", apply.Describe(c.Scheme(), object))
	}
	return WaitUntilNoPods(ctx, c, object.GetNamespace(), selector.MatchLabels)
}
