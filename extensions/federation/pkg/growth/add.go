package growth

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	"github.com/trellis-garden/trellis/pkg/apis"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Add registers the controller with a manager for the seed. It looks at each fleet from time to time: what waits changes in the fleet,
// which is not watched from here.
func Add(mgr manager.Manager, gardenConfig *rest.Config, r *Reconciler) error {
	garden, err := client.New(gardenConfig, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		return fmt.Errorf("connecting to the garden: %w", err)
	}
	r.Seed, r.Garden = mgr.GetClient(), garden
	c, err := controller.New("growth", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 2})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &extensionsv1alpha1.Extension{}, &handler.TypedEnqueueRequestForObject[*extensionsv1alpha1.Extension]{}, fleets()))
}

// fleets passes those that are there at the start or come later; from then on each is looked at by the clock.
func fleets() predicate.TypedFuncs[*extensionsv1alpha1.Extension] {
	never := func(event.TypedUpdateEvent[*extensionsv1alpha1.Extension]) bool { return false }
	return predicate.TypedFuncs[*extensionsv1alpha1.Extension]{
		CreateFunc: func(e event.TypedCreateEvent[*extensionsv1alpha1.Extension]) bool {
			return e.Object.Spec.Type == fleet.Type
		},
		UpdateFunc: never,
		DeleteFunc: func(event.TypedDeleteEvent[*extensionsv1alpha1.Extension]) bool { return false },
	}
}
