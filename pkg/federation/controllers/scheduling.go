package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// scheduling writes into each binding the clusters that core decides on, and why. The status of bindings is not its
// own: the works controller repeats there what it decided.
type scheduling struct {
	client   client.Client
	events   events.EventRecorder
	now      func() time.Time
	clusters *clusterView
	// firstAnswer is how long a decision waits for members that have just come.
	firstAnswer time.Duration
	// index is told what the bindings depend on, before clusters are looked at: so no change of them is missed.
	index *wake.Index
	// reservations hold the room that decisions were promised; observed tells whether they know of all bindings yet.
	reservations *reservations.Reservations
	observed     func() bool
	quotas       quota.Reservations
	// priorities have the more urgent decided first.
	priorities *priorityqueue.Priorities
	// retry has bindings decided again.
	retry inlet[reconcile.Request]
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
		s.priorities.Rest(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	try := s.priorities.Try()
	clusters, _, err := s.clusters.snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !karmada.NeedsDecision(b, clusters) {
		s.priorities.Rest(request.NamespacedName)
		return reconcile.Result{}, s.observe(ctx, b)
	}
	decision, err := s.decide(ctx, b, try)
	if errors.Is(err, errYields) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	s.note(request.NamespacedName, try, decision)
	if err := s.write(ctx, b, decision); err != nil {
		return reconcile.Result{}, err
	}
	if decision.awaits() {
		// Before, an event tells what comes to be known of the members.
		return reconcile.Result{RequeueAfter: max(decision.until.Sub(s.now()), time.Millisecond)}, nil
	}
	return reconcile.Result{}, nil
}

// errYields tells that a binding does not take what it has found, since more urgent ones are tried before it.
var errYields = errors.New("more urgent bindings are tried first")

// yields has the more urgent be tried before a binding that has waited takes what it has found, and the binding behind
// them.
func (s *scheduling) yields(key types.NamespacedName, try uint64) bool {
	ahead := s.priorities.Ahead(key, try)
	if len(ahead) == 0 {
		return false
	}
	for _, other := range append(ahead, key) {
		s.retry.add(reconcile.Request{NamespacedName: other})
	}
	return true
}

// note whether a binding waits, before others are decided that could find room.
func (s *scheduling) note(key types.NamespacedName, try uint64, decision outcome) {
	if decision.waits() {
		s.priorities.Wait(key, try)
	} else {
		s.priorities.Rest(key)
	}
	s.priorities.Decided(key)
}

func (s *scheduling) forget(key types.NamespacedName) {
	s.index.Remove(key)
	s.priorities.Forget(key)
}

// create decides for a binding that does not exist yet and creates it with its clusters. The decision is made again
// when it exists, since clusters may change in between.
func (s *scheduling) create(ctx context.Context, b bindings.Binding) error {
	if karmada.Suspended(b) || !bindings.IsPlaced(b.BindingSpec()) {
		return s.client.Create(ctx, b)
	}
	decision, err := s.decide(ctx, b, firstTry)
	if err != nil {
		return err
	}
	if _, _, err := enter(b, decision, s.now()); err != nil {
		return err
	}
	if err := s.written(b, s.client.Create(ctx, b)); err != nil {
		return err
	}
	s.warn(b, decision)
	return nil
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
	decided, _ := karmada.DecidedOf(b)
	interest.Waiting = decided.Reason == workv1alpha2.ReasonUnschedulable
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
	// until is when the decision is made at the latest, where reason is ReasonWaiting.
	until time.Time
}

// awaits tells that nothing is decided yet.
func (o outcome) awaits() bool { return o.reason == workv1alpha2.ReasonWaiting }

// waits tells that it is to be tried again, where nothing may announce that it helps.
func (o outcome) waits() bool {
	return o.retry || o.reason == workv1alpha2.ReasonUnschedulable || o.reason == workv1alpha2.ReasonQuotaExceeded
}

// firstTry is that of a binding which does not exist yet. It yields to nobody.
const firstTry = 0

// decide for a binding. What it takes of the clusters' room stays promised until written is called.
func (s *scheduling) decide(ctx context.Context, b bindings.Binding, try uint64) (outcome, error) {
	key := client.ObjectKeyFromObject(b)
	if err := s.priorities.Await(ctx, key, priorityOf(b)); err != nil {
		return outcome{}, err
	}
	decision, err := s.decideAmong(ctx, b, func(near, apart []string) (outcome, error) {
		return decideBy(b, func(translated core.Binding) (core.Decision, error) {
			translated.Near, translated.Apart = near, apart
			translated.Patience = karmada.Patience(b, s.firstAnswer, s.now())
			return s.decideWithin(ctx, key, b.GetGeneration(), translated)
		})
	})
	if err != nil || decision.awaits() {
		return decision, err
	}
	if decision.reason == workv1alpha2.ReasonSuccess && try != firstTry && s.yields(key, try) {
		s.reservations.Withdraw(key)
		return outcome{}, errYields
	}
	allowed, err := s.withinQuota(ctx, b, decision)
	if err != nil || allowed.reason != decision.reason {
		s.reservations.Withdraw(key)
	}
	return allowed, err
}

// termInUse is the affinity term that the binding's clusters were chosen with.
func termInUse(b bindings.Binding) string { return karmada.Explained(b).SchedulerObservedAffinityName }

// decideBy translates a binding, and the decision about it back.
func decideBy(b bindings.Binding, decide func(core.Binding) (core.Decision, error)) (outcome, error) {
	spec := b.BindingSpec()
	translated, err := karmada.Translate(b)
	if err != nil {
		return outcome{
			clusters: spec.Clusters, term: termInUse(b), reason: workv1alpha2.ReasonSchedulerError,
			message: err.Error(),
		}, nil
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
		result.reason, result.until = failureReason(decision.Failure), decision.Failure.Until
	}
	if result.awaits() {
		result.term = termInUse(b)
	}
	return result, nil
}

// decideWithin what is not promised to others. Objects without replicas take no room.
func (s *scheduling) decideWithin(ctx context.Context, key types.NamespacedName, generation int64,
	b core.Binding) (core.Decision, error) {
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
	return s.reservations.Decide(key, generation, b,
		func() (core.Snapshot, reservations.Surveys, error) { return s.clusters.snapshot(ctx) })
}

func failureReason(failure *core.Failure) string {
	switch failure.Kind {
	case core.NoRoom:
		return workv1alpha2.ReasonUnschedulable
	case core.Waiting:
		return workv1alpha2.ReasonWaiting
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

// write what was decided, and why, if the binding doesn't say the same already.
func (s *scheduling) write(ctx context.Context, b bindings.Binding, decision outcome) error {
	before := b.DeepCopyObject().(bindings.Binding)
	changed, isNew, err := enter(b, decision, s.now())
	if err != nil || !changed {
		return s.written(b, err)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.written(b, s.client.Patch(ctx, b, patch)); err != nil {
		return fmt.Errorf("writing the decision for binding %s: %w", client.ObjectKeyFromObject(b), err)
	}
	if isNew {
		s.warn(b, decision)
	}
	return nil
}

// enter puts a decision into a binding. It tells whether that changed anything, and whether the reason or message is
// another one.
func enter(b bindings.Binding, decision outcome, now time.Time) (changed, isNew bool, err error) {
	last, found := karmada.DecidedOf(b)
	isNew = !found || last.Reason != decision.reason || last.Message != decision.message
	decided := karmada.Decided{
		Generation: b.GetGeneration(), Time: last.Time, Reason: decision.reason, Message: decision.message,
	}
	waitsOn := decision.awaits() && last.Reason == decision.reason
	if isNew && !waitsOn || karmada.Fresh(b.BindingSpec(), karmada.Explained(b)) {
		decided.Time = metav1.NewTime(now)
	}
	marked, err := markPlacement(b, decision)
	if err != nil {
		return false, false, err
	}
	moved := !apiequality.Semantic.DeepEqual(b.BindingSpec().Clusters, decision.clusters)
	if moved {
		b.BindingSpec().Clusters = decision.clusters
	}
	if moved || decided.Generation == 0 {
		decided.Generation++ // The API server counts each change of a spec, and starts with 1.
	}
	told := karmada.SetDecided(b, decided)
	explained, err := karmada.SetReport(b, decision.report)
	return marked || moved || told || explained, isNew, err
}

// markPlacement notes the placement, and the term of it, that clusters were chosen for. Who waits has not chosen.
func markPlacement(b bindings.Binding, decision outcome) (changed bool, err error) {
	if decision.awaits() {
		return false, nil
	}
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
	return changed, nil
}

// warn those who look at the binding or at the object itself of a decision that could not be made.
func (s *scheduling) warn(b bindings.Binding, decision outcome) {
	if decision.reason == workv1alpha2.ReasonSuccess || decision.awaits() {
		return
	}
	resource := b.BindingSpec().Resource
	object := &corev1.ObjectReference{
		APIVersion: resource.APIVersion, Kind: resource.Kind, Namespace: resource.Namespace, Name: resource.Name,
		UID: resource.UID,
	}
	// Events hold 1024 characters; the condition has the rest.
	message := fmt.Sprintf("%.1000s", decision.message)
	for _, regarding := range []runtime.Object{b, object} {
		s.events.Eventf(regarding, nil, corev1.EventTypeWarning, "ScheduleBindingFailed", "Schedule", "%s", message)
	}
}

// observe notes that the binding was looked at and the last decision still holds.
func (s *scheduling) observe(ctx context.Context, b bindings.Binding) error {
	decided, found := karmada.DecidedOf(b)
	if !found || decided.Generation == b.GetGeneration() {
		return nil
	}
	before := b.DeepCopyObject().(bindings.Binding)
	decided.Generation = b.GetGeneration()
	if back := b.BindingSpec().LastFailBack; back != nil && back.AffinityName != "" {
		bindings.SetAnnotation(b, workv1alpha2.AppliedAffinityAnnotation, back.AffinityName)
	}
	karmada.SetDecided(b, decided)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, b, patch); err != nil {
		return fmt.Errorf("confirming the decision for binding %s: %w", client.ObjectKeyFromObject(b), err)
	}
	return nil
}

func conditionStatus(isTrue bool) metav1.ConditionStatus {
	if isTrue {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
