package failover

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
)

// retryReturn is when a return is tried again that finds no room.
const retryReturn = time.Minute

// failBackOf gives the mode and the window: the policy's, or those of the fleet.
func (o *objects) failBackOf(r *round) (policyv1alpha1.FailBackMode, time.Duration) {
	mode, window := o.options.FailBack, o.options.FailBackWindow
	if f := r.BindingSpec().Failover; f != nil && f.FailBack != nil {
		if f.FailBack.Mode != "" {
			mode = f.FailBack.Mode
		}
		if f.FailBack.WindowSeconds != nil {
			window = time.Duration(*f.FailBack.WindowSeconds) * time.Second
		}
	}
	return mode, window
}

// failBack brings the object back when what failed has been healthy for the window.
func (o *objects) failBack(ctx context.Context, r *round) error {
	spec := r.BindingSpec()
	if back := spec.LastFailBack; back != nil && back.AffinityName != "" &&
		r.decided().SchedulerObservedGeneration == r.GetGeneration() {
		back.AffinityName = ""
		return nil
	}
	mode, window := o.failBackOf(r)
	if mode != policyv1alpha1.FailBackAutomatic || failover.Moved(spec) {
		spec.BeforeFailover = nil
		return nil
	}
	if spec.BeforeFailover != nil {
		return o.returnHome(ctx, r, window)
	}
	return o.returnToEarlierTerm(ctx, r, window)
}

func (o *objects) returnHome(ctx context.Context, r *round, window time.Duration) error {
	steady := r.clusters.steady(r.tolerations())
	released, next := failover.Returnable(r.BindingSpec(), steady, window, r.now)
	r.again(next)
	if len(released) == 0 {
		return nil
	}
	plan, err := failover.Return(o.snapshots.Of(maps.Values(r.clusters)), r.BindingSpec(), r.decided(), released, r.now)
	if err != nil || plan == nil {
		r.again(retryReturn)
		return err
	}
	return o.carryOut(ctx, r, plan)
}

// returnToEarlierTerm needs no failure to be remembered: the order of the terms says what is better.
func (o *objects) returnToEarlierTerm(ctx context.Context, r *round, window time.Duration) error {
	last := r.decided().LastScheduledTime
	if !laterTerm(r.Binding) || len(r.BindingSpec().GracefulEvictionTasks) > 0 || last == nil {
		return nil
	}
	if left := window - r.now.Sub(last.Time); left > 0 {
		r.again(left)
		return nil
	}
	plan, err := failover.ReturnToEarlierTerm(o.snapshots.Of(maps.Values(r.clusters)), r.BindingSpec(), r.decided(),
		r.now)
	if err != nil || plan == nil || len(plan.Arrivals) == 0 {
		r.again(max(window, retryReturn))
		return err
	}
	steady := r.clusters.steady(r.tolerations())
	for _, name := range plan.Arrivals {
		since, welcome := steady[name]
		if left := window - r.now.Sub(since); !welcome || left > 0 {
			r.again(max(left, time.Second))
			return nil
		}
	}
	return o.carryOut(ctx, r, plan)
}

// carryOut a plan, unless too many objects have returned in the last hour.
func (o *objects) carryOut(ctx context.Context, r *round, plan *failover.Plan) error {
	if len(plan.Arrivals) > 0 && !plan.Continues {
		wait, err := o.waitForRateLimit(ctx, plan.Arrivals, r.now)
		if err != nil || wait > 0 {
			r.again(wait)
			return err
		}
	}
	if len(plan.Arrivals) > 0 {
		r.tell(corev1.EventTypeNormal, "FailBack", "%s", announce(plan))
	}
	*r.BindingSpec() = *plan.Spec
	return nil
}

// announce a return, and how many replicas run while it goes on.
func announce(plan *failover.Plan) string {
	message := "returning to " + strings.Join(plan.Arrivals, ", ") + ", healthy again"
	if plan.Surplus > 0 {
		message += fmt.Sprintf("; %d more replicas than the %d that are wanted run until the copies there are healthy",
			plan.Surplus, plan.Spec.Replicas)
	}
	if plan.Partial {
		message += "; then more of them return"
	}
	return message
}

// waitForRateLimit counts the return if it needs not wait. It knows the returns of the last hour, also those before
// this process started.
func (o *objects) waitForRateLimit(ctx context.Context, arrivals []string, now time.Time) (time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.returns == nil {
		all, err := bindings.List(ctx, o.client, client.UnsafeDisableDeepCopy)
		if err != nil {
			return 0, err
		}
		o.returns = &failover.Returns{}
		for _, b := range all {
			if back := b.BindingSpec().LastFailBack; back != nil && now.Sub(back.Time.Time) < time.Hour {
				o.returns.Note(back.Clusters, back.Time.Time)
			}
		}
	}
	wait := o.returns.Wait(arrivals, o.options.Limits, now)
	if wait == 0 {
		o.returns.Note(arrivals, now)
	}
	return wait, nil
}
