package component

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// mostBelieved is the largest number of replicas that an annotation is believed.
const mostBelieved = 10

// IsHeld says whether the dependency watchdog of the seed keeps a Deployment stopped. Whoever deploys it leaves its
// replicas alone meanwhile; whoever scales it, by Scale, ends that.
func IsHeld(object client.Object) bool {
	_, held := object.GetAnnotations()[gardencorev1beta1.AnnotationMeltdownProtectionActive]
	return held
}

// Hold stops a Deployment until Release, and notes at it how many replicas it had. It fails with a conflict if the
// Deployment has changed since it was read.
func Hold(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	before := deployment.DeepCopy()
	if !IsHeld(deployment) {
		replicas := strconv.Itoa(int(ptr.Deref(deployment.Spec.Replicas, 1)))
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, gardencorev1beta1.AnnotationWatchdogReplicas, replicas)
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, gardencorev1beta1.AnnotationMeltdownProtectionActive, "")
	}
	deployment.Spec.Replicas = new(int32(0))
	return patchHold(ctx, c, deployment, before, "holding")
}

// Release gives a Deployment its replicas back. It fails as Hold does.
func Release(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	before := deployment.DeepCopy()
	if ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		deployment.Spec.Replicas = new(believed(deployment.Annotations[gardencorev1beta1.AnnotationWatchdogReplicas]))
	}
	delete(deployment.Annotations, gardencorev1beta1.AnnotationMeltdownProtectionActive)
	delete(deployment.Annotations, gardencorev1beta1.AnnotationWatchdogReplicas)
	return patchHold(ctx, c, deployment, before, "releasing")
}

// believed are the replicas that were noted; 1 if nothing was, or what makes no sense.
func believed(noted string) int32 {
	replicas, err := strconv.ParseInt(noted, 10, 32)
	if err != nil || replicas < 1 || replicas > mostBelieved {
		return 1
	}
	return int32(replicas)
}

func patchHold(ctx context.Context, c client.Client, deployment, before *appsv1.Deployment, doing string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("%s %s: %w", doing, apply.Describe(c.Scheme(), before), err)
	}
	return nil
}

// ApplyUnlessHeld applies a Deployment as Apply does, but for its replicas while it is held.
func ApplyUnlessHeld(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	current := &appsv1.Deployment{}
	if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(deployment), current)); err != nil {
		return fmt.Errorf("reading %s: %w", apply.Describe(c.Scheme(), deployment), err)
	}
	if IsHeld(current) {
		deployment = deployment.DeepCopy()
		// What is not sent stays: Hold has set it, so it is not gardenlet's to take back.
		deployment.Spec.Replicas = nil
	}
	return Apply(ctx, c, deployment)
}
