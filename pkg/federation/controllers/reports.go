package controllers

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
)

// reportReservations what members say of a binding. failures are of clusters for which no Work can be made.
func (w *works) reportReservations(b bindings.Binding, existing map[string]*workv1alpha1.Work,
	failures map[string]error) {
	if !karmada.IsWorkload(b.BindingSpec()) {
		return
	}
	seen := observationOf(b)
	seen.Reports = map[string]reservations.Report{}
	unit := karmada.Unit(b.BindingSpec()) != nil
	for cluster, replicas := range seen.Assigned {
		work, failure := existing[cluster], failures[cluster]
		switch {
		case work != nil && work.DeletionTimestamp == nil:
			seen.Reports[cluster] = reportOf(work, replicas, unit, failure != nil)
		case failure != nil:
			seen.Reports[cluster] = reservations.Report{Settled: replicas}
		}
	}
	w.reservations.Observe(client.ObjectKeyFromObject(b), seen)
}

// reportOf a member that a Work tells to run a number of replicas, or to run one unit; outdated Works cannot be made to
// tell it.
func reportOf(work *workv1alpha1.Work, replicas int32, unit, outdated bool) reservations.Report {
	object := readObject(work)
	answered := hasReported(work) && (work.Spec.SuspendDispatching == nil || !*work.Spec.SuspendDispatching)
	carriedOut := answered && reportsOn(work) && !outdated
	result := object.running(replicas, unit, carriedOut)
	result.Generation, _ = object.number("observedGeneration")
	if generation, told := object.number("generation"); told {
		result.Generation = generation
	}
	switch {
	case carriedOut && object.isSeen():
		result.Settled = replicas
	case outdated, answered && !carriedOut:
		// What is refused doesn't come until somebody does something about it.
		result.Settled = replicas
	}
	return result
}

// memberObject is what is known of an object in a member; the zero value of one that isn't there.
type memberObject struct {
	workv1alpha1.ManifestStatus
	// status is nil as long as nobody wrote one.
	status map[string]any
}

func readObject(work *workv1alpha1.Work) memberObject {
	if len(work.Status.ManifestStatuses) == 0 {
		return memberObject{}
	}
	object := memberObject{ManifestStatus: work.Status.ManifestStatuses[0]}
	if object.Status != nil {
		// A status that is no object says nothing.
		_ = json.Unmarshal(object.Status.Raw, &object.status)
	}
	return object
}

func (o memberObject) number(name string) (value int64, found bool) {
	number, found := o.status[name].(float64)
	return int64(number), found
}

// running tells how many of the replicas have pods, or have come to an end.
func (o memberObject) running(replicas int32, unit, carriedOut bool) reservations.Report {
	if numbers, told := o.numbers(replicas); told && !unit {
		return reservations.Report{Running: int32(max(0, min(numbers, int64(replicas))))}
	}
	switch {
	case o.Health == workv1alpha1.ResourceHealthy && carriedOut:
		// Of kinds whose status has no such number, a healthy object has all of its pods.
		return reservations.Report{Running: replicas}
	case o.status == nil && o.Health != workv1alpha1.ResourceUnknown:
		return reservations.Report{}
	}
	return reservations.Report{Numberless: true}
}

func (o memberObject) numbers(replicas int32) (running int64, told bool) {
	switch (schema.GroupKind{Group: o.Identifier.Group, Kind: o.Identifier.Kind}) {
	case schema.GroupKind{}:
		return 0, true // There is no object.
	case schema.GroupKind{Kind: "Pod"}:
		return int64(replicas), true
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Group: "apps.kruise.io", Kind: "BroadcastJob"}:
		if o.hasCondition("Complete") || o.hasCondition("Failed") {
			return int64(replicas), true
		}
		return o.runs(), true
	}
	if number, told := o.number("replicas"); told {
		return number, true
	}
	if runs := o.runs(); runs > 0 {
		return runs, true
	}
	// A Deployment that has no pods leaves replicas out, and tells how many are missing.
	_, missing := o.number("unavailableReplicas")
	return 0, missing
}

// runs counts those of a job. What ended takes no room any more, and what it took is not asked for again.
func (o memberObject) runs() (sum int64) {
	for _, name := range []string{"active", "succeeded", "failed"} {
		number, _ := o.number(name)
		sum += number
	}
	return sum
}

func (o memberObject) hasCondition(name string) bool {
	list, _ := o.status["conditions"].([]any)
	for _, item := range list {
		condition, _ := item.(map[string]any)
		if condition["type"] == name && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// isSeen tells whether the member's controllers have looked at the object as it is. If nobody knows how to read its
// status, they are not waited for.
func (o memberObject) isSeen() bool {
	if o.status == nil {
		return o.Health == workv1alpha1.ResourceUnknown
	}
	generation, told := o.number("generation")
	observed, tells := o.number("observedGeneration")
	return !told || !tells || generation == observed
}
