package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// measureDecisions creates Deployments whose replicas are divided over the members by what is free, and waits until all
// are placed, and until all that follows is written too.
func (b *fleetBench) measureDecisions(ctx context.Context) error {
	if err := b.fleet.Create(ctx, b.policy("divided", dynamic())); err != nil {
		return err
	}
	before, err := b.cost(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.createDeployments(ctx, "divided", 0, fleetObjects); err != nil {
		return err
	}
	if err := b.waitBindings(ctx, fleetObjects, isPlaced); err != nil {
		return err
	}
	placed := time.Since(start)
	if err := b.waitBindings(ctx, fleetObjects, isSettled); err != nil {
		return err
	}
	settled := time.Since(start)
	after, err := b.cost(ctx)
	if err != nil {
		return err
	}
	b.add(b.figure(figurePlaced), fleetObjects/placed.Seconds(), "per s",
		fmt.Sprintf("%d Deployments of 2 replicas, divided by what the members have free, by %d clients; until each "+
			"has its clusters in its binding", fleetObjects, gardenClients))
	b.add(b.figure(figureReported), fleetObjects/settled.Seconds(), "per s",
		"the same, until the statuses of all bindings say that the members have the objects and that they are "+
			"healthy; "+after.since(before, fleetObjects))
	return nil
}

// measureDecisionsAnew asks for a new decision on every object that is placed, by a WorkloadRebalancer, until all are
// decided and explained.
func (b *fleetBench) measureDecisionsAnew(ctx context.Context) error {
	rebalancer := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "anew"}}
	for number := range fleetObjects {
		rebalancer.Spec.Workloads = append(rebalancer.Spec.Workloads, appsv1alpha1.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: fleetNamespace,
			Name: deploymentName("divided", number),
		})
	}
	before, err := b.cost(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.fleet.Create(ctx, rebalancer); err != nil {
		return err
	}
	if err := b.waitBindings(ctx, fleetObjects, isDecidedAnew); err != nil {
		return err
	}
	rate := fleetObjects / time.Since(start).Seconds()
	after, err := b.cost(ctx)
	if err != nil {
		return err
	}
	b.add(b.figure(figureAnew), rate, "per s",
		fmt.Sprintf("%d of those Deployments; from the WorkloadRebalancer on until each binding was decided anew "+
			"and its status explains the decision; %s", fleetObjects, after.since(before, fleetObjects)))
	return nil
}

// isDecidedAnew tells that the last decision is later than somebody asked for it, and is written.
func isDecidedAnew(b *workv1alpha2.ResourceBinding) bool {
	asked, decided := b.Spec.RescheduleTriggeredAt, b.Status.LastScheduledTime
	return asked != nil && decided != nil && !decided.Before(asked) &&
		b.Status.SchedulerObservedGeneration == b.Generation
}

func (b *fleetBench) createDeployments(ctx context.Context, policy string, from, to int) error {
	return inParallel(ctx, to-from, func(ctx context.Context, number int) error {
		return b.fleet.Create(ctx, deployment(deploymentName(policy, from+number), policy, 2))
	})
}

func deploymentName(policy string, number int) string { return fmt.Sprintf("%s-%d", policy, number) }

func isPlaced(b *workv1alpha2.ResourceBinding) bool { return len(b.Spec.Clusters) > 0 }

// isSettled binding has nothing more to tell.
func isSettled(b *workv1alpha2.ResourceBinding) bool {
	if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.ConditionFullyApplied) ||
		!meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.ConditionScheduled) {
		return false
	}
	healthy := func(item workv1alpha2.AggregatedStatusItem) bool { return item.Health == workv1alpha2.ResourceHealthy }
	return len(b.Status.AggregatedStatus) == len(b.Spec.Clusters) &&
		!slices.ContainsFunc(b.Status.AggregatedStatus,
			func(i workv1alpha2.AggregatedStatusItem) bool { return !healthy(i) })
}

// waitBindings follows the bindings by a watch, so that waiting costs little of what is measured.
func (b *fleetBench) waitBindings(ctx context.Context, count int, done func(*workv1alpha2.ResourceBinding) bool) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	finished := map[types.NamespacedName]bool{}
	for ctx.Err() == nil {
		var list workv1alpha2.ResourceBindingList
		events, err := b.watcher.Watch(watching, &list, client.InNamespace(fleetNamespace))
		if err != nil {
			return err
		}
		for event := range events.ResultChan() {
			if binding, ok := event.Object.(*workv1alpha2.ResourceBinding); ok && done(binding) {
				finished[client.ObjectKeyFromObject(binding)] = true
			}
			if len(finished) >= count {
				events.Stop()
				return nil
			}
		}
	}
	return fmt.Errorf("%d of %d bindings came so far: %w; one that did not: %s", len(finished), count, ctx.Err(),
		b.unfinished(ctx, done))
}

// unfinished shows one of the bindings that are waited for, also when the time for that is over.
func (b *fleetBench) unfinished(ctx context.Context, done func(*workv1alpha2.ResourceBinding) bool) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var list workv1alpha2.ResourceBindingList
	if err := b.fleet.List(ctx, &list, client.InNamespace(fleetNamespace)); err != nil {
		return err.Error()
	}
	for i := range list.Items {
		if binding := &list.Items[i]; !done(binding) {
			binding.ManagedFields = nil
			text, err := json.Marshal(binding)
			if err != nil {
				return err.Error()
			}
			return string(text)
		}
	}
	return "none"
}

// arrivals tells when a Deployment of some revision has come to all members.
type arrivals struct {
	mu       sync.Mutex
	revision string
	missing  int
	done     chan struct{}
}

func (a *arrivals) expect(revision string, members int) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision, a.missing, a.done = revision, members, make(chan struct{})
	return a.done
}

func (a *arrivals) came(revision string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if revision == "" || revision != a.revision {
		return
	}
	if a.missing--; a.missing == 0 {
		close(a.done)
	}
}

// measureChanges changes one Deployment again and again, and takes the time until the last of ten members has it.
func (b *fleetBench) measureChanges(ctx context.Context) error {
	const members = 10
	var names []string
	for number := range members {
		names = append(names, memberName(number))
	}
	policy := b.policy("everywhere",
		policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: names}})
	if err := b.fleet.Create(ctx, policy); err != nil {
		return err
	}
	object := deployment("everywhere", "everywhere", 2)
	var took []float64
	for change := range fleetChanges + 1 {
		revision := strconv.Itoa(change)
		object.Spec.Template.Spec.Containers[0].Env[0].Value = revision
		come := b.arrivals.expect(revision, members)
		start := time.Now()
		if err := b.write(ctx, object, change); err != nil {
			return err
		}
		select {
		case <-come:
		case <-ctx.Done():
			return fmt.Errorf("waiting for change %d to arrive: %w", change, ctx.Err())
		}
		if change > 0 {
			took = append(took, float64(time.Since(start).Microseconds())/1000)
		}
	}
	slices.Sort(took)
	how :=
		fmt.Sprintf("%d changes of one Deployment, each when the one before had come; from before the write until "+
			"the last of 10 members has it", fleetChanges)
	b.add(b.figure(figureChanged), took[len(took)/2], "ms", how)
	b.add(b.figure(figureChangedP99), took[len(took)*99/100], "ms", how)
	return nil
}

// write creates the object, and later patches what its user changes; others write its status.
func (b *fleetBench) write(ctx context.Context, object *appsv1.Deployment, change int) error {
	if change == 0 {
		return b.fleet.Create(ctx, object.DeepCopy())
	}
	patch, err := json.Marshal(map[string]any{
		"spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": object.Spec.Template.Spec.Containers}},
		},
	})
	if err != nil {
		return err
	}
	return b.fleet.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// measureManyBindings reads how much memory the federation process takes.
func (b *fleetBench) measureManyBindings(ctx context.Context) error {
	if err := b.createDeployments(ctx, "divided", fleetObjects, fleetBindings); err != nil {
		return err
	}
	if err := b.waitBindings(ctx, fleetBindings, isSettled); err != nil {
		return err
	}
	pss, err := kilobytes(filepath.Join("/proc", strconv.Itoa(b.federation.PID()), "smaps_rollup"), "Pss")
	if err != nil {
		return err
	}
	b.add(b.figure(figureBindings), pss/1000, "MB", "PSS when all were placed and reported")
	return nil
}

// played is what a member does with a Deployment: it runs at once.
func (b *fleetBench) played(resource, _, _ string, value map[string]any) {
	if resource != "deployments" {
		return
	}
	spec, _ := value["spec"].(map[string]any)
	metadata, _ := value["metadata"].(map[string]any)
	metadata["generation"] = 1
	value["status"] = map[string]any{
		"observedGeneration": 1, "replicas": spec["replicas"], "updatedReplicas": spec["replicas"],
		"readyReplicas": spec["replicas"], "availableReplicas": spec["replicas"],
	}
	b.arrivals.came(revisionOf(value))
}

// revisionOf reads what measureChanges changes.
func revisionOf(value map[string]any) string {
	var object appsv1.Deployment
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &object) != nil || object.Name != "everywhere" {
		return ""
	}
	return object.Spec.Template.Spec.Containers[0].Env[0].Value
}
