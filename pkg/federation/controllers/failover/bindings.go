package failover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// objects moves objects away from what failed, and back.
type objects struct {
	client    client.Client
	events    events.EventRecorder
	now       func() time.Time
	options   Options
	pace      *pace
	snapshots karmada.Snapshots
	// workIndex finds the Works of a binding.
	workIndex string

	mu sync.Mutex
	// returns of the last hour; nil until the bindings were asked for them.
	returns *failover.Returns
}

// round is one look at one binding. What it changes in the binding's spec is written at its end.
type round struct {
	bindings.Binding
	key      types.NamespacedName
	now      time.Time
	clusters fleet
	// next is when to look again; zero if only a change can make a difference.
	next time.Duration
	// pendingEvents are told when the spec is written.
	pendingEvents []pendingEvent
	// departed are clusters whose Work goes, once the spec is written.
	departed []string
}

type pendingEvent struct{ kind, reason, message string }

func (r *round) again(in time.Duration) {
	if in > 0 && (r.next == 0 || in < r.next) {
		r.next = in
	}
}

func (r *round) tell(kind, reason, format string, arguments ...any) {
	r.pendingEvents = append(r.pendingEvents, pendingEvent{kind, reason, fmt.Sprintf(format, arguments...)})
}

// decided is the binding's status as it tells the scheduler's last decision: what is stored may tell of the one before.
func (r *round) decided() *workv1alpha2.ResourceBindingStatus { return karmada.Explained(r.Binding) }

func (r *round) tolerations() []corev1.Toleration {
	if r.BindingSpec().Placement == nil {
		return nil
	}
	return r.BindingSpec().Placement.ClusterTolerations
}

// Reconcile handles one binding.
func (o *objects) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	b, err := bindings.Get(ctx, o.client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b == nil || b.GetDeletionTimestamp() != nil {
		o.pace.leave(request.NamespacedName, o.now())
		return reconcile.Result{}, nil
	}
	clusters, err := listFleet(ctx, o.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	r := &round{Binding: b, key: request.NamespacedName, now: o.now(), clusters: clusters}
	before := b.DeepCopyObject().(bindings.Binding)
	if err := o.decide(ctx, r); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.next}, o.write(ctx, before, r)
}

// decide changes the spec: at most one of leaving, clearing up and returning has something to do at a time.
func (o *objects) decide(ctx context.Context, r *round) error {
	if !suspended(r) {
		if o.evictTainted(r) {
			return nil
		}
		if left, err := o.evictUnhealthy(r); err != nil || left {
			return err
		}
	}
	if err := o.tend(ctx, r); err != nil || suspended(r) {
		return err
	}
	return o.failBack(ctx, r)
}

// suspended: the user wants the decision to stay as it is.
func suspended(r *round) bool {
	s := r.BindingSpec().Suspension
	return s != nil && s.Scheduling != nil && *s.Scheduling
}

// evictTainted takes the object out of one cluster whose taints it doesn't tolerate any longer.
func (o *objects) evictTainted(r *round) bool {
	due := ""
	var eviction failover.TaintEviction
	for _, target := range r.BindingSpec().Clusters {
		cluster := r.clusters[target.Name]
		if cluster == nil {
			continue
		}
		v := failover.NoExecute(cluster.Spec.Taints, r.tolerations(), r.now)
		if v.Due(r.now) {
			due, eviction = target.Name, v
			break
		}
		if v.Leave {
			r.again(v.At.Sub(r.now))
		}
	}
	if due == "" {
		o.pace.leave(r.key, r.now)
		return false
	}
	if wait := o.pace.wait(r.key, r.now); wait > 0 {
		r.again(wait)
		return false
	}
	e := failover.Eviction{
		Cluster: due, Reason: workv1alpha2.EvictionReasonTaintUntolerated,
		Producer: workv1alpha2.EvictionProducerTaintManager,
		Message: "cluster " + due + " has the taint " + eviction.Taint.ToString() +
			", which is not tolerated (any longer)",
	}
	if f := r.BindingSpec().Failover; f != nil && f.Cluster != nil {
		e.PurgeMode, e.GracePeriodSeconds = f.Cluster.PurgeMode, f.Cluster.GracePeriodSeconds
		o.preserve(r, &e, f.Cluster.StatePreservation, "cluster")
	}
	return o.evict(r, e)
}

// retryLeaving is when an application that fails, and can be nowhere else, is looked at again.
const retryLeaving = time.Minute

// evictUnhealthy takes the object out of one cluster whose copy has been unhealthy for too long, if another can take
// it: an application that fails everywhere has to stay where changes of it arrive.
func (o *objects) evictUnhealthy(r *round) (bool, error) {
	clusters, next := failover.Unbearable(r.BindingSpec(), r.BindingStatus().UnhealthyCopies, r.now)
	r.again(next)
	if len(clusters) == 0 {
		return false, nil
	}
	snapshot := o.snapshots.Of(maps.Values(r.clusters))
	policy := r.BindingSpec().Failover.Application
	for _, cluster := range clusters {
		e := applicationFailure(policy, cluster)
		elsewhere, err := failover.Elsewhere(snapshot, r.BindingSpec(), r.decided(), e, r.now)
		if err != nil {
			return false, err
		}
		if elsewhere {
			o.preserve(r, &e, policy.StatePreservation, "application")
			return o.evict(r, e), nil
		}
	}
	r.again(retryLeaving)
	o.events.Eventf(r.Binding, nil, corev1.EventTypeWarning, "NowhereElse", "Evict",
		"the copies in %s have been unhealthy for longer than spec.failover.application tolerates, but nothing else "+
			"can take the object", strings.Join(clusters, ", "))
	return false, nil
}

// applicationFailure is how an object leaves a cluster where it is unhealthy.
func applicationFailure(policy *policyv1alpha1.ApplicationFailoverBehavior, cluster string) failover.Eviction {
	return failover.Eviction{
		Cluster: cluster, Reason: workv1alpha2.EvictionReasonApplicationFailure,
		Producer: workv1alpha2.EvictionProducerApplicationFailover,
		Message: "the copy in cluster " + cluster +
			" has been unhealthy for longer than spec.failover.application tolerates",
		PurgeMode: policy.PurgeMode, GracePeriodSeconds: policy.GracePeriodSeconds,
	}
}

func (o *objects) preserve(r *round, e *failover.Eviction, rules *policyv1alpha1.StatePreservation, field string) {
	labels, err := failover.PreservedLabels(rules, r.BindingStatus().AggregatedStatus, e.Cluster)
	if err != nil {
		r.tell(corev1.EventTypeWarning, "StateNotPreserved", "spec.failover.%s.%v", field, err)
	}
	e.PreservedLabels = labels
}

func (o *objects) evict(r *round, e failover.Eviction) bool {
	mode, _ := o.failBackOf(r)
	e.Affinity, e.Remember = r.decided().SchedulerObservedAffinityName, mode == policyv1alpha1.FailBackAutomatic
	if !failover.Evict(r.BindingSpec(), e, r.now) {
		return false
	}
	r.tell(corev1.EventTypeNormal, "EvictWorkloadFromCluster", "leaving cluster %s: %s", e.Cluster, e.Message)
	return true
}

// tend goes through the copies that wait for their replacement.
func (o *objects) tend(ctx context.Context, r *round) error {
	if len(r.BindingSpec().GracefulEvictionTasks) == 0 {
		return nil
	}
	present, err := o.worksOf(ctx, r.key)
	if err != nil {
		return err
	}
	outcome := failover.Tend(r.BindingSpec(), o.observe(r, present), r.now)
	r.again(outcome.Next)
	for _, task := range outcome.Dropped {
		r.departed = append(r.departed, task.FromCluster)
		r.tell(corev1.EventTypeNormal, "EvictionFinished", "the copy in cluster %s goes (%s)", task.FromCluster,
			task.Reason)
	}
	for _, cluster := range outcome.Restored {
		r.tell(corev1.EventTypeNormal, "EvictionTakenBack",
			"cluster %s is back before anything replaced the copy there", cluster)
	}
	if len(outcome.Overdue) > 0 {
		o.events.Eventf(r.Binding, nil, corev1.EventTypeWarning, "EvictionOverdue", "Evict",
			"the copies in %s are kept, because what replaces them is not healthy yet",
			strings.Join(outcome.Overdue, ", "))
	}
	return o.confirmDeparted(ctx, r, present)
}

// confirmDeparted has the Works go without being counted as deletions.
func (o *objects) confirmDeparted(ctx context.Context, r *round, present map[string]*workv1alpha1.Work) error {
	for _, cluster := range r.departed {
		if work := present[cluster]; work != nil {
			if err := ConfirmEviction(ctx, o.client, work); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *objects) observe(r *round, present map[string]*workv1alpha1.Work) failover.Observation {
	status := r.decided()
	scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled)
	seen := failover.Observation{
		Decided:   status.SchedulerObservedGeneration == r.GetGeneration(),
		Scheduled: scheduled != nil && scheduled.Reason == workv1alpha2.ReasonSuccess,
		Current:   status.AggregatedGeneration == r.GetGeneration(),
		Copies:    map[string]workv1alpha2.AggregatedStatusItem{},
		Present:   map[string]bool{},
		Welcome:   r.clusters.welcome(r.tolerations()),
		Timeout:   o.options.GracefulEvictionTimeout,
	}
	for _, item := range status.AggregatedStatus {
		seen.Copies[item.ClusterName] = item
	}
	for cluster := range present {
		seen.Present[cluster] = true
	}
	return seen
}

func (o *objects) worksOf(ctx context.Context, key types.NamespacedName) (map[string]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := o.client.List(ctx, &list, client.MatchingFields{o.workIndex: key.String()}); err != nil {
		return nil, fmt.Errorf("listing the Works of binding %s: %w", key, err)
	}
	result := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		if cluster, ok := clusterv1alpha1.ClusterOf(list.Items[i].Namespace); ok {
			result[cluster] = &list.Items[i]
		}
	}
	return result, nil
}

// write the spec if it changed, and tell about it.
func (o *objects) write(ctx context.Context, before bindings.Binding, r *round) error {
	if apiequality.Semantic.DeepEqual(before.BindingSpec(), r.BindingSpec()) {
		return nil
	}
	after := r.DeepCopyObject().(bindings.Binding)
	if err := o.client.Patch(ctx, after,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the clusters of binding %s: %w", r.key, err)
	}
	for _, n := range r.pendingEvents {
		o.events.Eventf(r.Binding, nil, n.kind, n.reason, "Failover", "%s", n.message)
	}
	return nil
}

// mentions tells whether a change of a cluster may make a difference for an object.
func mentions(b bindings.Binding, cluster string) bool {
	spec := b.BindingSpec()
	return slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster }) ||
		len(spec.GracefulEvictionTasks) > 0 || spec.BeforeFailover != nil || laterTerm(b)
}

// laterTerm: an affinity term before the one in use might be better.
func laterTerm(b bindings.Binding) bool {
	p := b.BindingSpec().Placement
	if p == nil || len(p.ClusterAffinities) < 2 {
		return false
	}
	name := karmada.Explained(b).SchedulerObservedAffinityName
	return name != "" && p.ClusterAffinities[0].AffinityName != name
}
