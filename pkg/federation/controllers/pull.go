package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/capacity"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// isPushed tells whether the fleet talks to a member; an agent does for the others.
func isPushed(cluster *clusterv1alpha1.Cluster) bool {
	return cluster.Spec.SyncMode != clusterv1alpha1.Pull
}

func (e *execution) check(object *unstructured.Unstructured) error {
	if e.allows == nil {
		return nil
	}
	return e.allows(object)
}

// relay tells a member's agent which of its Works may be removed, and gives up those of an agent that is not heard of
// any more.
func (e *execution) relay(ctx context.Context, work *workv1alpha1.Work,
	cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if work.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(work, workv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	if isGivenUp(cluster, time.Now()) {
		return reconcile.Result{}, finalizer.Remove(ctx, e.client, work, workv1alpha1.Finalizer)
	}
	var result reconcile.Result
	if cluster.DeletionTimestamp != nil {
		result.RequeueAfter = retryRemoval
	}
	answer, err := e.gate.Ask(ctx, work, cluster)
	if err != nil || !answer.Go && !answer.Keep {
		return reconcile.Result{RequeueAfter: answer.After}, err
	}
	return result, e.release(ctx, work, answer.Keep)
}

// release lets an agent remove a Work, with its objects or without.
func (e *execution) release(ctx context.Context, work *workv1alpha1.Work, keep bool) error {
	known := work.Annotations[workv1alpha1.ConfirmDeletionAnnotation]
	wanted := workv1alpha1.ConfirmDeletionWithinBudget
	if keep {
		wanted = workv1alpha1.ConfirmDeletionKeep
	}
	if known == wanted || !keep && releases(work) {
		return nil
	}
	before := work.DeepCopy()
	bindings.SetAnnotation(work, workv1alpha1.ConfirmDeletionAnnotation, wanted)
	if err := e.client.Patch(ctx, work, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting the agent remove Work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}

// releases tells whether the objects of a Work that is being deleted may be removed.
func releases(work *workv1alpha1.Work) bool {
	switch work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] {
	case workv1alpha1.ConfirmDeletionYes, workv1alpha1.ConfirmDeletionEvicted, workv1alpha1.ConfirmDeletionWithinBudget:
		return true
	}
	return false
}

// heartbeat is the last one that was seen of an agent. Its time is the agent's own; when it was seen counts, so clocks
// may differ.
type heartbeat struct {
	time metav1.MicroTime
	seen time.Time
}

// longestSilence bounds what an agent may ask for in its Lease.
const longestSilence = time.Minute

// Reasons of the condition Ready of members that have an agent.
const (
	reasonSilent   = "AgentNotHeard"
	reasonTooLarge = "ReportTooLarge"
)

// checkAgent makes of what an agent reports, and of how long it is silent, whether its member is ready. Agents never
// write that themselves.
func (c *clusters) checkAgent(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	c.members.Remove(cluster.Name)
	if size := sizeOf(&cluster.Status); size > maxReport {
		return c.record(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) { discardReport(status, size) })
	}
	if err := capacity.Check(cluster.Status.ResourceSummary); err != nil {
		return c.refuse(ctx, cluster, clusterv1alpha1.ReasonImplausible,
			"The agent reports what cannot be: "+err.Error())
	}
	ready, reason, message, err := c.hear(ctx, cluster)
	if err != nil {
		return err
	}
	if ready = c.damped(cluster, ready); ready == "" {
		return nil
	}
	if ready == metav1.ConditionTrue {
		var list clusterv1alpha1.ClusterList
		if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		if err := refuseDuplicate(cluster, list.Items); err != nil {
			return c.refuse(ctx, cluster, reasonDuplicate, err.Error())
		}
	}
	return c.record(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) {
		setReady(status, ready, reason, message)
	})
}

// maxReport bounds the status of a member that an agent writes; no fleet writes as much itself. The fleet has to add to
// it what it finds.
const maxReport = 1 << 20

func sizeOf(status *clusterv1alpha1.ClusterStatus) int {
	text, err := json.Marshal(status)
	if err != nil {
		return math.MaxInt
	}
	return len(text)
}

// discardReport keeps an agent from making the status of its member too large for what the fleet has to say.
func discardReport(status *clusterv1alpha1.ClusterStatus, size int) {
	*status = clusterv1alpha1.ClusterStatus{}
	setReady(status, metav1.ConditionFalse, reasonTooLarge,
		fmt.Sprintf("The agent reports %d bytes, more than %d", size, maxReport))
}

// hear tells what is known of a member through its agent.
func (c *clusters) hear(ctx context.Context,
	cluster *clusterv1alpha1.Cluster) (metav1.ConditionStatus, string, string, error) {
	lease := &coordinationv1.Lease{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.CredentialsNamespace, Name: cluster.Name},
		lease)
	if apierrors.IsNotFound(err) {
		return metav1.ConditionFalse, clusterv1alpha1.ReasonNotAccepted,
			fmt.Sprintf("No agent was accepted for this member yet: `trellisctl register %s` invites one, "+
				"`trellisctl accept %s` accepts it",
				cluster.Name, cluster.Name), nil
	}
	if err != nil {
		return "", "", "", fmt.Errorf("lease of member %s: %w", cluster.Name, err)
	}
	reported := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionAgentReported)
	if lease.Spec.RenewTime == nil || reported == nil {
		return metav1.ConditionUnknown, clusterv1alpha1.ReasonNotReported,
			"The agent was accepted, and has not reported yet", nil
	}
	if silent := c.silence(cluster.Name, lease); silent > allowedSilence(lease) {
		return metav1.ConditionUnknown, reasonSilent,
			fmt.Sprintf("The agent in the member has not been heard of since %s",
				lease.Spec.RenewTime.UTC().Format(time.RFC3339)), nil
	}
	return reported.Status, reported.Reason, reported.Message, nil
}

func allowedSilence(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil || *lease.Spec.LeaseDurationSeconds <= 0 {
		return longestSilence
	}
	return min(longestSilence, time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second)
}

// silence is how long ago another heartbeat was seen. A new process has seen the last one just now.
func (c *clusters) silence(name string, lease *coordinationv1.Lease) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.heard[name]
	if !found || !known.time.Equal(lease.Spec.RenewTime) {
		known = heartbeat{time: *lease.Spec.RenewTime, seen: c.now()}
		c.heard[name] = known
	}
	return c.now().Sub(known.seen)
}

// awaitsAgent tells whether the agent of a member that leaves has yet to hear of it. Its rights in the fleet go with
// the Cluster: an agent whose watch breaks off at that moment would never know that it has to go.
func (c *clusters) awaitsAgent(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if isPushed(cluster) || isGivenUp(cluster, c.now()) ||
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionAgentLeaving) {
		return false, nil
	}
	key := client.ObjectKey{Namespace: clusterv1alpha1.CredentialsNamespace, Name: cluster.Name}
	if err := c.client.Get(ctx, key, &coordinationv1.Lease{}); err != nil {
		// Without a Lease no agent was accepted.
		return false, client.IgnoreNotFound(err)
	}
	if c.now().Sub(c.awaitedSince(cluster.Name)) > agentHears {
		return false, nil
	}
	return true, c.record(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1alpha1.ConditionAgentLeaving, Status: metav1.ConditionFalse, Reason: "NotHeardYet",
			Message: fmt.Sprintf("The agent has not stored yet that the member leaves the fleet; it is waited for for "+
				"%s at most", agentHears),
		})
	})
}

// awaitedSince does not ask the agent, whose word the Cluster's status is.
func (c *clusters) awaitedSince(name string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.awaited[name]; !found {
		c.awaited[name] = c.now()
	}
	return c.awaited[name]
}

// agentSpoke wakes a member whose agent reports another state, or has heard that the member leaves.
func agentSpoke() predicate.TypedFuncs[*clusterv1alpha1.Cluster] {
	spoken := func(cluster *clusterv1alpha1.Cluster) (statuses [2]metav1.ConditionStatus) {
		for i, kind := range []string{clusterv1alpha1.ConditionAgentReported, clusterv1alpha1.ConditionAgentLeaving} {
			if c := meta.FindStatusCondition(cluster.Status.Conditions, kind); c != nil {
				statuses[i] = c.Status
			}
		}
		return statuses
	}
	return predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
		UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
			return spoken(e.ObjectOld) != spoken(e.ObjectNew)
		},
	}
}
