package scheduler

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Reasons of events about shoots, as users know them.
const (
	EventSchedulingSuccessful = "SchedulingSuccessful"
	EventSchedulingFailed     = "SchedulingFailed"
)

const (
	// DefaultRetryPeriod is how often a shoot without a seed is tried again although nothing seems to have changed.
	DefaultRetryPeriod = 10 * time.Minute
	// conflictPeriod is how long to wait for the cache after a write that came too late.
	conflictPeriod = 100 * time.Millisecond
	// maxEventNote is how long the API lets the text of an event be.
	maxEventNote = 1024
)

// Reconciler schedules shoots that have no seed.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Now      func() time.Time
	// Strategy says which regions are good for a shoot. Default: SameRegion.
	Strategy Strategy
	// SchedulerName is the spec.schedulerName of the shoots to care for. Default: corev1beta1.DefaultSchedulerName.
	SchedulerName string
	// RetryPeriod is how often a shoot is tried again without a reason. Default: DefaultRetryPeriod.
	RetryPeriod time.Duration

	usage *usage
}

// Reconcile schedules one shoot.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.needsSeed(shoot) || r.usage.promised(shoot) {
		return reconcile.Result{}, nil
	}
	snapshot, err := r.snapshot(ctx, shoot)
	if blocked := (*obstacle)(nil); errors.As(err, &blocked) {
		return r.reportPending(ctx, shoot, blocked.message, "")
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("shoot %s: %w", request, err)
	}
	seed, rejections := Schedule(snapshot, shoot)
	summary := Summary(len(snapshot.Seeds), rejections)
	if seed == "" {
		return r.reportPending(ctx, shoot, "No seed fits. "+summary, Details(rejections, maxEventNote/2))
	}
	return r.assign(ctx, shoot, seed, summary)
}

// assign writes the decision.
func (r *Reconciler) assign(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	seed, summary string) (reconcile.Result, error) {
	bound := shoot.DeepCopy()
	bound.Spec.SeedName = &seed
	err := r.Client.SubResource("binding").Update(ctx, bound)
	switch {
	case err == nil:
		r.usage.promise(shoot, seed)
		ctrl.LoggerFrom(ctx).Info("Assigned a seed", "seed", seed, "seeds", summary)
		r.event(shoot, corev1.EventTypeNormal, EventSchedulingSuccessful,
			fmt.Sprintf("Assigned to seed %s. %s", seed, summary))
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		// The shoot has changed since, so the decision is to be made again.
		return reconcile.Result{RequeueAfter: conflictPeriod}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		// The API server knows something about the seed that the cache here does not, or the other way round.
		if _, reportErr := r.reportPending(ctx, shoot, fmt.Sprintf("Seed %s was refused: %v", seed, err),
			""); reportErr != nil {
			return reconcile.Result{}, reportErr
		}
	}
	return reconcile.Result{}, fmt.Errorf("assigning shoot %s to seed %s: %w", client.ObjectKeyFromObject(shoot), seed,
		err)
}

// reportPending tells in the status, and in an event, why the shoot has no seed: once per finding.
func (r *Reconciler) reportPending(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	message, details string) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: r.RetryPeriod}
	if isPending(shoot, message) {
		return again, nil
	}
	updated := shoot.DeepCopy()
	updated.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStatePending,
		Description: message, LastUpdateTime: metav1.NewTime(r.Now()),
	}
	// The lock keeps a stale cache from having the same said twice.
	patch := client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{})
	err := r.Client.Status().Patch(ctx, updated, patch)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPeriod}, nil
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("status of shoot %s: %w",
			client.ObjectKeyFromObject(shoot), err))
	}
	if details != "" {
		message += " In detail: " + details
	}
	r.event(shoot, corev1.EventTypeWarning, EventSchedulingFailed, message)
	return again, nil
}

func isPending(shoot *gardencorev1beta1.Shoot, message string) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State == gardencorev1beta1.LastOperationStatePending && last.Description == message
}

func (r *Reconciler) event(shoot *gardencorev1beta1.Shoot, kind, reason, note string) {
	r.Recorder.Eventf(shoot, nil, kind, reason, "Schedule", "%s", shorten(note, maxEventNote))
}

// shorten cuts a text to a number of bytes.
func shorten(text string, limit int) string {
	const ellipsis = " …"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
