package failover

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Observation is what is known of an object besides its binding's spec.
type Observation struct {
	// Decided: the scheduler has seen this generation.
	Decided bool
	// Scheduled: it found room for everything.
	Scheduled bool
	// Current: the statuses of the copies speak of this generation.
	Current bool
	// Copies are the statuses, by cluster.
	Copies map[string]workv1alpha2.AggregatedStatusItem
	// Present are the clusters that still have a Work of the object.
	Present map[string]bool
	// Welcome are the clusters that are ready and have no taint that makes the object leave.
	Welcome map[string]bool
	// Timeout is after which a task without a grace period of its own is overdue.
	Timeout time.Duration
}

// Outcome is what becomes of the tasks of a binding.
type Outcome struct {
	// Dropped are the tasks that ended: the copies in their clusters go.
	Dropped []workv1alpha2.GracefulEvictionTask
	// Restored are the clusters that have the object again, since nothing replaced it.
	Restored []string
	// Overdue are the clusters whose copy has waited for its replacement longer than the time-out.
	Overdue []string
	// Next is when to look again at the latest; zero when only a change can make a difference.
	Next time.Duration
}

// Tend goes through the graceful eviction tasks of a binding and changes its spec.
//
// A copy is removed when what replaces it is healthy. Time alone removes it only if somebody said so: with
// gracePeriodSeconds. A task whose suppressDeletion is true stays until the user decides; false ends it. One that
// purges directly ends when the old copy is gone, and the new ones have the state that was taken from it. A decision
// without any cluster replaces nothing: then the object stays where it is once that cluster is welcome again.
func Tend(spec *workv1alpha2.ResourceBindingSpec, seen Observation, now time.Time) Outcome {
	var outcome Outcome
	replaced := Replaced(spec, seen)
	nothingElse := len(spec.Clusters) == 0 && seen.Decided
	var kept []workv1alpha2.GracefulEvictionTask
	for _, task := range spec.GracefulEvictionTasks {
		if task.CreationTimestamp == nil {
			task.CreationTimestamp = &metav1.Time{Time: now}
		}
		switch {
		case superseded(spec, task):
		case nothingElse && restorable(task, seen):
			outcome.Restored = append(outcome.Restored, task.FromCluster)
			restore(spec, task)
		case ended(spec, task, replaced, seen, now):
			outcome.Dropped = append(outcome.Dropped, task)
		default:
			kept = append(kept, task)
			outcome.wait(task, seen.Timeout, now)
		}
	}
	spec.GracefulEvictionTasks = kept
	return outcome
}

// superseded: the cluster was chosen again. Only a return keeps tasks for clusters that go on with fewer replicas.
func superseded(spec *workv1alpha2.ResourceBindingSpec, task workv1alpha2.GracefulEvictionTask) bool {
	i := slices.IndexFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == task.FromCluster })
	if i < 0 {
		return false
	}
	return task.Producer != workv1alpha2.EvictionProducerFailBack || task.Replicas == nil ||
		spec.Clusters[i].Replicas >= *task.Replicas
}

// Replaced tells whether the clusters of the decision do the work: there is at least one, the scheduler is content, and
// all copies are healthy.
func Replaced(spec *workv1alpha2.ResourceBindingSpec, seen Observation) bool {
	if len(spec.Clusters) == 0 || !seen.Decided || !seen.Scheduled || !seen.Current {
		return false
	}
	return !slices.ContainsFunc(spec.Clusters,
		func(c workv1alpha2.TargetCluster) bool { return !healthy(seen.Copies[c.Name]) })
}

// healthy counts a copy whose kind has no notion of health as healthy once the cluster has it.
func healthy(copied workv1alpha2.AggregatedStatusItem) bool {
	return copied.Applied && copied.Health != workv1alpha2.ResourceUnhealthy
}

// restorable: the copy is still there, and the reason to leave is gone.
func restorable(task workv1alpha2.GracefulEvictionTask, seen Observation) bool {
	return task.Producer == workv1alpha2.EvictionProducerTaintManager &&
		PurgeMode(task.PurgeMode) != policyv1alpha1.PurgeModeDirectly &&
		seen.Present[task.FromCluster] && seen.Welcome[task.FromCluster]
}

func restore(spec *workv1alpha2.ResourceBindingSpec, task workv1alpha2.GracefulEvictionTask) {
	target := workv1alpha2.TargetCluster{Name: task.FromCluster}
	if task.Replicas != nil {
		target.Replicas = *task.Replicas
	}
	spec.Clusters = append(spec.Clusters, target)
	forget(spec, task.FromCluster)
}

// forget ends the memory of a failure; with the last one, of where the object was before.
func forget(spec *workv1alpha2.ResourceBindingSpec, cluster string) {
	if spec.BeforeFailover == nil {
		return
	}
	failed := slices.DeleteFunc(slices.Clone(spec.BeforeFailover.Failed),
		func(f workv1alpha2.FailedCluster) bool { return f.Name == cluster })
	if len(failed) == 0 {
		spec.BeforeFailover = nil
		return
	}
	before := *spec.BeforeFailover
	before.Failed = failed
	spec.BeforeFailover = &before
}

func ended(spec *workv1alpha2.ResourceBindingSpec, task workv1alpha2.GracefulEvictionTask, replaced bool,
	seen Observation, now time.Time) bool {
	if task.SuppressDeletion != nil {
		return !*task.SuppressDeletion
	}
	switch PurgeMode(task.PurgeMode) {
	case policyv1alpha1.PurgeModeDirectly:
		return !seen.Present[task.FromCluster] && (len(task.PreservedLabelState) == 0 || handedOver(spec, seen))
	case policyv1alpha1.PurgeModeNever:
		return false
	}
	return replaced || task.GracePeriodSeconds != nil && now.Sub(task.CreationTimestamp.Time) >= gracePeriod(task)
}

// handedOver tells whether the clusters of the decision have got their copies, and with them the state that was taken
// from the old one: the task is where that is kept until then.
func handedOver(spec *workv1alpha2.ResourceBindingSpec, seen Observation) bool {
	return len(spec.Clusters) > 0 &&
		!slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return !seen.Present[c.Name] })
}

func gracePeriod(task workv1alpha2.GracefulEvictionTask) time.Duration {
	return time.Duration(*task.GracePeriodSeconds) * time.Second
}

// wait notes when a task has to be looked at again, or that it is overdue.
func (o *Outcome) wait(task workv1alpha2.GracefulEvictionTask, timeout time.Duration, now time.Time) {
	if task.SuppressDeletion != nil || PurgeMode(task.PurgeMode) != policyv1alpha1.PurgeModeGracefully {
		return
	}
	age := now.Sub(task.CreationTimestamp.Time)
	limit := timeout
	if task.GracePeriodSeconds != nil {
		limit = gracePeriod(task)
	}
	if age >= limit {
		o.Overdue = append(o.Overdue, task.FromCluster)
		return
	}
	if left := limit - age; o.Next == 0 || left < o.Next {
		o.Next = left
	}
}
