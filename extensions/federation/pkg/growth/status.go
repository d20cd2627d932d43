package growth

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/growth"
)

func (w *world) set(object *fleetv1alpha1.FleetGrowth, kind string, status metav1.ConditionStatus,
	reason, message string) {
	meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf("%.2000s", message),
		ObservedGeneration: object.Generation,
		LastTransitionTime: metav1.NewTime(w.now),
	})
}

func (w *world) allowed(object *fleetv1alpha1.FleetGrowth) {
	message := "The fleet may change worker pools of its project's shoots"
	switch {
	case w.create:
		message += ", and create and delete shoots"
	case object.Spec.Shoots != nil:
		message += fmt.Sprintf("; to create shoots, it needs the value %q in the annotation %s of Shoot %s",
			fleetv1alpha1.GrowPools+","+fleetv1alpha1.GrowShoots, fleetv1alpha1.AllowGrowthAnnotation, w.key)
	}
	w.set(object, fleetv1alpha1.GrowthAllowed, metav1.ConditionTrue, fleetv1alpha1.ReasonAllowed, message)
}

func (w *world) notAllowed(object *fleetv1alpha1.FleetGrowth) {
	message :=
		fmt.Sprintf("Shoot %s needs the annotation %s=%s, or with %s to create shoots too: the owners of the "+
			"project decide about that",
			w.key, fleetv1alpha1.AllowGrowthAnnotation, fleetv1alpha1.GrowPools,
			fleetv1alpha1.GrowPools+","+fleetv1alpha1.GrowShoots)
	w.set(object, fleetv1alpha1.GrowthAllowed, metav1.ConditionFalse, fleetv1alpha1.ReasonNotAllowed, message)
	w.set(object, fleetv1alpha1.GrowthSatisfied, metav1.ConditionUnknown, fleetv1alpha1.ReasonNotAllowed,
		"Nothing is done before the fleet may grow")
}

func (w *world) unknown(object *fleetv1alpha1.FleetGrowth) {
	w.set(object, fleetv1alpha1.GrowthSatisfied, metav1.ConditionUnknown, fleetv1alpha1.ReasonDemandUnknown,
		"The fleet's controllers have not told for a while what waits for room: nothing is added nor given back "+
			"until they do")
}

func (w *world) invalid(object *fleetv1alpha1.FleetGrowth, err error) {
	w.set(object, fleetv1alpha1.GrowthSatisfied, metav1.ConditionFalse, fleetv1alpha1.ReasonInvalid, err.Error())
}

// record what was done, the latest first. What fails again and again is there once.
func (w *world) record(object *fleetv1alpha1.FleetGrowth, action growth.Action, err error) {
	d := fleetv1alpha1.GrowthDecision{
		Time: metav1.NewTime(w.now), Action: string(action.Kind), Shoot: action.Shoot, Pool: action.Pool,
		Machines: int32(action.Machines), Reason: fmt.Sprintf("%.500s", action.Reason),
	}
	if err != nil {
		d.Error = fmt.Sprintf("%.500s", err.Error())
	}
	again := func(o fleetv1alpha1.GrowthDecision) bool {
		return o.Error != "" && o.Action == d.Action && o.Shoot == d.Shoot && o.Pool == d.Pool
	}
	list := slices.DeleteFunc(slices.Clone(object.Status.Decisions), again)
	list = append([]fleetv1alpha1.GrowthDecision{d}, list...)
	object.Status.Decisions = list[:min(len(list), fleetv1alpha1.MaxGrowthRecords)]
}

// summarize says what is had and what waits.
func (w *world) summarize(object *fleetv1alpha1.FleetGrowth, out growth.Output) {
	status := &object.Status
	status.Machines, status.Shoots = int32(out.Machines), int32(out.Shoots)
	if cost := resource.NewMilliQuantity(out.Cost, resource.DecimalSI); status.CostPerHour == nil ||
		status.CostPerHour.Cmp(*cost) != 0 {
		status.CostPerHour = cost
	}
	status.Refused = nil
	for _, refusal := range out.Refused[:min(len(out.Refused), fleetv1alpha1.MaxGrowthRecords)] {
		status.Refused = append(status.Refused, fmt.Sprintf("%.500s", refusal))
	}
	waiting := len(status.Demand.Items) + int(status.Demand.Omitted)
	switch {
	case len(out.Refused) > 0:
		w.set(object, fleetv1alpha1.GrowthSatisfied, metav1.ConditionFalse, fleetv1alpha1.ReasonRefused,
			strings.Join(status.Refused, "; "))
	case waiting > 0:
		w.set(object, fleetv1alpha1.GrowthSatisfied, metav1.ConditionFalse, fleetv1alpha1.ReasonGrowing,
			fmt.Sprintf("%d objects wait; machines for %d replicas are on their way, for the others there is room "+
				"by now", waiting, out.Waiting))
	default:
		w.set(object, fleetv1alpha1.GrowthSatisfied, metav1.ConditionTrue, fleetv1alpha1.ReasonNothingWaits,
			"All objects have a place")
	}
}
