// Package maintenance keeps shoots up to date in their maintenance windows: Kubernetes and machine images follow the
// cloud profile, operations that were put off are started, credentials whose time has come are rotated, failed
// operations are tried again.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// upToDate is the description of a maintenance that had nothing to change.
const upToDate = "Nothing to update."

// Reconciler maintains shoots.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Now      func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("garden-controller-manager")
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-maintenance").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(changed())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(r)
}

// changed lets pass what may move the next maintenance of a shoot: its window, or that somebody asks for it.
func changed() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*gardencorev1beta1.Shoot)
			after, isShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
			return !ok || !isShoot || askedFor(after) || windowOf(before) != windowOf(after) ||
				isIgnored(before) != isIgnored(after)
		},
	}
}

func windowOf(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.MaintenanceTimeWindow {
	if shoot.Spec.Maintenance == nil || shoot.Spec.Maintenance.TimeWindow == nil {
		return gardencorev1beta1.MaintenanceTimeWindow{}
	}
	return *shoot.Spec.Maintenance.TimeWindow
}

func isIgnored(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Annotations[gardencorev1beta1.ShootIgnore] == "true"
}

// Reconcile maintains one shoot when it is time, and comes back for the next maintenance.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if shoot.DeletionTimestamp != nil || isIgnored(shoot) {
		return reconcile.Result{}, nil
	}
	now := r.Now()
	at, err := nextMaintenance(shoot, now)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("shoot %s: spec.maintenance.timeWindow: %w",
			request, err))
	}
	if !at.After(now) || askedFor(shoot) {
		if err := r.maintain(ctx, shoot, now); err != nil {
			return reconcile.Result{}, fmt.Errorf("maintenance of shoot %s: %w", request, err)
		}
		if at, err = nextMaintenance(shoot, now); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: max(at.Sub(now), time.Second)}, nil
}

// maintain updates a shoot, and tells in its status what became of that. When the API refuses the updates, the
// operations are still started.
func (r *Reconciler) maintain(ctx context.Context, shoot *gardencorev1beta1.Shoot, now time.Time) error {
	profile, err := r.profile(ctx, shoot)
	if err != nil {
		return err
	}
	updated := shoot.DeepCopy()
	changes, failures := Update(updated, profile, now)
	changes = append(changes, Operate(updated, now)...)
	err = r.patch(ctx, shoot, updated)
	if isRefusal(err) {
		failures = append(failures, "the API refused the updates: "+err.Error())
		updated = shoot.DeepCopy()
		changes = Operate(updated, now)
		err = r.patch(ctx, shoot, updated)
	}
	if err != nil {
		return err
	}
	if err := r.report(ctx, updated, outcome(changes, failures, now)); err != nil {
		return err
	}
	updated.DeepCopyInto(shoot)
	return nil
}

func (r *Reconciler) patch(ctx context.Context, before, after *gardencorev1beta1.Shoot) error {
	return r.Client.Patch(ctx, after,
		client.MergeFromWithOptions(before.DeepCopy(), client.MergeFromWithOptimisticLock{}))
}

// isRefusal tells an answer that stays the same from one that may be different next time.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// outcome is what the status tells of a maintenance.
func outcome(changes, failures []string, now time.Time) *gardencorev1beta1.LastMaintenance {
	result := &gardencorev1beta1.LastMaintenance{
		Description: upToDate, TriggeredTime: metav1.NewTime(now), State: gardencorev1beta1.LastOperationStateSucceeded,
	}
	if len(changes) > 0 {
		result.Description = strings.Join(changes, "; ")
	}
	if len(failures) > 0 {
		result.State = gardencorev1beta1.LastOperationStateFailed
		result.FailureReason = new(strings.Join(failures, "; "))
	}
	return result
}

func (r *Reconciler) report(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	done *gardencorev1beta1.LastMaintenance) error {
	patch := client.MergeFrom(shoot.DeepCopy())
	shoot.Status.LastMaintenance = done
	if err := r.Client.Status().Patch(ctx, shoot, patch); err != nil {
		return fmt.Errorf("writing status.lastMaintenance: %w", err)
	}
	if done.FailureReason != nil {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, "MaintenanceError", "Maintain", "%s",
			*done.FailureReason)
	}
	if done.Description != upToDate {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, "MaintenanceDone", "Maintain", "%s", done.Description)
	}
	return nil
}

// profile reads the cloud profile that a shoot refers to. Of a namespaced one it is the merged result.
func (r *Reconciler) profile(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfileSpec, error) {
	reference := gardencorev1beta1.CloudProfileReference{
		Kind: gardencorev1beta1.CloudProfileReferenceKindCloudProfile, Name: ptr.Deref(shoot.Spec.CloudProfileName, ""),
	}
	if shoot.Spec.CloudProfile != nil {
		reference = *shoot.Spec.CloudProfile
	}
	if reference.Kind != gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		profile := &gardencorev1beta1.CloudProfile{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: reference.Name}, profile); err != nil {
			return nil, fmt.Errorf("cloud profile: %w", err)
		}
		return &profile.Spec, nil
	}
	profile := &gardencorev1beta1.NamespacedCloudProfile{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: reference.Name},
		profile); err != nil {
		return nil, fmt.Errorf("cloud profile: %w", err)
	}
	if profile.Status.CloudProfileSpec == nil {
		return nil, errors.New("the namespaced cloud profile has not been merged with its parent yet")
	}
	return profile.Status.CloudProfileSpec, nil
}
