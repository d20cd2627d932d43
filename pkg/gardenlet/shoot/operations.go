package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
)

// takeOperations begins the rotations that are asked for and takes them out of the annotation, in this order: killed in between,
// gardenlet begins them again, which changes nothing. It returns the Shoot to go on with.
func takeOperations(ctx context.Context, writer *statusWriter, shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	operations := rotation.Operations(shoot)
	if err := writer.update(ctx, rotation.Begin(shoot, operations, metav1.Now())); err != nil {
		return nil, err
	}
	if err := writer.dropOperations(ctx, operations); err != nil {
		return nil, err
	}
	// The specification stays the one that this operation is for; a newer one has an operation of its own.
	taken := shoot.DeepCopy()
	taken.Status = writer.current().Status
	return taken, nil
}

// dropOperations takes operations out of the annotation of the Shoot; what others add to it meanwhile must not get lost.
func (w *statusWriter) dropOperations(ctx context.Context, done []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	patch := client.MergeFromWithOptions(w.shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	left := slices.DeleteFunc(gardencorev1beta1.SplitOperations(w.shoot.Annotations[gardencorev1beta1.GardenerOperation]), func(operation string) bool {
		return slices.Contains(done, operation)
	})
	if len(left) > 0 {
		w.shoot.Annotations[gardencorev1beta1.GardenerOperation] = strings.Join(left, ";")
	} else {
		delete(w.shoot.Annotations, gardencorev1beta1.GardenerOperation)
	}
	if err := w.garden.Patch(ctx, w.shoot, patch); err != nil {
		return fmt.Errorf("taking operations %s out of the annotations of Shoot %s/%s: %w", strings.Join(done, ", "), w.shoot.Namespace, w.shoot.Name, err)
	}
	return nil
}
