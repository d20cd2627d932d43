package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/quota"
)

// scheduling writes into each binding the clusters that core decides on, and why.
type scheduling struct {
	client   client.Client
	events   events.EventRecorder
	now      func() time.Time
	clusters karmada.Snapshots
	quotas   quota.Ledger
}

// Reconcile handles one binding.
func (s *scheduling) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	b, err := bindings.Get(ctx, s.client, request.NamespacedName)
	if err != nil || b == nil || b.GetDeletionTimestamp() != nil || schedulingSuspended(b) || !bindings.IsPlaced(b.BindingSpec()) {
		return reconcile.Result{}, err
	}
	clusters, err := s.snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !needsDecision(b, clusters) {
		return reconcile.Result{}, s.observe(ctx, b)
	}
	decision, err := s.withinQuota(ctx, b, decide(b, clusters))
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := s.writeSpec(ctx, b, decision); err != nil {
		return reconcile.Result{}, err
	}
	if err := s.writeStatus(ctx, b, decision); err != nil {
		return reconcile.Result{}, err
	}
	if decision.reason == workv1alpha2.ReasonUnschedulable || decision.reason == workv1alpha2.ReasonQuotaExceeded {
		return reconcile.Result{RequeueAfter: retryUnschedulable}, nil
	}
	return reconcile.Result{}, nil
}

func schedulingSuspended(b bindings.Binding) bool {
	suspension := b.BindingSpec().Suspension
	return suspension != nil && suspension.Scheduling != nil && *suspension.Scheduling
}

func (s *scheduling) snapshot(ctx context.Context) (core.Snapshot, error) {
	var list clusterv1alpha1.ClusterList
	if err := s.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return core.Snapshot{}, fmt.Errorf("listing clusters: %w", err)
	}
	return s.clusters.Of(func(yield func(*clusterv1alpha1.Cluster) bool) {
		for i := range list.Items {
			if !yield(&list.Items[i]) {
				return
			}
		}
	}), nil
}

// needsDecision: always for what is not divided by room, since there the decision follows from policy and clusters
// alone. Replicas that were divided by room stay where they are until the policy or their number changes, somebody
// asks for it, or a cluster goes away.
func needsDecision(b bindings.Binding, clusters core.Snapshot) bool {
	spec, status := b.BindingSpec(), b.BindingStatus()
	translated, err := karmada.Binding(spec, status)
	if err != nil || !translated.Workload || translated.Fresh {
		return true
	}
	switch translated.Placement.Strategy {
	case core.Duplicated, core.StaticWeight:
		return true
	}
	return placementChanged(b) || sumOf(spec.Clusters) != spec.Replicas || losesCluster(spec, clusters)
}

func placementChanged(b bindings.Binding) bool {
	var applied policyv1alpha1.Placement
	text, found := b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	if !found || json.Unmarshal([]byte(text), &applied) != nil {
		return true
	}
	placement := b.BindingSpec().Placement
	return placement == nil || !equality.Semantic.DeepEqual(*placement, applied)
}

func sumOf(clusters []workv1alpha2.TargetCluster) int32 {
	var sum int32
	for _, c := range clusters {
		sum += c.Replicas
	}
	return sum
}

func losesCluster(spec *workv1alpha2.ResourceBindingSpec, clusters core.Snapshot) bool {
	for _, c := range spec.Clusters {
		if !clusters.Serves(c.Name) {
			return true
		}
	}
	return false
}

// outcome is a decision in the form of bindings.
type outcome struct {
	clusters []workv1alpha2.TargetCluster
	term     string
	reason   string
	message  string
	report   *workv1alpha2.PlacementDecision
}

func decide(b bindings.Binding, clusters core.Snapshot) outcome {
	spec := b.BindingSpec()
	translated, err := karmada.Binding(spec, b.BindingStatus())
	if err != nil {
		return outcome{clusters: spec.Clusters, term: b.BindingStatus().SchedulerObservedAffinityName, reason: workv1alpha2.ReasonSchedulerError, message: err.Error()}
	}
	decision := core.Decide(clusters, translated)
	result := outcome{
		clusters: karmada.Targets(decision.Targets), term: decision.Term,
		reason: workv1alpha2.ReasonSuccess, message: shorten(decision.Explain()), report: karmada.Report(decision),
	}
	if decision.Failure != nil {
		result.reason = failureReason(decision.Failure)
	}
	return result
}

func failureReason(failure *core.Failure) string {
	if failure.Kind == core.NoRoom {
		return workv1alpha2.ReasonUnschedulable
	}
	return workv1alpha2.ReasonNoClusterFit
}

// shorten keeps a message within what a condition may hold.
func shorten(message string) string {
	const most = 32768 - len("…")
	if len(message) <= most {
		return message
	}
	return message[:most] + "…"
}

// writeSpec writes clusters and the placement they were chosen for, if they changed.
func (s *scheduling) writeSpec(ctx context.Context, b bindings.Binding, decision outcome) error {
	before := b.DeepCopyObject().(bindings.Binding)
	placement, err := json.Marshal(b.BindingSpec().Placement)
	if err != nil {
		return fmt.Errorf("encoding placement: %w", err)
	}
	if placementChanged(b) {
		bindings.SetAnnotation(b, policyv1alpha1.AppliedPlacementAnnotation, string(placement))
	}
	b.BindingSpec().Clusters = decision.clusters
	if equality.Semantic.DeepEqual(before.BindingSpec().Clusters, decision.clusters) && reflect.DeepEqual(before.GetAnnotations(), b.GetAnnotations()) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, b, patch); err != nil {
		return fmt.Errorf("writing the decision for binding %s: %w", client.ObjectKeyFromObject(b), err)
	}
	return nil
}

// writeStatus explains the decision, if anything about it is new.
func (s *scheduling) writeStatus(ctx context.Context, b bindings.Binding, decision outcome) error {
	before := b.DeepCopyObject().(bindings.Binding)
	status := b.BindingStatus()
	now := metav1.NewTime(s.now())
	fresh := karmada.Fresh(b.BindingSpec(), status)
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.ConditionScheduled, Status: conditionStatus(decision.reason == workv1alpha2.ReasonSuccess),
		Reason: decision.reason, Message: decision.message, LastTransitionTime: now,
	})
	if changed || fresh || status.LastScheduledTime == nil {
		status.LastScheduledTime = &now
	}
	status.SchedulerObservedAffinityName = decision.term
	if !karmada.SameReport(status.Decision, decision.report) {
		status.Decision = decision.report
	}
	status.SchedulerObservedGeneration = b.GetGeneration()
	if err := bindings.PatchStatus(ctx, s.client, before, b); err != nil {
		return err
	}
	if changed && decision.reason != workv1alpha2.ReasonSuccess {
		s.warn(b, decision)
	}
	return nil
}

// warn tells those who look at the binding or at the object itself.
func (s *scheduling) warn(b bindings.Binding, decision outcome) {
	resource := b.BindingSpec().Resource
	object := &corev1.ObjectReference{
		APIVersion: resource.APIVersion, Kind: resource.Kind, Namespace: resource.Namespace, Name: resource.Name, UID: resource.UID,
	}
	// Events hold 1024 characters; the condition has the rest.
	message := fmt.Sprintf("%.1000s", decision.message)
	for _, regarding := range []runtime.Object{b, object} {
		s.events.Eventf(regarding, nil, corev1.EventTypeWarning, "ScheduleBindingFailed", "Schedule", "%s", message)
	}
}

// observe notes that the binding was looked at and nothing had to be decided.
func (s *scheduling) observe(ctx context.Context, b bindings.Binding) error {
	before := b.DeepCopyObject().(bindings.Binding)
	b.BindingStatus().SchedulerObservedGeneration = b.GetGeneration()
	return bindings.PatchStatus(ctx, s.client, before, b)
}

func conditionStatus(isTrue bool) metav1.ConditionStatus {
	if isTrue {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// placementRelevant lets cluster changes through that may change decisions; heartbeats don't.
func placementRelevant() predicate.TypedFuncs[*clusterv1alpha1.Cluster] {
	return predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
		UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.Generation != after.Generation || before.DeletionTimestamp != after.DeletionTimestamp ||
				!reflect.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements)
		},
	}
}
