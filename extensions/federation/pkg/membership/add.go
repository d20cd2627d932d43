package membership

import (
	"context"
	"reflect"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// Add registers the controller with a manager for the seed. It watches the shoots of the garden in the namespaces of
// the seed's fleets: others are not for its eyes.
func Add(mgr manager.Manager, gardenConfig *rest.Config, r *Reconciler) error {
	garden, err := fleet.Garden(gardenConfig)
	if err != nil {
		return err
	}
	r.Seed, r.Garden = mgr.GetClient(), garden
	c, err := setup.New(mgr, "membership", controller.Options{Reconciler: r, MaxConcurrentReconciles: 5},
		setup.Objects(mgr.GetCache(), &extensionsv1alpha1.Extension{}, becameServing()))
	if err != nil {
		return err
	}
	r.Follow = follow(func(namespace string) (cache.Cache, error) {
		return cache.New(gardenConfig, cache.Options{
			Scheme: garden.Scheme(), Mapper: garden.RESTMapper(),
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		})
	}, func(shoots cache.Cache) error {
		return c.Watch(setup.Concerned(shoots, &gardencorev1beta1.Shoot{}, r.fleetsOf, membershipChanged()))
	})
	return nil
}

// fleetsOf lists the fleets of this seed that a shoot may be a member of.
func (r *Reconciler) fleetsOf(ctx context.Context, shoot *gardencorev1beta1.Shoot) []reconcile.Request {
	var list extensionsv1alpha1.ExtensionList
	if err := r.Seed.List(ctx, &list); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		object := &list.Items[i]
		if object.Spec.Type != fleet.Type {
			continue
		}
		if owner, err := cluster.Get(ctx, r.Seed, object.Namespace); err != nil || owner == nil || owner.Shoot == nil ||
			owner.Shoot.Namespace != shoot.Namespace {
			continue
		}
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return requests
}

// becameServing passes fleets that are there at the start or have been reconciled.
func becameServing() predicate.TypedFuncs[*extensionsv1alpha1.Extension] {
	return predicate.TypedFuncs[*extensionsv1alpha1.Extension]{
		CreateFunc: func(e event.TypedCreateEvent[*extensionsv1alpha1.Extension]) bool {
			return e.Object.Spec.Type == fleet.Type
		},
		UpdateFunc: func(e event.TypedUpdateEvent[*extensionsv1alpha1.Extension]) bool {
			return e.ObjectNew.Spec.Type == fleet.Type && succeeded(e.ObjectNew) && !succeeded(e.ObjectOld)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*extensionsv1alpha1.Extension]) bool {
			return e.Object.Spec.Type == fleet.Type
		},
	}
}

func succeeded(object *extensionsv1alpha1.Extension) bool {
	last := object.Status.LastOperation
	return last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded
}

// membershipChanged ignores the frequent changes of a shoot's status that mean nothing to a fleet.
func membershipChanged() predicate.TypedFuncs[*gardencorev1beta1.Shoot] {
	return predicate.TypedFuncs[*gardencorev1beta1.Shoot]{
		UpdateFunc: func(e event.TypedUpdateEvent[*gardencorev1beta1.Shoot]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return wantsMembership(before) != wantsMembership(after) || isReachable(before) != isReachable(after) ||
				isAsleep(before) != isAsleep(after) ||
				!reflect.DeepEqual(before.Spec.Hibernation, after.Spec.Hibernation) ||
				authoritiesOf(before, "") != authoritiesOf(after, "") ||
				!reflect.DeepEqual(labelsFor(before), labelsFor(after)) ||
				!reflect.DeepEqual(zonesOf(before), zonesOf(after))
		},
	}
}
