package seed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/exposure"
)

// expose makes the ways to the gateway that exposure classes name.
func (r *Reconciler) expose(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	used, err := r.usedHandlers(ctx, seed)
	if err != nil {
		return err
	}
	return exposure.Apply(ctx, r.Seed, r.Config, used)
}

// usedHandlers are those of the exposure classes that the seed's shoots have.
func (r *Reconciler) usedHandlers(ctx context.Context, seed *gardencorev1beta1.Seed) (sets.Set[string], error) {
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Garden.List(ctx, shoots, client.MatchingFields{"spec.seedName": seed.Name}); err != nil {
		return nil, fmt.Errorf("listing the shoots of seed %s: %w", seed.Name, err)
	}
	classes := sets.New[string]()
	for i := range shoots.Items {
		if name := ptr.Deref(shoots.Items[i].Spec.ExposureClassName, ""); name != "" {
			classes.Insert(name)
		}
	}
	handlers := sets.New[string]()
	for name := range classes {
		class := &gardencorev1beta1.ExposureClass{}
		if err := r.Garden.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
			return nil, fmt.Errorf("reading ExposureClass %s: %w", name, err)
		}
		handlers.Insert(class.Handler)
	}
	return handlers, nil
}
