// Package growth carries out FleetGrowths: it enlarges worker pools of shoots of a fleet's project, creates shoots
// there, and gives both back. What it did is written on the Shoots, so it goes on wherever it was stopped.
package growth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

const (
	// interval is how often a fleet with FleetGrowths is looked at.
	interval = 10 * time.Second
	// idleInterval is how often one without is.
	idleInterval = time.Minute
)

// Reconciler carries out the FleetGrowths of one fleet after another. A request names the fleet's Extension object.
type Reconciler struct {
	// Seed reads Extensions, Clusters and the fleets' credentials.
	Seed client.Client
	// Garden changes the shoots of a fleet's project, as far as the garden lets it.
	Garden client.Client
	// FleetScheme knows the kinds of fleets.
	FleetScheme *runtime.Scheme
	// Now is the clock.
	Now func() time.Time
}

// Reconcile handles one fleet.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &extensionsv1alpha1.Extension{}
	if err := r.Seed.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot, err := cluster.Get(ctx, r.Seed, object.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !isServing(object, shoot) {
		return reconcile.Result{RequeueAfter: idleInterval}, nil
	}
	fleet, err := cluster.ShootClient(ctx, r.Seed, object.Namespace, r.FleetScheme)
	if err != nil {
		return reconcile.Result{}, err
	}
	found, err := r.Sync(ctx, fleet, client.ObjectKeyFromObject(shoot.Shoot))
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("growth of fleet %s/%s: %w", shoot.Shoot.Namespace, shoot.Shoot.Name, err)
	}
	if !found {
		return reconcile.Result{RequeueAfter: idleInterval}, nil
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// isServing: the fleet's API is there and not about to go.
func isServing(object *extensionsv1alpha1.Extension, shoot *cluster.Cluster) bool {
	last := object.Status.LastOperation
	return object.DeletionTimestamp == nil && shoot != nil && shoot.Shoot != nil &&
		shoot.Shoot.DeletionTimestamp == nil &&
		!shoot.IsHibernated() && last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded
}

// Sync handles the FleetGrowths of a fleet once, and tells whether there are any. The key is that of the fleet's Shoot.
func (r *Reconciler) Sync(ctx context.Context, fleet client.Client, key client.ObjectKey) (bool, error) {
	var growths fleetv1alpha1.FleetGrowthList
	err := fleet.List(ctx, &growths)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return false, nil // The fleet was not reconciled since it could grow.
	}
	if err != nil {
		return false, fmt.Errorf("listing FleetGrowths: %w", err)
	}
	if len(growths.Items) == 0 {
		return false, nil
	}
	w, err := r.look(ctx, fleet, key)
	if err != nil {
		return true, err
	}
	var failures []error
	for i := range growths.Items {
		if err := w.handle(ctx, &growths.Items[i]); err != nil {
			failures = append(failures, fmt.Errorf("FleetGrowth %s: %w", growths.Items[i].Name, err))
		}
	}
	return true, errors.Join(failures...)
}

// world is what growth depends on, as it was found a moment ago, and kept up to date with what is done.
type world struct {
	garden, fleet client.Client
	now           time.Time
	// key of the fleet's Shoot, and what the garden lets the fleet do.
	key           client.ObjectKey
	pools, create bool
	shoots        []gardencorev1beta1.Shoot
	clusters      map[string]*clusterv1alpha1.Cluster
}

func (r *Reconciler) look(ctx context.Context, fleet client.Client, key client.ObjectKey) (*world, error) {
	w := &world{garden: r.Garden, fleet: fleet, now: r.Now(), key: key, clusters: map[string]*clusterv1alpha1.Cluster{}}
	var list gardencorev1beta1.ShootList
	if err := r.Garden.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the shoots of the project: %w", err)
	}
	w.shoots = list.Items
	for i := range w.shoots {
		if w.shoots[i].Name == key.Name {
			allowed := w.shoots[i].Annotations[fleetv1alpha1.AllowGrowthAnnotation]
			w.pools = fleetv1alpha1.AllowsGrowth(allowed, fleetv1alpha1.GrowPools)
			w.create = w.pools && fleetv1alpha1.AllowsGrowth(allowed, fleetv1alpha1.GrowShoots)
		}
	}
	var clusters clusterv1alpha1.ClusterList
	if err := fleet.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		w.clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	return w, nil
}

// handle one FleetGrowth: nothing is done before the finalizer is there, and it goes when everything is given back.
func (w *world) handle(ctx context.Context, object *fleetv1alpha1.FleetGrowth) error {
	if object.DeletionTimestamp == nil && w.pools &&
		!controllerutil.ContainsFinalizer(object, fleetv1alpha1.GrowthFinalizer) {
		before := object.DeepCopy()
		controllerutil.AddFinalizer(object, fleetv1alpha1.GrowthFinalizer)
		if err := w.fleet.Patch(ctx, object,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	before := object.DeepCopy()
	w.act(ctx, object)
	if !apiequality.Semantic.DeepEqual(before.Status, object.Status) {
		if err := w.fleet.Status().Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	if object.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(object, fleetv1alpha1.GrowthFinalizer) ||
		w.has(object.Name) {
		return nil
	}
	before = object.DeepCopy()
	controllerutil.RemoveFinalizer(object, fleetv1alpha1.GrowthFinalizer)
	return client.IgnoreNotFound(w.fleet.Patch(ctx, object,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// log is that of the request, with the FleetGrowth.
func (w *world) log(ctx context.Context, object *fleetv1alpha1.FleetGrowth) logr.Logger {
	return logr.FromContextOrDiscard(ctx).WithValues("fleet", w.key, "growth", object.Name)
}
