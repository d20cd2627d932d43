package shoot

import (
	"context"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/seednodes"
)

// isSeedSingleFor says whether the replicas of a shoot's control plane have to share one node. It is not asked for
// control planes without replicas.
func (r *Reconciler) isSeedSingleFor(ctx context.Context, shoot *gardencorev1beta1.Shoot) (bool, error) {
	if gardencorev1beta1.FailureToleranceOf(&shoot.Spec) == "" {
		return false, nil
	}
	return seednodes.AreSingle(ctx, r.Seed)
}
