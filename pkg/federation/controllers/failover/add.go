package failover

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// Add registers the controllers with a manager. workIndex is the field index by which the Works of a binding are found.
func Add(mgr manager.Manager, options Options, workIndex string) error {
	if err := options.Validate(); err != nil {
		return err
	}
	return errors.Join(addTaints(mgr, options), addObjects(mgr, options, workIndex))
}

func controllerOptions(options Options, reconciler reconcile.Reconciler) controller.Options {
	return controller.Options{
		Reconciler: patient{reconciler}, MaxConcurrentReconciles: options.Workers, SkipNameValidation: new(true),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, 15*time.Second),
	}
}

// patient takes a conflict between two writers for another try: it says nothing to people.
type patient struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (p patient) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := p.Reconciler.Reconcile(ctx, request)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return result, err
}

func addTaints(mgr manager.Manager, options Options) error {
	t := &taints{client: mgr.GetClient(), events: mgr.GetEventRecorder("taints"), now: time.Now, options: options}
	c, err := controller.New("taints", mgr, controllerOptions(options, t))
	if err != nil {
		return err
	}
	toClusters := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ *policyv1alpha1.ClusterTaintPolicy) []reconcile.Request {
		all, err := listFleet(ctx, mgr.GetClient())
		if err != nil {
			return nil
		}
		var requests []reconcile.Request
		for _, cluster := range all {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
		}
		return requests
	})
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, &handler.TypedEnqueueRequestForObject[*clusterv1alpha1.Cluster]{})),
		c.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.ClusterTaintPolicy{}, toClusters)),
	)
}

func addObjects(mgr manager.Manager, options Options, workIndex string) error {
	o := &objects{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("failover"), now: time.Now, options: options,
		pace: newPace(options.EvictionRate), workIndex: workIndex,
	}
	c, err := controller.New("failover", mgr, controllerOptions(options, o))
	if err != nil {
		return err
	}
	toBindings := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, cluster *clusterv1alpha1.Cluster) []reconcile.Request {
		all, err := bindings.List(ctx, mgr.GetClient(), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil
		}
		var requests []reconcile.Request
		for _, b := range all {
			if mentions(b, cluster.Name) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			}
		}
		return requests
	})
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha2.ResourceBinding{}, &handler.TypedEnqueueRequestForObject[*workv1alpha2.ResourceBinding]{})),
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{}, &handler.TypedEnqueueRequestForObject[*workv1alpha2.ClusterResourceBinding]{})),
		c.Watch(source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, toBindings, stateChanged())),
	)
}

// stateChanged lets changes of readiness and taints through.
func stateChanged() predicate.TypedFuncs[*clusterv1alpha1.Cluster] {
	return predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
		UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
			const steady = clusterv1alpha1.SteadySinceAnnotation
			return isReady(e.ObjectOld) != isReady(e.ObjectNew) || e.ObjectOld.Annotations[steady] != e.ObjectNew.Annotations[steady] ||
				!equality.Semantic.DeepEqual(e.ObjectOld.Spec.Taints, e.ObjectNew.Spec.Taints)
		},
	}
}
