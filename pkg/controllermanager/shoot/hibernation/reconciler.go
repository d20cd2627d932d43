package hibernation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// DefaultTriggerDeadline is how late a schedule is still followed, e.g. after this process did not run.
	DefaultTriggerDeadline = 2 * time.Hour
	// margin keeps a wake-up a little after its minute has begun.
	margin = time.Second
)

// Reconciler follows the schedules of shoots.
type Reconciler struct {
	Client          client.Client
	Recorder        events.EventRecorder
	TriggerDeadline time.Duration
	Now             func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("garden-controller-manager")
	}
	if r.TriggerDeadline == 0 {
		r.TriggerDeadline = DefaultTriggerDeadline
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-hibernation").
		For(&gardencorev1beta1.Shoot{},
			builder.WithPredicates(predicate.NewPredicateFuncs(hasSchedules), hibernationChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(r)
}

// hibernationChanged lets pass shoots whose schedules may have changed. Their generation does not tell: changes that
// are confined to the maintenance window leave it as it is.
func hibernationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*gardencorev1beta1.Shoot)
		after, isShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
		return !ok || !isShoot || !apiequality.Semantic.DeepEqual(before.Spec.Hibernation, after.Spec.Hibernation)
	}}
}

func hasSchedules(object client.Object) bool {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	return ok && shoot.DeletionTimestamp == nil && shoot.Spec.Hibernation != nil &&
		len(shoot.Spec.Hibernation.Schedules) > 0
}

// Reconcile does what has become due for one shoot, and comes back for what is due next.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !hasSchedules(shoot) {
		return reconcile.Result{}, nil
	}
	table, err := parse(shoot.Spec.Hibernation.Schedules)
	if err != nil {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, "HibernationScheduleInvalid", "Hibernate", "%v", err)
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("shoot %s: %w", request, err))
	}
	now := r.Now()
	if due := table.due(since(shoot, now, r.TriggerDeadline), now); due != nil {
		if err := r.follow(ctx, shoot, due); err != nil {
			return reconcile.Result{}, fmt.Errorf("shoot %s: %w", request, err)
		}
	}
	next := table.next(now)
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: next.Sub(now) + margin}, nil
}

// since is the time after which triggers have not been followed yet: the last one that was, but no earlier than the
// deadline or the shoot's creation.
func since(shoot *gardencorev1beta1.Shoot, now time.Time, deadline time.Duration) time.Time {
	latest := now.Add(-deadline)
	if shoot.CreationTimestamp.After(latest) {
		latest = shoot.CreationTimestamp.Time
	}
	if last := shoot.Status.LastHibernationTriggerTime; last != nil && last.After(latest) {
		latest = last.Time
	}
	return latest
}

// follow writes what the trigger asks for, and then that it was followed: a crash between the two repeats it without
// harm.
func (r *Reconciler) follow(ctx context.Context, shoot *gardencorev1beta1.Shoot, due *trigger) error {
	if ptr.Deref(shoot.Spec.Hibernation.Enabled, false) != due.enabled {
		patch := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
		shoot.Spec.Hibernation.Enabled = &due.enabled
		if err := r.Client.Patch(ctx, shoot, patch); err != nil {
			r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, "HibernationFailed", "Hibernate",
				"The schedule of %s cannot be followed: %v", due.at.Format(time.RFC3339), err)
			return fmt.Errorf("setting spec.hibernation.enabled to %t: %w", due.enabled, err)
		}
		if due.enabled {
			r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, "Hibernated", "Hibernate",
				"Falls asleep by its schedule of %s", due.at.Format(time.RFC3339))
		} else {
			r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, "WokenUp", "Hibernate",
				"Wakes up by its schedule of %s", due.at.Format(time.RFC3339))
		}
	}
	patch := client.MergeFrom(shoot.DeepCopy())
	shoot.Status.LastHibernationTriggerTime = &metav1.Time{Time: due.at}
	if err := r.Client.Status().Patch(ctx, shoot, patch); err != nil {
		return fmt.Errorf("writing status.lastHibernationTriggerTime: %w", err)
	}
	return nil
}
