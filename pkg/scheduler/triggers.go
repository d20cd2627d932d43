package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Limits of the pause after a failure.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Minute
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers the controller. A shoot is scheduled when it is created or changed, and while it waits
// whenever something changes that a decision depends on.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.setDefaults(mgr)
	waiting := handler.EnqueueRequestsFromMapFunc(r.waitingShoots)
	controllers := ctrl.NewControllerManagedBy(mgr).
		Named("shoot-scheduler").
		Watches(&gardencorev1beta1.Shoot{}, r.shootHandler()).
		Watches(&gardencorev1beta1.Seed{}, waiting, builder.WithPredicates(changes(seedDiffers))).
		Watches(&gardencorev1beta1.CloudProfile{}, waiting, builder.WithPredicates(changes(profileDiffers))).
		Watches(&gardencorev1beta1.NamespacedCloudProfile{}, waiting,
			builder.WithPredicates(changes(namespacedProfileDiffers))).
		Watches(&gardencorev1beta1.ExposureClass{}, waiting, builder.WithPredicates(changes(classDiffers)))
	if r.Strategy == MinimalDistance {
		controllers = controllers.Watches(&corev1.ConfigMap{}, waiting,
			builder.WithPredicates(predicate.NewPredicateFuncs(isRegionConfig)))
	}
	return controllers.
		WithOptions(controller.Options{
			// Decisions are made one after the other, each knowing the ones before.
			MaxConcurrentReconciles: 1,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				shortestPause, longestPause),
		}).
		Complete(r)
}

func (r *Reconciler) setDefaults(mgr ctrl.Manager) {
	r.usage = newUsage()
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("garden-scheduler")
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Strategy == "" {
		r.Strategy = SameRegion
	}
	if r.SchedulerName == "" {
		r.SchedulerName = gardencorev1beta1.DefaultSchedulerName
	}
	if r.RetryPeriod == 0 {
		r.RetryPeriod = DefaultRetryPeriod
	}
}

func (r *Reconciler) needsSeed(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.SeedName == nil && shoot.DeletionTimestamp == nil &&
		ptr.Deref(shoot.Spec.SchedulerName, gardencorev1beta1.DefaultSchedulerName) == r.SchedulerName
}

// waitingShoots are all shoots that may fit somewhere now.
func (r *Reconciler) waitingShoots(context.Context, client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range r.usage.waiting() {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// shootHandler keeps the usage, has new and changed shoots scheduled, and the waiting ones when another left a seed.
func (r *Reconciler) shootHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if shoot, ok := e.Object.(*gardencorev1beta1.Shoot); ok {
				r.observed(ctx, shoot, r.needsSeed(shoot), q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*gardencorev1beta1.Shoot)
			after, isShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
			if ok && isShoot {
				// What is written here, the status, is no reason to look again.
				changed := before.Generation != after.Generation || before.UID != after.UID || !r.needsSeed(before)
				r.observed(ctx, after, changed && r.needsSeed(after), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if r.usage.forget(client.ObjectKeyFromObject(e.Object)) {
				r.enqueueWaiting(ctx, q)
			}
		},
	}
}

func (r *Reconciler) observed(ctx context.Context, shoot *gardencorev1beta1.Shoot, schedule bool, q queue) {
	roomier := r.usage.observe(shoot, r.needsSeed(shoot))
	if schedule {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
	}
	if roomier {
		r.enqueueWaiting(ctx, q)
	}
}

func (r *Reconciler) enqueueWaiting(ctx context.Context, q queue) {
	for _, request := range r.waitingShoots(ctx, nil) {
		q.Add(request)
	}
}

// changes lets creations and deletions pass, and those updates that make a difference.
func changes[T client.Object](differs func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, same := e.ObjectNew.(T)
		return ok && same && differs(before, after)
	}}
}

// seedDiffers: heartbeats do not count.
func seedDiffers(before, after *gardencorev1beta1.Seed) bool {
	return before.Generation != after.Generation ||
		!apiequality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!apiequality.Semantic.DeepEqual(notReady(before), notReady(after)) ||
		!apiequality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}

func profileDiffers(before, after *gardencorev1beta1.CloudProfile) bool {
	return !apiequality.Semantic.DeepEqual(before.Spec.SeedSelector, after.Spec.SeedSelector)
}

func namespacedProfileDiffers(before, after *gardencorev1beta1.NamespacedCloudProfile) bool {
	return !apiequality.Semantic.DeepEqual(selectorOf(before), selectorOf(after)) ||
		(before.Status.CloudProfileSpec == nil) != (after.Status.CloudProfileSpec == nil)
}

func selectorOf(profile *gardencorev1beta1.NamespacedCloudProfile) *gardencorev1beta1.SeedSelector {
	if profile.Status.CloudProfileSpec == nil {
		return nil
	}
	return profile.Status.CloudProfileSpec.SeedSelector
}

func classDiffers(before, after *gardencorev1beta1.ExposureClass) bool {
	return !apiequality.Semantic.DeepEqual(before.Scheduling, after.Scheduling)
}

func isRegionConfig(object client.Object) bool {
	return object.GetNamespace() == gardencorev1beta1.GardenNamespace &&
		object.GetLabels()[LabelPurpose] == PurposeRegionConfig
}
