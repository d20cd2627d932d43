package shoot

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/spread"
)

const (
	// resyncSpacing is how far apart shoots begin, on the average, that are all due when gardenlet starts: another
	// version of it has come, or it was away for long. An operation that changes nothing takes some 15 s.
	resyncSpacing = 4 * time.Second
	// longestResync bounds how long the last of many shoots waits for its turn.
	longestResync = 15 * time.Minute
)

// resync is the time after the start of gardenlet in which every settled shoot has its turn.
type resync struct {
	begin  time.Time
	window time.Duration
}

// turnOf is before when a settled shoot is not reconciled.
func (r *resync) turnOf(uid types.UID) time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.begin.Add(spread.Within(uid, r.window))
}

// beginResync notes at the first call when gardenlet started to reconcile, and for how many shoots.
func (r *Reconciler) beginResync(ctx context.Context, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resync != nil || r.Shoots == nil {
		return nil
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Shoots.List(ctx, shoots); err != nil {
		return fmt.Errorf("counting the shoots of the seed: %w", err)
	}
	window := min(time.Duration(len(shoots.Items))*resyncSpacing, longestResync)
	r.resync = &resync{begin: now, window: window}
	return nil
}

// untilSync says how long a settled Shoot may be left alone: until the next period has passed, or there is another
// gardenlet, and then until its turn. If changes of its specification are confined to its maintenance window, so is
// this, as it would roll them out. What is asked for, or has failed, does not wait.
func (r *Reconciler) untilSync(shoot *gardencorev1beta1.Shoot, now time.Time) time.Duration {
	if !status.Settled(shoot) {
		return 0
	}
	if wait := untilWindow(shoot, now); wait > 0 {
		return wait
	}
	due := now
	if shoot.Status.Gardener.Version == r.Identity.Version {
		due = shoot.Status.LastOperation.LastUpdateTime.Add(r.periodOf(shoot))
	}
	if turn := r.resync.turnOf(shoot.UID); turn.After(due) {
		due = turn
	}
	return max(0, due.Sub(now))
}

// periodOf is the time between reconciliations of a shoot that does not change. Its annotation makes it longer, and
// never shorter: whoever may change the Shoot would have the seed do nothing else.
func (r *Reconciler) periodOf(shoot *gardencorev1beta1.Shoot) time.Duration {
	controller := r.Config.Controllers.Shoot
	period := controller.SyncPeriod.Duration
	if controller.RespectSyncPeriodOverwrite || shoot.Namespace == gardencorev1beta1.GardenNamespace {
		if own, err := time.ParseDuration(shoot.Annotations[gardencorev1beta1.ShootSyncPeriod]); err == nil {
			period = max(period, own)
		}
	}
	return spread.Period(shoot.UID, period)
}

// untilWindow says how long it is until changes of the specification may be rolled out. Shoots with one window begin
// in its first half, not together.
func untilWindow(shoot *gardencorev1beta1.Shoot, now time.Time) time.Duration {
	maintenance := shoot.Spec.Maintenance
	if maintenance == nil || maintenance.TimeWindow == nil || !ptr.Deref(maintenance.ConfineSpecUpdateRollout, false) {
		return 0
	}
	wait := maintenance.TimeWindow.Until(now)
	if wait == 0 {
		return 0
	}
	_, duration, err := maintenance.TimeWindow.Parse()
	if err != nil {
		return wait
	}
	return wait + spread.Within(shoot.UID, duration/2)
}
