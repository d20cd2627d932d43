package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// FinalizerRemovalName is the name of the plugin that keeps users from removing the garden's finalizers.
const FinalizerRemovalName = "FinalizerRemoval"

// verbRemoveFinalizers is the custom verb of those who may remove finalizers all the same, to clean up by hand.
const verbRemoveFinalizers = "remove-finalizers"

// finalizerRemoval keeps objects until what they stand for is gone: without its finalizer a shoot would vanish from the
// garden while its machines stay, and are paid for.
type finalizerRemoval struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &finalizerRemoval{}

func newFinalizerRemoval() *finalizerRemoval {
	return &finalizerRemoval{Handler: admission.NewHandler(admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (f *finalizerRemoval) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, isObject := a.GetObject().(metav1.Object)
	old, wasObject := a.GetOldObject().(metav1.Object)
	if !isObject || !wasObject {
		return nil
	}
	removed := removedFinalizers(object, old)
	if len(removed) == 0 || isGone(old) || actsForTheGarden(a.GetUserInfo()) ||
		f.may(ctx, a.GetUserInfo(), permissionOn(a, verbRemoveFinalizers)) {
		return nil
	}
	return admission.NewForbidden(a,
		fmt.Errorf("metadata.finalizers: %s is removed by the garden when nothing is left to clean up; whoever has "+
			"to clean up by hand needs the custom verb %s",
			strings.Join(removed, ", "), verbRemoveFinalizers))
}

// removedFinalizers returns the garden's finalizers that an update removes.
func removedFinalizers(object, old metav1.Object) []string {
	var removed []string
	for _, finalizer := range old.GetFinalizers() {
		if isGardenFinalizer(finalizer) && !slices.Contains(object.GetFinalizers(), finalizer) {
			removed = append(removed, finalizer)
		}
	}
	return removed
}

// isGardenFinalizer recognises gardener, gardener.cloud/… and core.gardener.cloud/…
func isGardenFinalizer(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return domain == gardencorev1beta1.GardenerName || domain == "gardener.cloud" ||
		strings.HasSuffix(domain, ".gardener.cloud")
}

// isGone tells whether a shoot's deletion has succeeded, so that only the object is left.
func isGone(object metav1.Object) bool {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok || shoot.DeletionTimestamp == nil || shoot.Status.LastOperation == nil {
		return false
	}
	last := shoot.Status.LastOperation
	return last.Type == gardencorev1beta1.LastOperationTypeDelete &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded
}
