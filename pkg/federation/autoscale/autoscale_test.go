package autoscale

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// pods that have been ready for an hour, each requests a CPU in container app and none in container side, and uses so
// many thousandths of a CPU; -1 is not known.
func pods(uses ...float64) ([]Pod, Reading) {
	reading := Reading{Pods: map[string]Sample{}}
	var result []Pod
	for i, use := range uses {
		p := Pod{
			Name: fmt.Sprintf("a/%d", i), Phase: corev1.PodRunning, Started: start.Add(-time.Hour),
			Ready: corev1.ConditionTrue, Since: start.Add(-time.Hour),
			Requests: map[string]corev1.ResourceList{"app": {corev1.ResourceCPU: resource.MustParse("1")}},
		}
		if use >= 0 {
			reading.Pods[p.Name] = Sample{Value: use, At: start, Window: 15 * time.Second}
		}
		result = append(result, p)
	}
	return result, reading
}

// cpu has 50 % as its target.
var cpu = autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
	Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
			Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50)),
		},
	}}

func average(text string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{
		Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(text)),
	}
}

func value(text string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse(text))}
}

func external(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "queue"}, Target: target,
		}}
}

// atOnce has no windows and no policies that hold anything up.
func atOnce() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	rules := func() *autoscalingv2.HPAScalingRules {
		return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0)),
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PodsScalingPolicy, Value: 1 << 20, PeriodSeconds: 1},
			}}
	}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(), ScaleDown: rules()}
}

// input has 4 replicas, between 1 and 100.
func input(spec autoscalingv2.MetricSpec, uses ...float64) Input {
	list, reading := pods(uses...)
	return Input{
		Now: start, Min: 1, Max: 100, Current: 4, Pods: list, Metrics: []Metric{{Spec: spec, Reading: reading}},
		Behavior: atOnce(),
	}
}

func changed(in Input, change func(*Input)) Input {
	change(&in)
	return in
}

// TestFailuresNameTheirMetric: who gave several wants to know which one is meant.
func TestFailuresNameTheirMetric(t *testing.T) {
	incomplete := autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType}
	tests := map[string]struct {
		metric Metric
		want   string
	}{
		"nobody tells": {
			Metric{Path: "spec.metrics[1]", Spec: cpu, Reading: Reading{Err: errors.New("no cluster tells it")}},
			"spec.metrics[1] (resource cpu): no cluster tells it",
		},
		"no values": {
			Metric{Path: "spec.metrics[1]", Spec: cpu}, "spec.metrics[1] (resource cpu): no pod tells what it uses",
		},
		"not complete": {
			Metric{Path: "spec.metrics[1]", Spec: incomplete},
			`spec.metrics[1] (a metric of type "Pods") is not complete`,
		},
		"the one implied": {
			Metric{Spec: cpu, Reading: Reading{Err: errors.New("no cluster tells it")}},
			"resource cpu: no cluster tells it",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(cpu, 100, 100, 100, 100) // Fewer replicas would follow from the first metric.
			in.Metrics = append(in.Metrics, tc.metric)
			if got := Decide(in).Conditions; len(got) != 1 || got[0].Status != corev1.ConditionFalse ||
				!strings.HasPrefix(got[0].Message, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// TestFailuresAreToldOnce: what fails while another metric decides stands in the condition, and is new only until it is
// known.
func TestFailuresAreToldOnce(t *testing.T) {
	deaf := Reading{Err: errors.New("no cluster tells it")}
	queue := Metric{Path: "spec.metrics[1]", Spec: external(average("10")), Reading: deaf}
	memory := cpu.DeepCopy()
	memory.Resource.Name = corev1.ResourceMemory
	second := Metric{Path: "spec.metrics[2]", Spec: *memory, Reading: deaf}
	told := queue
	told.Reading = Reading{Total: 40e3}
	history := History{}
	for i, step := range []struct {
		metrics []Metric
		current int32
		use     float64
		// message of ScalingActive, and of what begins to fail.
		message, begins string
	}{
		{[]Metric{told}, 4, 500, "The number of replicas follows resource cpu", ""},
		{
			[]Metric{
				queue,
			}, 4, 500, "The number of replicas follows resource cpu. Failed: spec.metrics[1] (external metric " +
				"queue): no cluster tells it", "spec.metrics[1] (external metric queue): no cluster tells it",
		},
		{
			[]Metric{
				queue,
			}, 4, 500, "The number of replicas follows resource cpu. Failed: spec.metrics[1] (external metric " +
				"queue): no cluster tells it", "",
		},
		{
			[]Metric{queue, second}, 4, 100,
			"spec.metrics[1] (external metric queue): no cluster tells it; spec.metrics[2] (resource memory): no " +
				"cluster tells it", "spec.metrics[2] (resource memory): no cluster tells it",
		},
		{[]Metric{queue, second}, 200, 500, "", ""},
		{
			[]Metric{queue, second}, 4, 100,
			"spec.metrics[1] (external metric queue): no cluster tells it; spec.metrics[2] (resource memory): no " +
				"cluster tells it", "",
		},
		{[]Metric{told}, 4, 500, "The number of replicas follows resource cpu", ""},
		{
			[]Metric{
				queue,
			}, 4, 500, "The number of replicas follows resource cpu. Failed: spec.metrics[1] (external metric " +
				"queue): no cluster tells it", "spec.metrics[1] (external metric queue): no cluster tells it",
		},
	} {
		in := input(cpu, step.use, step.use, step.use, step.use)
		in.Metrics, in.Current, in.History = append(in.Metrics, step.metrics...), step.current, history
		got := Decide(in)
		message := ""
		for _, c := range got.Conditions {
			if c.Type == autoscalingv2.ScalingActive {
				message = c.Message
			}
		}
		if begins := messages(got.NewlyFailed); message != step.message || begins != step.begins {
			t.Errorf("step %d: %q, and %q begins to fail; want %q and %q", i, message, begins, step.message,
				step.begins)
		}
		history = got.History
	}
}

func TestReplicas(t *testing.T) {
	container := autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: corev1.ResourceCPU, Container: "app", Target: cpu.Resource.Target,
		}}
	perPod := autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "requests"}, Target: average("10"),
	}}
	object := autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
		Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "web"},
			Metric:          autoscalingv2.MetricIdentifier{Name: "requests"}, Target: value("100"),
		}}
	memory := autoscalingv2.MetricSpec{
		Type:     autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: average("1")},
	}
	total := func(spec autoscalingv2.MetricSpec, sum float64, partial bool) Input {
		return changed(input(spec, 0, 0, 0, 0),
			func(in *Input) { in.Metrics[0].Reading = Reading{Total: sum, Partial: partial} })
	}
	second := func(spec autoscalingv2.MetricSpec, reading Reading) func(*Input) {
		return func(in *Input) { in.Metrics = append(in.Metrics, Metric{Spec: spec, Reading: reading}) }
	}
	pod := func(index int, change func(*Pod)) func(*Input) {
		return func(in *Input) { change(&in.Pods[index]) }
	}
	tests := map[string]struct {
		in   Input
		want int32
		// reason of ScalingActive.
		reason string
	}{
		"as much as wanted":          {input(cpu, 500, 500, 500, 500), 4, "ValidMetricFound"},
		"the double":                 {input(cpu, 1000, 1000, 1000, 1000), 8, "ValidMetricFound"},
		"half":                       {input(cpu, 250, 250, 250, 250), 2, "ValidMetricFound"},
		"nothing":                    {input(cpu, 0, 0, 0, 0), 1, "ValidMetricFound"},
		"a little more is tolerated": {input(cpu, 550, 550, 550, 550), 4, "ValidMetricFound"},
		"not by a tolerance of one's own": {
			changed(input(cpu, 530, 530, 530, 530),
				func(in *Input) { in.Behavior.ScaleUp.Tolerance = new(resource.MustParse("0.05")) }), 5,
			"ValidMetricFound",
		},
		"a fraction is rounded up": {input(cpu, 600, 600, 600, 600), 5, "ValidMetricFound"},
		"of one container":         {input(container, 1000, 1000, 1000, 1000), 8, "ValidMetricFound"},
		"of a container that isn't there": {
			changed(input(container, 1, 1, 1, 1),
				pod(1, func(p *Pod) { p.Requests = map[string]corev1.ResourceList{"side": {}} })), 4,
			"FailedGetContainerResourceMetric",
		},
		"a container without requests": {
			changed(input(cpu, 1, 1, 1, 1), pod(1, func(p *Pod) { p.Requests["side"] = corev1.ResourceList{} })), 4,
			"FailedGetResourceMetric",
		},
		"requests of a pod": {
			changed(input(cpu, 1000), pod(0,
				func(p *Pod) { p.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")} })), 8,
			"ValidMetricFound",
		},
		"no pods":                     {input(cpu), 4, "FailedGetResourceMetric"},
		"no values":                   {input(cpu, -1, -1), 4, "FailedGetResourceMetric"},
		"up, missing ones are idle":   {input(cpu, 1000, 1000, 1000, -1), 6, "ValidMetricFound"},
		"up, too many are missing":    {input(cpu, 1000, -1, -1, -1), 4, "ValidMetricFound"},
		"down, missing ones are busy": {input(cpu, 100, 100, 100, -1), 3, "ValidMetricFound"},
		"down, too many are missing":  {input(cpu, 100, -1, -1, -1), 4, "ValidMetricFound"},
		"down, a cluster that is silent is busy": {
			changed(input(cpu, 100, 100, 100), func(in *Input) { in.Unseen = 1 }), 3, "ValidMetricFound",
		},
		"up, a cluster that is silent is idle": {
			changed(input(cpu, 1000, 1000, 1000), func(in *Input) { in.Unseen = 1 }), 6, "ValidMetricFound",
		},
		"all clusters are silent": {
			changed(input(cpu), func(in *Input) { in.Unseen = 4 }), 4, "FailedGetResourceMetric",
		},
		"up, one that starts is idle": {
			changed(input(cpu, 1000, 1000, 1000, 1000),
				pod(3, func(p *Pod) { p.Started, p.Ready = start.Add(-time.Minute), corev1.ConditionFalse })), 6,
			"ValidMetricFound",
		},
		"its value is from before it was ready": {
			changed(input(cpu, 1000, 1000, 1000, 1000),
				pod(3, func(p *Pod) { p.Started, p.Since = start.Add(-time.Minute), start })), 6, "ValidMetricFound",
		},
		"one that was never ready": {
			changed(input(cpu, 1000, 1000, 1000, 1000),
				pod(3, func(p *Pod) { p.Ready, p.Since = corev1.ConditionFalse, p.Started })), 6, "ValidMetricFound",
		},
		"one that is not ready any more": {
			changed(input(cpu, 1000, 1000, 1000, 1000),
				pod(3, func(p *Pod) { p.Ready = corev1.ConditionFalse; p.Since = start })), 8, "ValidMetricFound",
		},
		"one that waits for a node": {
			changed(input(cpu, 1000, 1000, 1000, -1), pod(3, func(p *Pod) { p.Phase = corev1.PodPending })), 6,
			"ValidMetricFound",
		},
		"one that goes": {
			changed(input(cpu, 1000, 1000, 1000, 1000, 0), pod(4, func(p *Pod) { p.Deleting = true })), 8,
			"ValidMetricFound",
		},
		"one that has failed": {
			changed(input(cpu, 1000, 1000, 1000, 1000, 0), pod(4, func(p *Pod) { p.Phase = corev1.PodFailed })), 8,
			"ValidMetricFound",
		},
		"up, while pods are still to come": {input(cpu, 1000), 4, "ValidMetricFound"},
		"down, while pods are still to go": {
			input(cpu, 400, 400, 400, 400, 400, 400, 400, 400), 4, "ValidMetricFound",
		},
		"each member has all replicas": {
			changed(input(cpu, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000), func(in *Input) { in.Copies = 2 }), 8,
			"ValidMetricFound",
		},
		"each has all, half": {
			changed(input(cpu, 250, 250, 250, 250, 250, 250, 250, 250), func(in *Input) { in.Copies = 2 }), 2,
			"ValidMetricFound",
		},
		"a value of the pods":      {input(perPod, 20e3, 20e3, 20e3, 20e3), 8, "ValidMetricFound"},
		"a value that a pod lacks": {input(perPod, 1e3, 1e3, 1e3, -1), 2, "ValidMetricFound"},
		"memory of one that starts": {
			changed(input(memory, 2e3, 2e3, 2e3, 2e3),
				pod(3, func(p *Pod) { p.Started, p.Ready = start.Add(-time.Minute), corev1.ConditionFalse })), 8,
			"ValidMetricFound",
		},
		"an object, per ready pod":                  {total(object, 200e3, false), 8, "ValidMetricFound"},
		"an object, tolerated":                      {total(object, 95e3, false), 4, "ValidMetricFound"},
		"an object, down":                           {total(object, 50e3, false), 2, "ValidMetricFound"},
		"an object, a part of it says nothing down": {total(object, 50e3, true), 4, "ValidMetricFound"},
		"an object, a part of it says up":           {total(object, 200e3, true), 8, "ValidMetricFound"},
		"an object without ready pods": {
			changed(total(object, 200e3, false), func(in *Input) { in.Pods = nil }), 4, "FailedGetObjectMetric",
		},
		"external, for the object": {
			total(external(value("100")), 200e3, false), 8, "ValidMetricFound",
		},
		"external, per pod": {
			total(external(average("10")), 90e3, false), 9, "ValidMetricFound",
		},
		"external, tolerated": {
			total(external(average("10")), 43e3, false), 4, "ValidMetricFound",
		},
		"external, all is idle": {total(external(average("10")), 0, false), 1, "ValidMetricFound"},
		"no target": {
			total(external(autoscalingv2.MetricTarget{}), 0, false), 4, "FailedGetExternalMetric",
		},
		"a type without its fields": {
			input(autoscalingv2.MetricSpec{Type: "Pods"}, 1), 4, "InvalidMetricSourceType",
		},
		"no metrics": {
			changed(input(cpu, 1), func(in *Input) { in.Metrics = nil }), 4, "InvalidMetricSourceType",
		},
		"of several the most demanding": {
			changed(input(cpu, 250, 250, 250, 250), second(external(average("10")), Reading{Total: 60e3})), 6,
			"ValidMetricFound",
		},
		"up, although one failed": {
			changed(input(cpu, 1000, 1000, 1000, 1000),
				second(external(average("10")), Reading{Err: errors.New("no")})), 8, "ValidMetricFound",
		},
		"not down if one failed": {
			changed(input(cpu, 250, 250, 250, 250), second(external(average("10")), Reading{Err: errors.New("no")})), 4,
			"FailedGetExternalMetric",
		},
		"zero is left alone": {
			changed(input(cpu, 1000), func(in *Input) { in.Current = 0 }), 0, "ScalingDisabled",
		},
		"above the limit": {changed(input(cpu), func(in *Input) { in.Max = 3 }), 3, ""},
		"below the limit": {changed(input(cpu), func(in *Input) { in.Min = 5 }), 5, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.in)
			if reason := reasonFor(got, autoscalingv2.ScalingActive); got.Replicas != tc.want || reason != tc.reason {
				t.Errorf("%d replicas because of %s, want %d because of %s: %+v", got.Replicas, reason, tc.want,
					tc.reason, got.Conditions)
			}
		})
	}
}

func reasonFor(d Decision, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range d.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}

func TestStatusOfMetrics(t *testing.T) {
	got := Decide(input(cpu, 250, 260, 270, -1)).Metrics
	if len(got) != 1 || got[0].Resource == nil || *got[0].Resource.Current.AverageUtilization != 26 ||
		got[0].Resource.Current.AverageValue.String() != "260m" {
		t.Errorf("status %+v", got)
	}
	in := input(external(average("10")), 0, 0, 0, 0)
	in.Metrics[0].Total = 50e3
	if got := Decide(in).Metrics; got[0].External.Current.AverageValue.String() != "12500m" {
		t.Errorf("status %+v", got[0].External)
	}
}

// A fleet over time: every line is what the pods use, and what the number of replicas becomes.
func TestPace(t *testing.T) {
	type step struct {
		after time.Duration
		// use of each pod in thousandths of a CPU; the target is 500.
		use  float64
		want int32
		// reason that tells most.
		reason string
	}
	rules := func(window int32, choose autoscalingv2.ScalingPolicySelect,
		policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
		return &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: &window, SelectPolicy: &choose, Policies: policies,
		}
	}
	policy := func(kind autoscalingv2.HPAScalingPolicyType, count, period int32) autoscalingv2.HPAScalingPolicy {
		return autoscalingv2.HPAScalingPolicy{Type: kind, Value: count, PeriodSeconds: period}
	}
	two, half := policy(autoscalingv2.PodsScalingPolicy, 2, 60), policy(autoscalingv2.PercentScalingPolicy, 50, 60)
	tests := map[string]struct {
		current  int32
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		lost     time.Time
		steps    []step
	}{
		"up by the double, down after five minutes": {4, nil, time.Time{}, []step{
			{0, 5000, 8, "ScaleUpLimit"}, {10 * time.Second, 5000, 8, "ScaleUpLimit"},
			{10 * time.Second, 5000, 16, "ScaleUpLimit"},
			{20 * time.Second, 0, 16, "ScaleDownStabilized"}, {4 * time.Minute, 0, 16, "ScaleDownStabilized"},
			{time.Minute, 0, 1, "ReadyForNewScale"},
		}},
		"few go up by four": {1, nil, time.Time{}, []step{{0, 5000, 5, "ScaleUpLimit"}}},
		"who just started does not scale down": {10, nil, time.Time{}, []step{
			{0, 0, 10, "ScaleDownStabilized"}, {299 * time.Second, 0, 10, "ScaleDownStabilized"},
			{time.Second, 0, 1, "ReadyForNewScale"},
		}},
		"who just started does not add to what was added": {8, nil, start.Add(-5 * time.Second), []step{
			{0, 5000, 8, "ScaleUpLimit"}, {9 * time.Second, 5000, 8, "ScaleUpLimit"},
			{time.Second, 5000, 16, "ScaleUpLimit"},
		}},
		"a load that is gone again makes no replicas": {4,
			&autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: rules(60, autoscalingv2.MaxChangePolicySelect, two),
			}, time.Time{}, []step{
				{0, 5000, 4, "ScaleUpStabilized"}, {30 * time.Second, 500, 4, "ReadyForNewScale"},
				{40 * time.Second, 5000, 4, "ScaleUpStabilized"}, {51 * time.Second, 5000, 6, "ScaleUpLimit"},
			}},
		"down by the larger policy": {10,
			&autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: rules(0, autoscalingv2.MaxChangePolicySelect, two, half),
			}, time.Time{}, []step{
				{0, 0, 5, "ScaleDownLimit"}, {30 * time.Second, 0, 5, "ScaleDownLimit"},
				{30 * time.Second, 0, 2, "ScaleDownLimit"},
			}},
		"down by the smaller policy": {10,
			&autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: rules(0, autoscalingv2.MinChangePolicySelect, two, half),
			}, time.Time{}, []step{
				{0, 0, 8, "ScaleDownLimit"}, {time.Minute, 0, 6, "ScaleDownLimit"},
			}},
		"up by the smaller policy": {10,
			&autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: rules(0, autoscalingv2.MinChangePolicySelect, two, half),
			}, time.Time{}, []step{
				{0, 5000, 12, "ScaleUpLimit"},
			}},
		"never down": {
			10, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(0, autoscalingv2.DisabledPolicySelect)},
			time.Time{}, []step{
				{0, 0, 10, "ScaleDownLimit"}, {time.Hour, 0, 10, "ScaleDownLimit"},
			},
		},
		"no more than the most": {60, nil, time.Time{}, []step{{0, 5000, 100, "TooManyReplicas"}}},
		"no less than the least": {
			4, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(0, autoscalingv2.MaxChangePolicySelect)},
			time.Time{}, []step{
				{0, 0, 1, "TooFewReplicas"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now, current, history := start, tc.current, History{Lost: tc.lost}
			for i, s := range tc.steps {
				now = now.Add(s.after)
				uses := make([]float64, current)
				for j := range uses {
					uses[j] = s.use
				}
				in := input(cpu, uses...)
				in.Now, in.Current, in.Behavior, in.History = now, current, tc.behavior, history
				got := Decide(in)
				if got.Replicas != s.want || !strings.Contains(fmt.Sprint(got.Conditions), s.reason) {
					t.Fatalf("step %d: %d replicas, want %d because of %s: %+v", i, got.Replicas, s.want, s.reason,
						got.Conditions)
				}
				history = got.History
				if got.Replicas != current {
					history = history.Changed(now, current, got.Replicas)
				}
				current = got.Replicas
			}
		})
	}
}
