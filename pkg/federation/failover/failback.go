package failover

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// repeatedFailure is how long an object that failed by itself stays away after it has returned once already.
const repeatedFailure = time.Hour

// Returnable gives the failed clusters that may have the object again, since they have been steadily healthy for the
// window, and when the next one may; zero if only a change can tell. steady holds since when the welcome clusters are
// as they are. While copies wait for others that have returned, nothing more does.
func Returnable(spec *workv1alpha2.ResourceBindingSpec, steady map[string]time.Time, window time.Duration,
	now time.Time) (clusters []string, next time.Duration) {
	if spec.BeforeFailover == nil || leavesBehind(spec) {
		return nil, 0
	}
	for _, failed := range spec.BeforeFailover.Failed {
		since, welcome := steady[failed.Name]
		if !welcome {
			continue
		}
		if failed.Time.After(since) {
			since = failed.Time.Time
		}
		left := window - now.Sub(since)
		if failed.Reason == workv1alpha2.EvictionReasonApplicationFailure && spec.LastFailBack != nil &&
			!hasTarget(spec.Clusters, failed.Name) {
			left = max(left, repeatedFailure-now.Sub(spec.LastFailBack.Time.Time))
		}
		if left <= 0 {
			clusters = append(clusters, failed.Name)
		} else if next == 0 || left < next {
			next = left
		}
	}
	return clusters, next
}

// leavesBehind tells whether copies wait for others that have returned.
func leavesBehind(spec *workv1alpha2.ResourceBindingSpec) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
		return task.Producer == workv1alpha2.EvictionProducerFailBack
	})
}

// Moved tells whether the policy has changed since the object left: then there is nowhere to return to.
func Moved(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.BeforeFailover != nil && spec.BeforeFailover.PlacementHash != karmada.PlacementHash(spec.Placement)
}

// Plan is a return that can be written.
type Plan struct {
	// Spec of the binding after it.
	Spec *workv1alpha2.ResourceBindingSpec
	// Arrivals are the clusters that get the object, or more of it.
	Arrivals []string
	// Surplus is how many replicas more than wanted run until the arrivals are healthy.
	Surplus int32
	// Partial: others return when these are healthy.
	Partial bool
	// Continues a return of which a part has been carried out.
	Continues bool
}

// Return plans how an object comes back to the clusters given. Without an arrival the plan only forgets the failures,
// because the object has no place in these clusters any more. Nil means to wait: the clusters lack room at the moment.
func Return(clusters core.Snapshot, spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus,
	released []string, now time.Time) (*Plan, error) {
	wanted := spec.DeepCopy()
	before := spec.BeforeFailover
	for _, name := range released {
		forget(wanted, name)
		wanted.GracefulEvictionTasks = withoutTask(wanted.GracefulEvictionTasks, name)
	}
	binding, err := karmada.Binding(wanted, status)
	if err != nil {
		return nil, err
	}
	binding.PreviousTerm, binding.Fresh, binding.BetweenTerms = before.AffinityName, false, false
	if len(binding.Components) > 0 {
		binding.Previous = homeOfUnit(before.Clusters, spec.Clusters, released)
	} else {
		binding.Previous = home(before.Clusters, spec.Clusters, released, spec.Replicas)
	}
	decision := core.Decide(clusters, binding)
	if decision.Failure != nil {
		return nil, nil
	}
	plan := approach(clusters, binding, spec, wanted, decision, status, now)
	if plan != nil {
		plan.Continues = !slices.ContainsFunc(released,
			func(name string) bool { return !hasTarget(spec.Clusters, name) })
	}
	return plan, nil
}

// approach what was decided for the return, as far as one step goes. Nil means that the clusters lack room for all of
// it: then it does not begin.
func approach(clusters core.Snapshot, binding core.Binding, spec, wanted *workv1alpha2.ResourceBindingSpec,
	decision core.Decision, status *workv1alpha2.ResourceBindingStatus, now time.Time) *Plan {
	targets := karmada.Targets(wanted, decision.Targets)
	next, partial := targets, false
	if staysDivided(spec, binding) {
		next, partial = step(spec.Clusters, targets, mostSurplus(spec.Replicas))
	}
	if partial {
		if !roomFor(clusters, binding, spec, targets) {
			return nil
		}
		wanted.Clusters, wanted.BeforeFailover = next, spec.BeforeFailover
		if !karmada.Returning(wanted) || wanted.BeforeFailover.AffinityName != decision.Term {
			wanted.BeforeFailover = destination(spec, targets, decision.Term, status.LastScheduledTime, now)
		}
	}
	plan := move(clusters, binding, spec, wanted, next, decision.Term, now)
	if plan != nil {
		plan.Partial = partial
	}
	return plan
}

// destination has an object that goes over to another affinity term return there, as if it had been there: the clusters
// that grow count as failed since the last decision.
func destination(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster, term string,
	decided *metav1.Time, now time.Time) *workv1alpha2.BeforeFailover {
	since := metav1.NewTime(now)
	if decided != nil {
		since = *decided
	}
	result := &workv1alpha2.BeforeFailover{
		Clusters: targets, AffinityName: term, PlacementHash: karmada.PlacementHash(spec.Placement),
	}
	for _, name := range growing(spec.Clusters, targets) {
		result.Failed = append(result.Failed,
			workv1alpha2.FailedCluster{Name: name, Reason: workv1alpha2.EvictionReasonReturned, Time: since})
	}
	return result
}

// staysDivided tells whether replicas are divided, so that they stay where a step of a return has put them until the
// next one (see karmada.Settled). The scheduler divides anew what is not placed as a whole.
func staysDivided(spec *workv1alpha2.ResourceBindingSpec, binding core.Binding) bool {
	var placed int32
	for _, c := range spec.Clusters {
		placed += c.Replicas
	}
	return binding.Workload && len(binding.Components) == 0 && binding.Placement.Strategy != core.Duplicated &&
		placed == spec.Replicas
}

// mostSurplus is how many replicas more than wanted a return may run at a time: a quarter, as a Deployment does when it
// is updated, but ten at least, so that what is small returns at once.
func mostSurplus(replicas int32) int64 { return max(10, (int64(replicas)+3)/4) }

// step from old towards wanted, so that the clusters that grow get no more than so many replicas together, in
// proportion to what they lack. It tells whether something is left for later.
func step(old, wanted []workv1alpha2.TargetCluster, most int64) (next []workv1alpha2.TargetCluster, partial bool) {
	replicas := map[string]int64{}
	lacks := map[string]int64{}
	for _, c := range old {
		replicas[c.Name] = int64(c.Replicas)
		lacks[c.Name] -= int64(c.Replicas)
	}
	for _, c := range wanted {
		lacks[c.Name] += int64(c.Replicas)
	}
	var grow, shrink []core.Share
	var growth int64
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		switch lack := lacks[name]; {
		case lack > 0:
			grow = append(grow, core.Share{Cluster: name, Weight: lack, Max: lack})
			growth += lack
		case lack < 0:
			shrink = append(shrink, core.Share{Cluster: name, Weight: -lack, Max: -lack})
		}
	}
	if growth <= most {
		return wanted, false
	}
	core.Apportion(most, grow, false)
	core.Apportion(most, shrink, false)
	for _, s := range grow {
		replicas[s.Cluster] += s.Seats
	}
	for _, s := range shrink {
		replicas[s.Cluster] -= s.Seats
	}
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		if replicas[name] > 0 {
			next = append(next, workv1alpha2.TargetCluster{Name: name, Replicas: int32(replicas[name])})
		}
	}
	return next, true
}

// ReturnToEarlierTerm plans how an object moves to an affinity term before the one in use. Nil means that none of them
// can be satisfied.
func ReturnToEarlierTerm(clusters core.Snapshot, spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus, now time.Time) (*Plan, error) {
	current := termIndex(spec.Placement, status.SchedulerObservedAffinityName)
	if current <= 0 {
		return nil, nil
	}
	wanted := spec.DeepCopy()
	binding, err := karmada.Binding(wanted, status)
	if err != nil {
		return nil, err
	}
	binding.PreviousTerm, binding.Placement.Terms = "", binding.Placement.Terms[:current]
	decision := core.Decide(clusters, binding)
	if decision.Failure != nil {
		return nil, nil
	}
	return approach(clusters, binding, spec, wanted, decision, status, now), nil
}

// termIndex of the affinity term of that name; -1 if there is none.
func termIndex(placement *policyv1alpha1.Placement, name string) int {
	if placement == nil || name == "" {
		return -1
	}
	return slices.IndexFunc(placement.ClusterAffinities,
		func(t policyv1alpha1.ClusterAffinityTerm) bool { return t.AffinityName == name })
}

// move completes a plan: what shrinks or goes stays as it is until what arrives is healthy.
func move(clusters core.Snapshot, binding core.Binding, old, wanted *workv1alpha2.ResourceBindingSpec,
	targets []workv1alpha2.TargetCluster, term string, now time.Time) *Plan {
	wanted.Clusters = targets
	arrivals := growing(old.Clusters, wanted.Clusters)
	if len(arrivals) == 0 {
		wanted.Clusters = old.Clusters
		return &Plan{Spec: wanted}
	}
	if !roomFor(clusters, binding, old, wanted.Clusters) {
		return nil
	}
	for _, c := range old.Clusters {
		i := slices.IndexFunc(wanted.Clusters, func(w workv1alpha2.TargetCluster) bool { return w.Name == c.Name })
		if i < 0 || wanted.Clusters[i].Replicas < c.Replicas {
			wanted.GracefulEvictionTasks = append(withoutTask(wanted.GracefulEvictionTasks, c.Name), leftBehind(c, now))
		}
	}
	wanted.LastFailBack = &workv1alpha2.FailBack{Time: metav1.NewTime(now), Clusters: arrivals, AffinityName: term}
	return &Plan{Spec: wanted, Arrivals: arrivals, Surplus: surplus(binding, old.Clusters, wanted.Clusters)}
}

// surplus counts what runs in the clusters that grow beside what is left behind. Objects that are not divided have
// none.
func surplus(binding core.Binding, old, wanted []workv1alpha2.TargetCluster) int32 {
	if !binding.Workload || binding.Placement.Strategy == core.Duplicated {
		return 0
	}
	kept, before := map[string]int32{}, int32(0)
	for _, c := range old {
		kept[c.Name] = c.Replicas
		before += c.Replicas
	}
	for _, c := range wanted {
		kept[c.Name] = max(kept[c.Name], c.Replicas)
	}
	var runs int32
	for _, replicas := range kept {
		runs += replicas
	}
	return runs - before
}

func leftBehind(c workv1alpha2.TargetCluster, now time.Time) workv1alpha2.GracefulEvictionTask {
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: c.Name, PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: workv1alpha2.EvictionReasonReturned,
		Producer: workv1alpha2.EvictionProducerFailBack, CreationTimestamp: &metav1.Time{Time: now},
		Message: "the object returns to the clusters that it left; this copy goes when they have it",
	}
	if c.Replicas > 0 {
		task.Replicas = &c.Replicas
	}
	return task
}

// growing clusters get the object or more replicas of it.
func growing(old, wanted []workv1alpha2.TargetCluster) []string {
	var result []string
	for _, w := range wanted {
		i := slices.IndexFunc(old, func(c workv1alpha2.TargetCluster) bool { return c.Name == w.Name })
		if i < 0 || old[i].Replicas < w.Replicas {
			result = append(result, w.Name)
		}
	}
	return result
}

// roomFor checks the clusters that grow, where replicas are divided by room. Copies that were never removed have their
// room already.
func roomFor(clusters core.Snapshot, binding core.Binding, old *workv1alpha2.ResourceBindingSpec,
	wanted []workv1alpha2.TargetCluster) bool {
	if binding.Placement.Strategy != core.DynamicWeight && binding.Placement.Strategy != core.Aggregated {
		return true
	}
	if len(binding.Components) > 0 {
		return unitFits(clusters, binding, old, wanted)
	}
	has := map[string]int64{}
	for _, task := range old.GracefulEvictionTasks {
		if task.Replicas != nil && PurgeMode(task.PurgeMode) != policyv1alpha1.PurgeModeDirectly {
			has[task.FromCluster] = int64(*task.Replicas)
		}
	}
	for _, c := range old.Clusters {
		has[c.Name] = int64(c.Replicas)
	}
	for _, w := range wanted {
		more := int64(w.Replicas) - has[w.Name]
		if more > 0 && clusters.Estimate(w.Name, binding) < more {
			return false
		}
	}
	return true
}

// unitFits: a copy that is still there, and one that is leaving, has its room.
func unitFits(clusters core.Snapshot, binding core.Binding, old *workv1alpha2.ResourceBindingSpec,
	wanted []workv1alpha2.TargetCluster) bool {
	return !slices.ContainsFunc(wanted, func(w workv1alpha2.TargetCluster) bool {
		leaving := slices.ContainsFunc(old.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
			return task.FromCluster == w.Name && PurgeMode(task.PurgeMode) != policyv1alpha1.PurgeModeDirectly
		})
		return !leaving && !hasTarget(old.Clusters, w.Name) && clusters.Estimate(w.Name, binding) < 1
	})
}

// home divides replicas as they were before the failures, as far as the clusters are there again: these, and those that
// were never left, get what they had; what is left over stays where it is now.
func home(before, now []workv1alpha2.TargetCluster, released []string, replicas int32) []core.Target {
	var old, new []core.Share
	var total, placed int64
	for _, c := range before {
		total += int64(c.Replicas)
		if slices.Contains(released, c.Name) || hasTarget(now, c.Name) {
			old = append(old, core.Share{Cluster: c.Name, Weight: int64(c.Replicas)})
			placed += int64(c.Replicas)
		}
	}
	if total == 0 {
		return present(now, released)
	}
	share := int64(replicas) * placed / total
	for _, c := range now {
		if !hasTarget(before, c.Name) {
			new = append(new, core.Share{Cluster: c.Name, Weight: int64(c.Replicas)})
		}
	}
	if len(new) == 0 {
		share = int64(replicas)
	}
	core.Apportion(share, old, false)
	core.Apportion(int64(replicas)-share, new, false)
	return seats(append(old, new...))
}

func seats(shares []core.Share) []core.Target {
	var targets []core.Target
	for _, s := range shares {
		if s.Seats > 0 {
			targets = append(targets, core.Target{Cluster: s.Cluster, Replicas: int32(s.Seats)})
		}
	}
	return targets
}

// homeOfUnit is the cluster that had it, if it is there again, and else the one that has it.
func homeOfUnit(before, now []workv1alpha2.TargetCluster, released []string) []core.Target {
	for _, c := range slices.Concat(before, now) {
		if slices.Contains(released, c.Name) || hasTarget(now, c.Name) {
			return []core.Target{{Cluster: c.Name, Replicas: 1}}
		}
	}
	return nil
}

// present is for objects without replicas.
func present(now []workv1alpha2.TargetCluster, released []string) []core.Target {
	var targets []core.Target
	for _, c := range now {
		targets = append(targets, core.Target{Cluster: c.Name, Replicas: c.Replicas})
	}
	for _, name := range released {
		if !hasTarget(now, name) {
			targets = append(targets, core.Target{Cluster: name})
		}
	}
	return targets
}
