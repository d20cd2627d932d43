package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/priorityqueue"
	"github.com/trellis-garden/trellis/pkg/federation/quota"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
	"github.com/trellis-garden/trellis/pkg/federation/wake"
)

// scheduling writes into each binding the clusters that core decides on, and why.
type scheduling struct {
	client   client.Client
	events   events.EventRecorder
	now      func() time.Time
	clusters *clusterView
	// index is told what the bindings depend on, before clusters are looked at: so no change of them is missed.
	index *wake.Index
	// reservations hold the room that decisions were promised; observed tells whether they know of all bindings yet.
	reservations *reservations.Reservations
	observed     func() bool
	quotas       quota.Reservations
	// priorities have the more urgent decided first.
	priorities *priorityqueue.Priorities
	// verdicts are decisions whose status is left to the works controller to write.
	verdicts *verdicts
	// neighbours are workloads that want to be together or apart.
	neighbours neighbours
}

// Reconcile handles one binding.
func (s *scheduling) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer s.priorities.Decided(request.NamespacedName)
	b, err := bindings.Get(ctx, s.client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b == nil || b.GetDeletionTimestamp() != nil {
		s.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	s.index.Set(request.NamespacedName, interestOf(b))
	if karmada.Suspended(b) || !bindings.IsPlaced(b.BindingSpec()) {
		s.priorities.Wait(request.NamespacedName, false)
		return reconcile.Result{}, nil
	}
	clusters, _, err := s.clusters.snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !karmada.NeedsDecision(b, clusters) {
		s.priorities.Wait(request.NamespacedName, false)
		return s.observe(ctx, b)
	}
	decision, err := s.decide(ctx, b)
	if err != nil {
		return reconcile.Result{}, err
	}
	s.priorities.Decided(request.NamespacedName)
	if err := s.writeSpec(ctx, b, decision); err != nil {
		return reconcile.Result{}, err
	}
	s.priorities.Wait(request.NamespacedName, decision.waits())
	return s.report(ctx, b, decision)
}

func (s *scheduling) forget(key types.NamespacedName) {
	s.index.Remove(key)
	s.priorities.Forget(key)
	s.verdicts.drop(key)
}

// create decides for a binding that does not exist yet and creates it with its clusters. The decision is made again, and
// explained, when it exists.
func (s *scheduling) create(ctx context.Context, b bindings.Binding) error {
	if karmada.Suspended(b) || !bindings.IsPlaced(b.BindingSpec()) {
		return s.client.Create(ctx, b)
	}
	decision, err := s.decide(ctx, b)
	if err != nil {
		return err
	}
	if _, err := enter(b, decision); err != nil {
		return err
	}
	return s.written(b, s.client.Create(ctx, b))
}

// written tells the reservations what became of a decision.
func (s *scheduling) written(b bindings.Binding, err error) error {
	key := client.ObjectKeyFromObject(b)
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		s.reservations.Written(key, b.GetGeneration())
	case errors.As(err, &answer) && answer.Status().Code >= 400 && answer.Status().Code < 500:
		s.reservations.Withdraw(key)
	}
	return err
}

// interestOf tells which changes of clusters concern a binding.
func interestOf(b bindings.Binding) wake.Interest {
	spec := b.BindingSpec()
	interest := wake.Interest{Kind: bindings.TemplateOf(b).GroupVersionKind, Settled: true}
	for _, target := range bindings.Targets(spec) {
		interest.Clusters = append(interest.Clusters, target.Name)
	}
	translated, err := karmada.Translate(b)
	if err != nil || !bindings.IsPlaced(spec) {
		return interest
	}
	text, err := json.Marshal(spec.Placement)
	if err != nil {
		return interest
	}
	interest.Placement, interest.Fingerprint = translated.Placement, unique.Make(string(text)).Value()
	interest.Settled = karmada.Settled(b, translated)
	scheduled := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled)
	interest.Waiting = scheduled != nil && scheduled.Reason == workv1alpha2.ReasonUnschedulable
	return interest
}

// outcome is a decision in the form of bindings.
type outcome struct {
	clusters []workv1alpha2.TargetCluster
	term     string
	reason   string
	message  string
	report   *workv1alpha2.PlacementDecision
	// retry tells of a failure that may pass without an event for the binding.
	retry bool
}

// decide for a binding. What it takes of the clusters' room stays promised until written is called.
func (s *scheduling) decide(ctx context.Context, b bindings.Binding) (outcome, error) {
	key := client.ObjectKeyFromObject(b)
	if err := s.priorities.Await(ctx, key, priorityOf(b)); err != nil {
		return outcome{}, err
	}
	decision, err := s.decideAmong(ctx, b, func(near, apart []string) (outcome, error) {
		return decideBy(b, func(translated core.Binding) (core.Decision, error) {
			translated.Near, translated.Apart = near, apart
			return s.decideWithin(ctx, key, b.GetGeneration(), translated)
		})
	})
	if err != nil {
		return outcome{}, err
	}
	allowed, err := s.withinQuota(ctx, b, decision)
	if err != nil || allowed.reason != decision.reason {
		s.reservations.Withdraw(key)
	}
	return allowed, err
}

// decideBy translates a binding, and the decision about it back.
func decideBy(b bindings.Binding, decide func(core.Binding) (core.Decision, error)) (outcome, error) {
	spec := b.BindingSpec()
	translated, err := karmada.Translate(b)
	if err != nil {
		return outcome{clusters: spec.Clusters, term: b.BindingStatus().SchedulerObservedAffinityName, reason: workv1alpha2.ReasonSchedulerError, message: err.Error()}, nil
	}
	decision, err := decide(translated)
	if err != nil {
		return outcome{}, err
	}
	result := outcome{
		clusters: karmada.Targets(spec, decision.Targets), term: decision.Term,
		reason: workv1alpha2.ReasonSuccess, message: shorten(decision.Explain()), report: karmada.Report(decision),
	}
	if decision.Failure != nil {
		result.reason = failureReason(decision.Failure)
	}
	return result, nil
}

// decideWithin what is not promised to others. Objects without replicas take no room.
func (s *scheduling) decideWithin(ctx context.Context, key types.NamespacedName, generation int64, b core.Binding) (core.Decision, error) {
	if !b.Workload {
		clusters, _, err := s.clusters.snapshot(ctx)
		if err != nil {
			return core.Decision{}, err
		}
		return core.Decide(clusters, b), nil
	}
	known := func(context.Context) (bool, error) { return s.observed(), nil }
	if err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, known); err != nil {
		return core.Decision{}, err
	}
	return s.reservations.Decide(key, generation, b, func() (core.Snapshot, reservations.Surveys, error) { return s.clusters.snapshot(ctx) })
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
	changed, err := enter(b, decision)
	if err != nil || !changed {
		return s.written(b, err)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.written(b, s.client.Patch(ctx, b, patch)); err != nil {
		return fmt.Errorf("writing the decision for binding %s: %w", client.ObjectKeyFromObject(b), err)
	}
	return nil
}

// enter puts a decision into a binding, and tells whether it changed anything.
func enter(b bindings.Binding, decision outcome) (changed bool, err error) {
	if karmada.PlacementChanged(b) {
		placement, err := json.Marshal(b.BindingSpec().Placement)
		if err != nil {
			return false, fmt.Errorf("encoding placement: %w", err)
		}
		bindings.SetAnnotation(b, policyv1alpha1.AppliedPlacementAnnotation, string(placement))
		changed = true
	}
	if decision.term != b.GetAnnotations()[workv1alpha2.AppliedAffinityAnnotation] {
		bindings.SetAnnotation(b, workv1alpha2.AppliedAffinityAnnotation, decision.term)
		changed = true
	}
	if !equality.Semantic.DeepEqual(b.BindingSpec().Clusters, decision.clusters) {
		b.BindingSpec().Clusters = decision.clusters
		changed = true
	}
	return changed, nil
}

// report sees to it that the decision is explained in the status. That of one that could be made is left to the works
// controller for a moment, which writes what became of it soon after.
func (s *scheduling) report(ctx context.Context, b bindings.Binding, decision outcome) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(b)
	verdict := verdict{
		outcome: decision, at: metav1.NewTime(s.now()), generation: b.GetGeneration(), uid: b.GetUID(), fresh: karmada.Fresh(b.BindingSpec(), b.BindingStatus()),
	}
	before := b.DeepCopyObject().(bindings.Binding)
	changed := verdict.explain(b)
	if equality.Semantic.DeepEqual(before.BindingStatus(), b.BindingStatus()) {
		s.verdicts.drop(key)
		return reconcile.Result{}, nil
	}
	if decision.reason == workv1alpha2.ReasonSuccess && len(decision.clusters) > 0 && s.verdicts.leave(key, verdict) {
		return reconcile.Result{RequeueAfter: waitForWorks}, nil
	}
	if err := bindings.PatchStatus(ctx, s.client, before, b); err != nil {
		return reconcile.Result{}, err
	}
	s.verdicts.drop(key)
	if changed && decision.reason != workv1alpha2.ReasonSuccess {
		s.warn(b, decision)
	}
	return reconcile.Result{}, nil
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
func (s *scheduling) observe(ctx context.Context, b bindings.Binding) (reconcile.Result, error) {
	before := b.DeepCopyObject().(bindings.Binding)
	b.BindingStatus().SchedulerObservedGeneration = b.GetGeneration()
	return reconcile.Result{}, bindings.PatchStatus(ctx, s.client, before, b)
}

func conditionStatus(isTrue bool) metav1.ConditionStatus {
	if isTrue {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
