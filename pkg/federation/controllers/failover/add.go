package failover

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// Add registers the controllers with a manager. workIndex is the field index by which the Works of a binding are found.
func Add(mgr manager.Manager, options Options, workIndex string, settings setup.Settings) error {
	if err := options.Validate(); err != nil {
		return err
	}
	return errors.Join(addTaints(mgr, options, settings), addObjects(mgr, options, workIndex, settings))
}

func addTaints(mgr manager.Manager, options Options, settings setup.Settings) error {
	t := &taints{client: mgr.GetClient(), events: mgr.GetEventRecorder("taints"), now: time.Now, options: options}
	toClusters := func(ctx context.Context, _ *policyv1alpha1.ClusterTaintPolicy) []reconcile.Request {
		all, err := listFleet(ctx, mgr.GetClient())
		if err != nil {
			return nil
		}
		return requestsFor(slices.Collect(maps.Values(all)))
	}
	return setup.Add(mgr, "taints", settings(t),
		setup.Objects(mgr.GetCache(), &clusterv1alpha1.Cluster{}),
		setup.Concerned(mgr.GetCache(), &policyv1alpha1.ClusterTaintPolicy{}, toClusters),
	)
}

func addObjects(mgr manager.Manager, options Options, workIndex string, settings setup.Settings) error {
	o := &objects{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("failover"), now: time.Now, options: options,
		pace: newPace(options.EvictionRate), workIndex: workIndex,
	}
	toBindings := func(ctx context.Context, cluster *clusterv1alpha1.Cluster) []reconcile.Request {
		all, err := bindings.List(ctx, mgr.GetClient(), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil
		}
		return requestsFor(slices.DeleteFunc(all, func(b bindings.Binding) bool { return !mentions(b, cluster.Name) }))
	}
	return setup.Add(mgr, "failover", settings(o),
		setup.Objects(mgr.GetCache(), &workv1alpha2.ResourceBinding{}),
		setup.Objects(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{}),
		setup.Concerned(mgr.GetCache(), &clusterv1alpha1.Cluster{}, toBindings, stateChanged()),
	)
}

func requestsFor[T client.Object](objects []T) []reconcile.Request {
	var requests []reconcile.Request
	for _, object := range objects {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return requests
}

// stateChanged lets changes of readiness and taints through.
func stateChanged() predicate.TypedFuncs[*clusterv1alpha1.Cluster] {
	return predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
		UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
			const steady = clusterv1alpha1.SteadySinceAnnotation
			return isReady(e.ObjectOld) != isReady(e.ObjectNew) ||
				e.ObjectOld.Annotations[steady] != e.ObjectNew.Annotations[steady] ||
				!apiequality.Semantic.DeepEqual(e.ObjectOld.Spec.Taints, e.ObjectNew.Spec.Taints)
		},
	}
}
