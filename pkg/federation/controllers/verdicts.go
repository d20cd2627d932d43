package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// verdict is a decision and what the status of its binding has to say about it.
type verdict struct {
	outcome
	at metav1.Time
	// generation and uid of the binding that has the decision in its spec.
	generation int64
	uid        types.UID
	fresh      bool
}

// explain writes the decision into the status; it tells whether the condition changed.
func (v verdict) explain(b bindings.Binding) (changed bool) {
	status := b.BindingStatus()
	changed = meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.ConditionScheduled, Status: conditionStatus(v.reason == workv1alpha2.ReasonSuccess),
		Reason: v.reason, Message: v.message, LastTransitionTime: v.at,
	})
	if changed || v.fresh || status.LastScheduledTime == nil {
		status.LastScheduledTime = &v.at
	}
	status.SchedulerObservedAffinityName = v.term
	if !karmada.SameReport(status.Decision, v.outcome.report) {
		status.Decision = v.outcome.report
	}
	status.SchedulerObservedGeneration = v.generation
	return changed
}

// waits tells that it is to be tried again, where nothing may announce that it helps.
func (o outcome) waits() bool {
	return o.retry || o.reason == workv1alpha2.ReasonUnschedulable || o.reason == workv1alpha2.ReasonQuotaExceeded
}

// verdicts are waiting to be written with the next reports on their binding.
type verdicts struct {
	mu      sync.Mutex
	waiting map[types.NamespacedName]verdict
}

func newVerdicts() *verdicts { return &verdicts{waiting: map[types.NamespacedName]verdict{}} }

// leave gives false if the same one has been waiting since before.
func (v *verdicts) leave(key types.NamespacedName, left verdict) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, found := v.waiting[key]
	v.waiting[key] = left
	return !found || old.generation != left.generation || old.uid != left.uid
}

// of gives the verdict about this very generation of a binding.
func (v *verdicts) of(b bindings.Binding) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.waiting[types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}]
	return found, ok && found.generation == b.GetGeneration() && found.uid == b.GetUID()
}

func (v *verdicts) drop(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.waiting, key)
}
