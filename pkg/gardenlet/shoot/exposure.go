package shoot

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/exposure"
)

// gatewayOf is where the API server of a shoot is reached: as its exposure class says, else where all others are.
func (r *Reconciler) gatewayOf(ctx context.Context, shoot *gardencorev1beta1.Shoot) (config.Gateway, error) {
	name := shoot.Spec.ExposureClassName
	if name == nil {
		return r.Config.Gateway, nil
	}
	class := &gardencorev1beta1.ExposureClass{}
	if err := r.Garden.Get(ctx, client.ObjectKey{Name: *name}, class); err != nil {
		return config.Gateway{}, fmt.Errorf("reading ExposureClass %s: %w", *name, err)
	}
	gateway, err := exposure.Gateway(ctx, r.Seed, r.Config, class.Handler)
	if err != nil {
		return config.Gateway{}, fmt.Errorf("spec.exposureClassName %q: %w", *name, err)
	}
	return gateway, nil
}
