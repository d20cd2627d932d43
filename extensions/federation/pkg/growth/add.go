package growth

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// Add registers the controller with a manager for the seed. It looks at each fleet from time to time: what waits
// changes in the fleet, which is not watched from here.
func Add(mgr manager.Manager, gardenConfig *rest.Config, r *Reconciler) error {
	garden, err := fleet.Garden(gardenConfig)
	if err != nil {
		return err
	}
	r.Seed, r.Garden = mgr.GetClient(), garden
	return setup.Add(mgr, "growth", controller.Options{Reconciler: r, MaxConcurrentReconciles: 2},
		setup.Objects(mgr.GetCache(), &extensionsv1alpha1.Extension{}, fleets()))
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
