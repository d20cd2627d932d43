// Package demand finds out what waits for room by policies that let the fleet grow, and what would help it, and writes
// that into the FleetGrowths. Others, who may, have machines added.
package demand

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

const (
	// renew is how old what was found may be before it is written again although nothing changed: it shows that
	// somebody looks.
	renew = 30 * time.Second
	// look is how often it is looked at without an event.
	look = 10 * time.Second
	// collect is how long events are collected: bindings wait and find room in crowds.
	collect = time.Second
)

// Snapshot gives the clusters of the fleet.
type Snapshot func(context.Context) (core.Snapshot, error)

// demand handles FleetGrowths.
type demand struct {
	client   client.Client
	snapshot Snapshot
	now      func() time.Time
}

// Add registers the controller with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, snapshot Snapshot, settings setup.Settings) error {
	d := &demand{client: mgr.GetClient(), snapshot: snapshot, now: time.Now}
	return setup.Add(mgr, "demand", settings(d),
		setup.Specs(mgr.GetCache(), &fleetv1alpha1.FleetGrowth{}),
		source.Kind(mgr.GetCache(), &workv1alpha2.ResourceBinding{}, toGrowth[*workv1alpha2.ResourceBinding]()),
		source.Kind(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{},
			toGrowth[*workv1alpha2.ClusterResourceBinding]()),
	)
}

// toGrowth wakes the FleetGrowth of a binding that changed.
func toGrowth[B bindings.Binding]() handler.TypedEventHandler[B, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(b B, q queue) {
		if name := growthOf(b.BindingSpec()); name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, collect)
		}
	}
	return handler.TypedFuncs[B, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[B], q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[B], q queue) {
			wake(e.ObjectOld, q)
			wake(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[B], q queue) { wake(e.Object, q) },
	}
}

func growthOf(spec *workv1alpha2.ResourceBindingSpec) string {
	if spec.Placement == nil {
		return ""
	}
	return spec.Placement.Growth
}

// Reconcile handles one FleetGrowth.
func (d *demand) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &fleetv1alpha1.FleetGrowth{}
	if err := d.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	found, err := d.find(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	if before := object.Status.Demand; before != nil && same(before, found) &&
		d.now().Sub(before.ObservedTime.Time) < renew {
		return reconcile.Result{RequeueAfter: look}, nil
	}
	before := object.DeepCopy()
	object.Status.Demand = found
	if err := d.client.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, fmt.Errorf("status of FleetGrowth %s: %w", object.Name, err)
	}
	return reconcile.Result{RequeueAfter: look}, nil
}

func same(a, b *fleetv1alpha1.GrowthDemand) bool {
	left, right := *a, *b
	left.ObservedTime, right.ObservedTime = metav1.Time{}, metav1.Time{}
	return apiequality.Semantic.DeepEqual(left, right)
}

// find out what waits, and which created shoots are used.
func (d *demand) find(ctx context.Context, object *fleetv1alpha1.FleetGrowth) (*fleetv1alpha1.GrowthDemand, error) {
	found := &fleetv1alpha1.GrowthDemand{ObservedTime: metav1.NewTime(d.now()), ObservedGeneration: object.Generation}
	list, err := bindings.List(ctx, d.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	if found.Used, err = d.used(ctx, object.Name, list); err != nil {
		return nil, err
	}
	waiting := slices.DeleteFunc(list,
		func(b bindings.Binding) bool { return growthOf(b.BindingSpec()) != object.Name || !waits(b) })
	slices.SortFunc(waiting, func(a, b bindings.Binding) int { return strings.Compare(nameOf(a), nameOf(b)) })
	snapshot, err := d.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	trial := newTrial(snapshot, object)
	for i, b := range waiting {
		if i == fleetv1alpha1.MaxGrowthDemand {
			found.Omitted = int32(len(waiting) - i)
			break
		}
		found.Items = append(found.Items, trial.item(b))
	}
	return found, nil
}

// used are the shoots created for a growth to which objects with divided replicas were sent. What every cluster gets
// anyway is no use of one.
func (d *demand) used(ctx context.Context, growth string, list []bindings.Binding) ([]string, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := d.client.List(ctx, &clusters, client.MatchingLabels{fleetv1alpha1.GrownForLabel: growth},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the created shoots: %w", err)
	}
	if len(clusters.Items) == 0 {
		return nil, nil
	}
	taken := map[string]bool{}
	for _, b := range list {
		spec := b.BindingSpec()
		if !divides(spec) {
			continue
		}
		for _, target := range spec.Clusters {
			taken[target.Name] = true
		}
	}
	var names []string
	for i := range clusters.Items {
		if name := clusters.Items[i].Name; taken[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
