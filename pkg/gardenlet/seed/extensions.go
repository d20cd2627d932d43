package seed

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

// extensionsOf returns the extensions that a seed has itself, by type: what it asks for, and what is enabled for every
// seed.
func extensionsOf(seed *gardencorev1beta1.Seed,
	registrations []gardencorev1beta1.ControllerRegistration) map[string]gardencorev1beta1.Extension {
	wanted := map[string]gardencorev1beta1.Extension{}
	for _, registration := range registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind == extensionsv1alpha1.ExtensionResource &&
				slices.Contains(resource.AutoEnable, gardencorev1beta1.ClusterTypeSeed) {
				wanted[resource.Type] = gardencorev1beta1.Extension{Type: resource.Type}
			}
		}
	}
	for _, asked := range seed.Spec.Extensions {
		if ptr.Deref(asked.Disabled, false) {
			delete(wanted, asked.Type)
			continue
		}
		wanted[asked.Type] = asked
	}
	return wanted
}

// installExtensions writes the seed's own Extensions, and deletes those that it does not have any more. It tells what
// those lack that are not ready.
func (r *Reconciler) installExtensions(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := r.Garden.List(ctx, registrations); err != nil {
		return fmt.Errorf("listing ControllerRegistrations: %w", err)
	}
	wanted := extensionsOf(seed, registrations.Items)
	if err := r.removeExtensions(ctx, wanted); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		object := &extensionsv1alpha1.Extension{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: name},
		}
		err := extension.Deploy(ctx, r.Seed, object, false, func() {
			object.Spec.DefaultSpec = extensionsv1alpha1.DefaultSpec{
				Type: name, Class: new(extensionsv1alpha1.ExtensionClassSeed),
				ProviderConfig: wanted[name].ProviderConfig,
			}
		})
		if err != nil {
			return err
		}
		if err := extension.Check(object); err != nil {
			return fmt.Errorf("extension %s: %w", name, err)
		}
	}
	return nil
}

// removeExtensions deletes the seed's Extensions that are not wanted.
func (r *Reconciler) removeExtensions(ctx context.Context, wanted map[string]gardencorev1beta1.Extension) error {
	present := &extensionsv1alpha1.ExtensionList{}
	if err := r.Seed.List(ctx, present, client.InNamespace(gardencorev1beta1.GardenNamespace)); err != nil {
		return fmt.Errorf("listing the seed's extensions: %w", err)
	}
	for i := range present.Items {
		if _, keep := wanted[present.Items[i].Name]; !keep {
			if err := extension.Destroy(ctx, r.Seed, &present.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
