package component

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
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

// annotationReplicas, at a StatefulSet that was stopped, is how many replicas it had, if they were several.
const annotationReplicas = "trellis.garden/replicas"

// Stop scales a Deployment or StatefulSet to nothing and waits until its last pod is gone, which may still write. None
// at all is fine.
func Stop(ctx context.Context, c client.Client, object client.Object) error {
	if set, ok := object.(*appsv1.StatefulSet); ok {
		if err := noteReplicas(ctx, c, set); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
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

// Start starts what Stop has stopped, and does not wait: a StatefulSet with all of its replicas, as its members need
// each other, and a Deployment with one.
func Start(ctx context.Context, c client.Client, object client.Object) error {
	set, ok := object.(*appsv1.StatefulSet)
	if !ok {
		return Scale(ctx, c, object, 1)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("reading %s: %w", apply.Describe(c.Scheme(), set), err)
	}
	return Scale(ctx, c, set, believed(set.Annotations[annotationReplicas]))
}

// noteReplicas notes at a StatefulSet how many replicas it has. What was noted stays while it is stopped already.
func noteReplicas(ctx context.Context, c client.Client, set *appsv1.StatefulSet) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("reading %s: %w", apply.Describe(c.Scheme(), set), err)
	}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	if replicas < 2 || set.Annotations[annotationReplicas] == strconv.Itoa(int(replicas)) {
		return nil
	}
	before := set.DeepCopy()
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, annotationReplicas, strconv.Itoa(int(replicas)))
	if err := c.Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("noting the replicas of %s: %w", apply.Describe(c.Scheme(), set), err)
	}
	return nil
}
