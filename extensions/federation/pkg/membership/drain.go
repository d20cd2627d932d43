package membership

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apis/cron"
)

const (
	// drainLead is how long before its schedule puts a shoot to sleep the fleet begins to move objects away.
	drainLead = 10 * time.Minute
	// startGrace is how long after its schedule a shoot still counts as one that is put to sleep: the garden does so a
	// little later.
	startGrace = 30 * time.Second
	// drainTimeout is how long a shoot that falls asleep is still used for moving objects away, as far as its API
	// lasts.
	drainTimeout = 10 * time.Minute
)

// worksKind is what a member has to do.
var worksKind = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "WorkList"}

// wantsSleep tells whether a shoot is to sleep now.
func wantsSleep(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && shoot.Spec.Hibernation.Enabled != nil && *shoot.Spec.Hibernation.Enabled
}

// sleepsSoon tells whether a schedule puts the shoot to sleep within drainLead, and when that is to be asked again;
// zero if there is no schedule. Schedules that cannot be read are none: the garden tells about them.
func sleepsSoon(shoot *gardencorev1beta1.Shoot, now time.Time) (soon bool, again time.Duration) {
	if shoot.Spec.Hibernation == nil {
		return false, 0
	}
	var first time.Time
	for _, schedule := range shoot.Spec.Hibernation.Schedules {
		if at := nextStart(schedule, now.Add(-startGrace)); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return false, 0
	}
	left := first.Sub(now)
	if left <= drainLead {
		return true, left
	}
	return false, left - drainLead
}

func nextStart(schedule gardencorev1beta1.HibernationSchedule, now time.Time) time.Time {
	if schedule.Start == nil {
		return time.Time{}
	}
	location := time.UTC
	if schedule.Location != nil {
		var err error
		if location, err = time.LoadLocation(*schedule.Location); err != nil {
			return time.Time{}
		}
	}
	expression, err := cron.Parse(*schedule.Start)
	if err != nil {
		return time.Time{}
	}
	return expression.Next(now.In(location))
}

// drains tells whether objects are to leave a shoot: it sleeps, falls asleep, or will do so soon. They may come back
// when it is awake.
func drains(shoot *gardencorev1beta1.Shoot, now time.Time) bool {
	soon, _ := sleepsSoon(shoot, now)
	return isAsleep(shoot) || soon
}

// restsNow tells whether the fleet is not to expect answers of a shoot: it sleeps or wakes up, or it falls asleep and
// nothing is left to be moved away, or its API has gone, or there was time enough.
func restsNow(shoot *gardencorev1beta1.Shoot, member *clusterv1alpha1.Cluster, works int, now time.Time) bool {
	switch {
	case shoot.Status.IsHibernated:
		return true
	case !wantsSleep(shoot):
		return false
	case works == 0, !isReachable(shoot), member.Annotations[clusterv1alpha1.HibernatedAnnotation] == "true":
		return true
	}
	since := drainsSince(member)
	return since != nil && now.Sub(since.Time) > drainLead+drainTimeout
}

func drainsSince(member *clusterv1alpha1.Cluster) *metav1.Time {
	for _, t := range member.Spec.Taints {
		if t.Key == clusterv1alpha1.TaintHibernated {
			return t.TimeAdded
		}
	}
	return nil
}

// taintsFor sets or removes the taint that has objects leave, and keeps the others.
func taintsFor(taints []corev1.Taint, drain bool, now time.Time) []corev1.Taint {
	present := func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintHibernated }
	switch {
	case drain && !slices.ContainsFunc(taints, present):
		added := metav1.NewTime(now.Truncate(time.Second))
		return append(slices.Clone(taints),
			corev1.Taint{Key: clusterv1alpha1.TaintHibernated, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added})
	case !drain && slices.ContainsFunc(taints, present):
		return slices.DeleteFunc(slices.Clone(taints), present)
	}
	return taints
}

// drain has objects leave a shoot in time, or lets them come back.
func (r *Reconciler) drain(ctx context.Context, fleet client.Client, shoot *gardencorev1beta1.Shoot) error {
	member := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(ctx, client.ObjectKey{Name: shoot.Name}, member); err != nil {
		return client.IgnoreNotFound(err)
	}
	wanted := taintsFor(member.Spec.Taints, drains(shoot, r.Now()), r.Now())
	if len(wanted) == len(member.Spec.Taints) {
		return nil
	}
	before := member.DeepCopy()
	member.Spec.Taints = wanted
	if err := fleet.Patch(ctx, member,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("spec.taints of cluster %s: %w", member.Name, err)
	}
	return nil
}

// worksLeft counts what the fleet has in a member.
func worksLeft(ctx context.Context, fleet client.Client, member string) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(worksKind)
	if err := fleet.List(ctx, list, client.InNamespace(clusterv1alpha1.ExecutionNamespace(member))); err != nil {
		return 0, fmt.Errorf("listing the Works of %s: %w", member, err)
	}
	return len(list.Items), nil
}

// lookAgain is when a fleet has to be looked at for the sake of its shoots' schedules, or before.
func lookAgain(shoots []gardencorev1beta1.Shoot, now time.Time) time.Duration {
	next := checkInterval
	for i := range shoots {
		if soon, again := sleepsSoon(&shoots[i], now); !soon && again > 0 {
			next = min(next, again+time.Second)
		}
		if wantsSleep(&shoots[i]) && !shoots[i].Status.IsHibernated {
			next = min(next, fallingAsleepInterval)
		}
	}
	return next
}

// fallingAsleepInterval is how often a fleet is looked at while a member falls asleep.
const fallingAsleepInterval = 10 * time.Second
