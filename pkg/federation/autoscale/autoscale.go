// Package autoscale computes how many replicas an object of a fleet needs, from what its pods use in all members: the
// algorithm of autoscaling/v2 over values, without clients and clocks. What it remembers between two computations is a
// value as well.
package autoscale

import (
	"fmt"
	"math"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// Pod is what is known of one in a member.
type Pod struct {
	// Name is unique in the fleet.
	Name     string
	Phase    corev1.PodPhase
	Deleting bool
	// Started is zero before a kubelet has taken the pod.
	Started time.Time
	// Ready is the condition of that name, and Since when; empty if the pod has none.
	Ready corev1.ConditionStatus
	Since time.Time
	// Requests are those of containers that run as long as the pod, by name.
	Requests map[string]corev1.ResourceList
	// Overall requests are those of the pod itself. They count in place of those of its containers.
	Overall corev1.ResourceList
}

// Sample is what one pod uses.
type Sample struct {
	// Value in thousandths.
	Value float64
	// At is when the Window ended that was measured.
	At     time.Time
	Window time.Duration
}

// Reading is what the members answered for one metric.
type Reading struct {
	// Pods has a sample per pod, by name, for metrics of pods.
	Pods map[string]Sample
	// Total is the sum over the fleet, in thousandths, for metrics of objects and external ones. It is too small if
	// Partial.
	Total   float64
	Partial bool
	// Err is there if no member answered.
	Err error
}

// Metric is one that decides, with what was read.
type Metric struct {
	// Path of the field that asks for it, such as "spec.metrics[1]"; empty if none does.
	Path string
	Spec autoscalingv2.MetricSpec
	Reading
}

// Input is all that a computation goes by.
type Input struct {
	Now time.Time
	// Min is at least 1, and not more than Max.
	Min, Max int32
	// Current number of replicas in the spec of the object.
	Current int32
	// Copies is how many pods of the fleet belong to one replica: 1 where members divide them, and else the number of
	// members.
	Copies int32
	// Pods that were seen, of all members.
	Pods []Pod
	// Unseen pods are those that members should have that did not answer. They count as pods whose use is not known.
	Unseen  int32
	Metrics []Metric
	// Behavior may be nil.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	History  History
}

// Decision is what came of a computation.
type Decision struct {
	// Replicas the object should have.
	Replicas int32
	// Conditions that are known now; others stay as they were.
	Conditions []Condition
	// Metrics as they were read; nil if they were not needed.
	Metrics []autoscalingv2.MetricStatus
	// NewlyFailed are the metrics that say nothing, and did when they were last looked at, or were not asked for then.
	NewlyFailed []Failure
	// History for the next computation.
	History History
}

// Condition is one of autoscaling/v2, with its reasons.
type Condition struct {
	Type            autoscalingv2.HorizontalPodAutoscalerConditionType
	Status          corev1.ConditionStatus
	Reason, Message string
}

func (d *Decision) say(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus,
	reason, format string, arguments ...any) {
	d.Conditions = append(d.Conditions, Condition{kind, status, reason, fmt.Sprintf(format, arguments...)})
}

// Decide computes how many replicas there should be. A number outside of the limits is corrected at once, whatever was
// measured.
func Decide(in Input) Decision {
	in.Copies = max(in.Copies, 1)
	d := Decision{Replicas: in.Current, History: in.History.at(in.Now, in.Current)}
	switch {
	case in.Current == 0:
		d.say(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled",
			"The object was scaled to zero; give it replicas to have it scaled again")
	case in.Current > in.Max:
		d.Replicas = in.Max
	case in.Current < in.Min:
		d.Replicas = in.Min
	default:
		d.byMetrics(in)
	}
	return d
}

// byMetrics takes what the most demanding metric asks for. A metric that says nothing could ask for more, so that
// without it there are never fewer replicas than now.
func (d *Decision) byMetrics(in Input) {
	var wanted int32
	var from string
	var failed []Failure
	valid := 0
	for _, m := range in.Metrics {
		result, status, err := in.replicasFor(m)
		if err != nil {
			failed = append(failed, *err)
			continue
		}
		valid++
		d.Metrics = append(d.Metrics, status)
		if from == "" || result > wanted {
			wanted, from = result, nameOf(m.Spec)
		}
	}
	d.NewlyFailed, d.History = d.History.newlyFailed(failed)
	if len(failed) > 0 && (valid == 0 || wanted < in.Current) {
		d.say(autoscalingv2.ScalingActive, corev1.ConditionFalse, failed[0].Reason, "%s", messages(failed))
		return
	}
	if valid == 0 {
		d.say(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidMetricSourceType",
			"There is no metric to scale by")
		return
	}
	if len(failed) > 0 {
		from += ". Failed: " + messages(failed)
	}
	d.say(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound", "The number of replicas follows %s",
		from)
	d.paced(in, wanted)
}

// Failure is why a metric says nothing.
type Failure struct {
	// Reason is one of autoscaling/v2.
	Reason string
	// Message begins with the metric.
	Message string
	metric  string
}

func messages(failed []Failure) string {
	var list []string
	for _, f := range failed {
		list = append(list, f.Message)
	}
	return strings.Join(list, "; ")
}

// whole turns a computed number of replicas into one that fits.
func whole(x float64) int32 {
	// 12.000000000000002 is meant to be 12.
	x = math.Ceil(x - 1e-9*math.Abs(x))
	switch {
	case x >= math.MaxInt32:
		return math.MaxInt32
	case x > 0:
		return int32(x)
	}
	return 0
}
