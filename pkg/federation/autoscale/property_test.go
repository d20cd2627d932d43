package autoscale

import (
	"math/rand/v2"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzDecide: whatever is measured, the number of replicas stays within the limits, and where all else is the same,
// pods that use more never mean fewer replicas. Who just started never scales down when there is a window.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		in := randomInput(random)
		got := Decide(in)
		if in.Current != 0 && (got.Replicas < in.Min || got.Replicas > in.Max) {
			t.Fatalf("%d replicas, limits are %d and %d: %+v", got.Replicas, in.Min, in.Max, in)
		}
		busier := in
		busier.Metrics = nil
		for _, m := range in.Metrics {
			busier.Metrics = append(busier.Metrics, Metric{Spec: m.Spec, Reading: more(random, m.Reading)})
		}
		if more := Decide(busier); more.Replicas < got.Replicas {
			t.Fatalf("%d replicas, and %d when more is used: %+v", got.Replicas, more.Replicas, in)
		}
		in.Behavior, in.History = nil, History{}
		if got := Decide(in); got.Replicas < min(in.Current, in.Max) {
			t.Fatalf("%d replicas at once, there were %d: %+v", got.Replicas, in.Current, in)
		}
	})
}

// more gives a reading in which nothing is less.
func more(random *rand.Rand, r Reading) Reading {
	busier := Reading{
		Pods: map[string]Sample{}, Total: r.Total + float64(random.IntN(1000e3)), Partial: r.Partial, Err: r.Err,
	}
	for name, sample := range r.Pods {
		sample.Value += float64(random.IntN(2000))
		busier.Pods[name] = sample
	}
	return busier
}

func randomInput(random *rand.Rand) Input {
	uses := make([]float64, random.IntN(8))
	for i := range uses {
		uses[i] = float64(random.IntN(2000) - 200)
	}
	list, reading := pods(uses...)
	for i := range list {
		list[i] = randomPod(random, list[i])
	}
	reading.Total, reading.Partial = float64(random.IntN(1000e3)), random.IntN(4) == 0
	in := Input{
		Now: start, Min: 1 + random.Int32N(5), Current: random.Int32N(12), Copies: random.Int32N(4), Pods: list,
		Unseen:   max(random.Int32N(8)-5, 0),
		Behavior: randomBehavior(random),
	}
	in.Max = in.Min + random.Int32N(20)
	kinds := []autoscalingv2.MetricSpec{cpu, external(average("10")), external(value("100"))}
	for range 1 + random.IntN(2) {
		in.Metrics = append(in.Metrics, Metric{Spec: kinds[random.IntN(len(kinds))], Reading: reading})
	}
	for range random.IntN(4) {
		before := start.Add(-time.Duration(random.IntN(400)) * time.Second)
		in.History = in.History.at(before, random.Int32N(12)).Changed(before, random.Int32N(12), random.Int32N(12))
	}
	return in
}

func randomPod(random *rand.Rand, p Pod) Pod {
	switch random.IntN(8) {
	case 0:
		p.Phase = corev1.PodPending
	case 1:
		p.Deleting = true
	case 2:
		p.Started, p.Ready = start.Add(-time.Minute), corev1.ConditionFalse
	case 3:
		p.Requests = map[string]corev1.ResourceList{
			"app": {corev1.ResourceCPU: *resource.NewMilliQuantity(random.Int64N(2000), resource.DecimalSI)},
		}
	}
	return p
}

func randomBehavior(random *rand.Rand) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	rules := func() *autoscalingv2.HPAScalingRules {
		choose := []autoscalingv2.ScalingPolicySelect{
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect,
			autoscalingv2.DisabledPolicySelect,
		}
		result := &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: new(random.Int32N(600)), SelectPolicy: new(choose[random.IntN(3)]),
		}
		for range random.IntN(3) {
			kind := []autoscalingv2.HPAScalingPolicyType{
				autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy,
			}[random.IntN(2)]
			result.Policies = append(result.Policies,
				autoscalingv2.HPAScalingPolicy{
					Type: kind, Value: 1 + random.Int32N(200), PeriodSeconds: 1 + random.Int32N(300),
				})
		}
		return result
	}
	if random.IntN(3) == 0 {
		return nil
	}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(), ScaleDown: rules()}
}
