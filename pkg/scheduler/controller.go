package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// retryPeriod is how often an unscheduled shoot is tried again although nothing seems to have changed.
	retryPeriod = 30 * time.Second
	// eventReason is the reason of events about shoots that fit nowhere.
	eventReason = "SchedulingFailed"
)

// Reconciler schedules shoots that have no seed.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Now      func() time.Time

	promises promises
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("garden-scheduler")
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-scheduler").
		For(&corev1beta1.Shoot{}, builder.WithPredicates(predicate.NewPredicateFuncs(needsSeed))).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.unscheduledShoots), builder.WithPredicates(seedChanged())).
		// Decisions are made one after the other, each knowing the ones before.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(r)
}

func needsSeed(obj client.Object) bool {
	shoot, ok := obj.(*corev1beta1.Shoot)
	return ok && shoot.Spec.SeedName == nil && shoot.DeletionTimestamp == nil &&
		ptr.Deref(shoot.Spec.SchedulerName, corev1beta1.DefaultSchedulerName) == corev1beta1.DefaultSchedulerName
}

// seedChanged lets pass what may make room for a shoot. Heartbeats in the status do not.
func seedChanged() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1beta1.Seed)
			after, isSeed := e.ObjectNew.(*corev1beta1.Seed)
			return !ok || !isSeed || before.Generation != after.Generation || notReady(before) != notReady(after) ||
				!apiequality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
		},
	}
}

func (r *Reconciler) unscheduledShoots(ctx context.Context, _ client.Object) []reconcile.Request {
	shoots := &corev1beta1.ShootList{}
	if err := r.Client.List(ctx, shoots); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list shoots")
		return nil
	}
	var requests []reconcile.Request
	for i := range shoots.Items {
		if needsSeed(&shoots.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shoots.Items[i])})
		}
	}
	return requests
}

// Reconcile schedules one shoot.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !needsSeed(shoot) {
		return reconcile.Result{}, nil
	}
	snapshot, err := r.snapshot(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("shoot %s: %w", request, err)
	}
	seed, reasons := Schedule(shoot, snapshot)
	if seed == "" {
		return reconcile.Result{RequeueAfter: retryPeriod}, r.reportPending(ctx, shoot, reasons)
	}
	if err := r.bind(ctx, shoot, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("bind shoot %s to seed %s: %w", request, seed, err)
	}
	ctrl.LoggerFrom(ctx).Info("Assigned a seed", "seed", seed, "others", reasons.String())
	return reconcile.Result{}, nil
}

func (r *Reconciler) snapshot(ctx context.Context, shoot *corev1beta1.Shoot) (Snapshot, error) {
	seeds, shoots := &corev1beta1.SeedList{}, &corev1beta1.ShootList{}
	if err := r.Client.List(ctx, seeds); err != nil {
		return Snapshot{}, fmt.Errorf("list seeds: %w", err)
	}
	if err := r.Client.List(ctx, shoots); err != nil {
		return Snapshot{}, fmt.Errorf("list shoots: %w", err)
	}
	snapshot := Snapshot{Seeds: pointers(seeds.Items), Shoots: pointers(shoots.Items)}
	snapshot.Promised = r.promises.outstanding(snapshot.Shoots)
	var err error
	if snapshot.Profile, err = r.profile(ctx, shoot); err != nil {
		return Snapshot{}, err
	}
	if name := shoot.Spec.ExposureClassName; name != nil {
		snapshot.ExposureClass = &corev1beta1.ExposureClass{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: *name}, snapshot.ExposureClass); err != nil {
			return Snapshot{}, fmt.Errorf("exposure class %s: %w", *name, err)
		}
	}
	return snapshot, nil
}

func (r *Reconciler) profile(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfileSpec, error) {
	reference := shoot.Spec.CloudProfile
	if reference == nil {
		return nil, nil
	}
	if reference.Kind == corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		profile := &corev1beta1.NamespacedCloudProfile{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: reference.Name}, profile); err != nil {
			return nil, fmt.Errorf("namespaced cloud profile %s: %w", reference.Name, err)
		}
		return profile.Status.CloudProfileSpec, nil
	}
	profile := &corev1beta1.CloudProfile{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: reference.Name}, profile); err != nil {
		return nil, fmt.Errorf("cloud profile %s: %w", reference.Name, err)
	}
	return &profile.Spec, nil
}

// bind writes the decision. A conflict means that the shoot has changed since, and that the decision is to be made again.
func (r *Reconciler) bind(ctx context.Context, shoot *corev1beta1.Shoot, seed string) error {
	bound := shoot.DeepCopy()
	bound.Spec.SeedName = &seed
	if err := r.Client.SubResource("binding").Update(ctx, bound); err != nil {
		return err
	}
	r.promises.add(shoot.UID, seed)
	return nil
}

// reportPending tells in the status why no seed fits, once per finding.
func (r *Reconciler) reportPending(ctx context.Context, shoot *corev1beta1.Shoot, reasons Reasons) error {
	message := "No seed fits. " + reasons.String()
	if len(reasons) == 0 {
		message = "No seed fits: the garden has none."
	}
	last := shoot.Status.LastOperation
	if last != nil && last.State == corev1beta1.LastOperationStatePending && last.Description == message {
		return nil
	}
	updated := shoot.DeepCopy()
	updated.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStatePending,
		Description: message, LastUpdateTime: metav1.NewTime(r.Now()),
	}
	if err := r.Client.Status().Patch(ctx, updated, client.MergeFrom(shoot)); err != nil {
		return fmt.Errorf("status of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, eventReason, "Schedule", "%s", message)
	return nil
}

// promises remembers decisions that the cache does not show yet, so that room is not given away twice.
type promises struct {
	mutex sync.Mutex
	seeds map[types.UID]string
}

func (p *promises) add(shoot types.UID, seed string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.seeds == nil {
		p.seeds = map[types.UID]string{}
	}
	p.seeds[shoot] = seed
}

// outstanding counts promises per seed, forgetting those that the shoots show, and those to shoots that are gone.
func (p *promises) outstanding(shoots []*corev1beta1.Shoot) map[string]int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	unbound := map[types.UID]bool{}
	for _, shoot := range shoots {
		unbound[shoot.UID] = shoot.Spec.SeedName == nil
	}
	counts := map[string]int{}
	for uid, seed := range p.seeds {
		if !unbound[uid] {
			delete(p.seeds, uid)
			continue
		}
		counts[seed]++
	}
	return counts
}

func pointers[T any](items []T) []*T {
	result := make([]*T, 0, len(items))
	for i := range items {
		result = append(result, &items[i])
	}
	return result
}
