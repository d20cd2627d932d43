package autoscale

import (
	"errors"
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What a new pod uses while it starts says little about its load; the periods are those of Kubernetes.
const (
	// cpuInitialization is how long after its start a pod's use of CPU counts only while it is ready.
	cpuInitialization = 5 * time.Minute
	// initialReadiness is how long after its start a pod may become ready and unready again and counts as one that was
	// never ready.
	initialReadiness = 30 * time.Second
	// defaultTolerance is by how much of the target use may differ without consequences.
	defaultTolerance = 0.1
)

// nameOf tells people which metric is meant.
func nameOf(m autoscalingv2.MetricSpec) string {
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		return "resource " + string(m.Resource.Name)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		return fmt.Sprintf("resource %s of container %s", m.ContainerResource.Name, m.ContainerResource.Container)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		return "metric " + m.Pods.Metric.Name + " of the pods"
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		return fmt.Sprintf("metric %s of %s %s", m.Object.Metric.Name, m.Object.DescribedObject.Kind,
			m.Object.DescribedObject.Name)
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		return "external metric " + m.External.Metric.Name
	}
	return fmt.Sprintf("a metric of type %q", m.Type)
}

// failed tells that a metric says nothing, and where it is asked for.
func (m Metric) failed(reason, why string) *Failure {
	metric := nameOf(m.Spec)
	if m.Path != "" {
		metric = m.Path + " (" + metric + ")"
	}
	return &Failure{Reason: reason, Message: metric + why, metric: metric}
}

// replicasFor one metric. Its status tells what was read.
func (in *Input) replicasFor(m Metric) (int32, autoscalingv2.MetricStatus, *Failure) {
	status := autoscalingv2.MetricStatus{Type: m.Spec.Type}
	current, target, ok := described(m.Spec, &status)
	if !ok {
		return 0, status, m.failed("InvalidMetricSourceType", " is not complete, or its type is not known")
	}
	if m.Err != nil {
		return 0, status, m.failed(reasonOf(m.Spec), ": "+m.Err.Error())
	}
	var result int32
	var err error
	switch {
	case m.Spec.Type == autoscalingv2.ResourceMetricSourceType:
		result, err = in.perPod(m, measure{resource: m.Spec.Resource.Name, target: target}, current)
	case m.Spec.Type == autoscalingv2.ContainerResourceMetricSourceType:
		result, err = in.perPod(m, measure{
			resource: m.Spec.ContainerResource.Name, container: m.Spec.ContainerResource.Container, target: target,
		}, current)
	case m.Spec.Type == autoscalingv2.PodsMetricSourceType:
		result, err = in.perPod(m, measure{target: target}, current)
	default:
		result, err = in.ofTotal(m, target, current)
	}
	if err != nil {
		return 0, status, m.failed(reasonOf(m.Spec), ": "+err.Error())
	}
	return result, status, nil
}

// described prepares the status of a metric, and tells where in it the value belongs, and its target.
func described(m autoscalingv2.MetricSpec,
	status *autoscalingv2.MetricStatus) (*autoscalingv2.MetricValueStatus, autoscalingv2.MetricTarget, bool) {
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		status.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name}
		return &status.Resource.Current, m.Resource.Target, true
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: m.ContainerResource.Name, Container: m.ContainerResource.Container,
		}
		return &status.ContainerResource.Current, m.ContainerResource.Target, true
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		status.Pods = &autoscalingv2.PodsMetricStatus{Metric: m.Pods.Metric}
		return &status.Pods.Current, m.Pods.Target, true
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		status.Object = &autoscalingv2.ObjectMetricStatus{
			Metric: m.Object.Metric, DescribedObject: m.Object.DescribedObject,
		}
		return &status.Object.Current, m.Object.Target, true
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		status.External = &autoscalingv2.ExternalMetricStatus{Metric: m.External.Metric}
		return &status.External.Current, m.External.Target, true
	}
	return nil, autoscalingv2.MetricTarget{}, false
}

func reasonOf(m autoscalingv2.MetricSpec) string { return "FailedGet" + string(m.Type) + "Metric" }

// measure is what of pods is compared with a target.
type measure struct {
	// resource is empty for a metric that the pods have themselves.
	resource  corev1.ResourceName
	container string
	target    autoscalingv2.MetricTarget
}

// goal in percent of what pods request, or in thousandths per pod.
func (m measure) goal() (value float64, utilization bool, err error) {
	switch {
	case m.resource != "" && m.target.AverageUtilization != nil:
		value, utilization = float64(*m.target.AverageUtilization), true
	case m.target.AverageValue != nil:
		value = Milli(*m.target.AverageValue)
	}
	if value <= 0 {
		return 0, false, errors.New("its target is not there, or not above 0")
	}
	return value, utilization, nil
}

// requested by one pod, in thousandths.
func (m measure) requested(p *Pod) (float64, error) {
	if amount, found := p.Overall[m.resource]; found && m.container == "" {
		return Milli(amount), nil
	}
	sum, found := 0.0, false
	for name, requests := range p.Requests {
		if m.container != "" && name != m.container {
			continue
		}
		amount, there := requests[m.resource]
		if !there {
			return 0, fmt.Errorf("container %s of pod %s requests none of it, so there is no utilization", name, p.Name)
		}
		sum, found = sum+Milli(amount), true
	}
	if !found {
		return 0, fmt.Errorf("pod %s has no container %s", p.Name, m.container)
	}
	return sum, nil
}

// load of some pods.
type load struct {
	pods            int
	used, requested float64
}

func (l load) plus(pods int, used, requested float64) load {
	return load{l.pods + pods, l.used + used, l.requested + requested}
}

// utilization in percent, without decimals as people see it. It is what decides, too.
func (l load) utilization() float64 { return math.Floor(l.used * 100 / l.requested) }

func (l load) average() float64 { return l.used / float64(l.pods) }

// groups of pods by what their samples say.
type groups struct {
	// counted pods are ready, or at least use something that says something.
	counted load
	// missing pods have no sample; unready ones have one that says nothing.
	missing, unready load
}

// group leaves out pods that end, or have failed.
func (in *Input) group(m Metric, what measure, utilization bool) (groups, error) {
	var g groups
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Deleting || p.Phase == corev1.PodFailed || p.Phase == corev1.PodSucceeded {
			continue
		}
		requested := 0.0
		if utilization {
			var err error
			if requested, err = what.requested(p); err != nil {
				return groups{}, err
			}
		}
		sample, found := m.Pods[p.Name]
		switch {
		case p.Phase == corev1.PodPending:
			g.unready = g.unready.plus(1, 0, requested)
		case !found:
			g.missing = g.missing.plus(1, 0, requested)
		case what.resource == corev1.ResourceCPU && p.starting(sample, in.Now):
			g.unready = g.unready.plus(1, 0, requested)
		default:
			g.counted = g.counted.plus(1, sample.Value, requested)
		}
	}
	if g.counted.pods == 0 {
		return groups{}, in.nothingCounted(g)
	}
	// What is not seen is taken to be like what is.
	g.missing = g.missing.plus(int(in.Unseen), 0, float64(in.Unseen)*g.counted.requested/float64(g.counted.pods))
	return g, nil
}

func (in *Input) nothingCounted(g groups) error {
	if g.missing.pods+g.unready.pods == 0 && in.Unseen == 0 {
		return errors.New("the object has no pods")
	}
	return fmt.Errorf("no pod tells what it uses: %d have no value, %d are not ready, %d are in clusters that did "+
		"not answer", g.missing.pods, g.unready.pods, in.Unseen)
}

// starting tells whether the sample of a pod's CPU is about its start.
func (p *Pod) starting(sample Sample, now time.Time) bool {
	switch {
	case p.Ready == "" || p.Started.IsZero():
		return true
	case now.Before(p.Started.Add(cpuInitialization)):
		return p.Ready == corev1.ConditionFalse || sample.At.Before(p.Since.Add(sample.Window))
	}
	return p.Ready == corev1.ConditionFalse && p.Since.Before(p.Started.Add(initialReadiness))
}

// perPod compares what pods use on average with a target. Pods of which that is not known count so that they speak
// against a change: as fully used before there are fewer replicas, and as idle before there are more.
func (in *Input) perPod(m Metric, what measure, current *autoscalingv2.MetricValueStatus) (int32, error) {
	goal, utilization, err := what.goal()
	if err != nil {
		return 0, err
	}
	g, err := in.group(m, what, utilization)
	if err != nil {
		return 0, err
	}
	current.AverageValue = quantity(g.counted.average(), what.resource)
	ratio := func(l load) float64 { return l.average() / goal }
	full := goal * float64(g.missing.pods)
	if utilization {
		if g.counted.requested <= 0 {
			return 0, errors.New("the pods request none of it, so there is no utilization")
		}
		current.AverageUtilization = new(whole(g.counted.utilization()))
		ratio = func(l load) float64 { return l.utilization() / goal }
		full = g.missing.requested * max(100, goal) / 100
	}
	return in.inReplicas(in.cautiously(g, ratio, full)), nil
}

// cautiously computes a number of pods; full is what the missing ones use at most.
func (in *Input) cautiously(g groups, ratio func(load) float64, full float64) float64 {
	seen := ratio(g.counted)
	all := g.counted
	switch {
	case seen < 1:
		all = all.plus(g.missing.pods, full, g.missing.requested)
	case seen > 1:
		all = all.plus(g.missing.pods+g.unready.pods, 0, g.missing.requested+g.unready.requested)
	}
	corrected := ratio(all)
	if in.tolerates(corrected) || (seen < 1) != (corrected < 1) {
		return in.pods()
	}
	return in.inDirection(corrected, corrected*float64(all.pods))
}

// pods is how many the fleet should have now.
func (in *Input) pods() float64 { return float64(in.Current) * float64(in.Copies) }

// inDirection keeps what is computed from the pods there are from going the other way: pods that are still to come, or
// on their way out, change their number.
func (in *Input) inDirection(ratio, pods float64) float64 {
	if ratio < 1 {
		return min(pods, in.pods())
	}
	return max(pods, in.pods())
}

func (in *Input) inReplicas(pods float64) int32 { return whole(pods / float64(in.Copies)) }

// tolerates a ratio between use and target.
func (in *Input) tolerates(ratio float64) bool {
	down, up := defaultTolerance, defaultTolerance
	if in.Behavior != nil {
		down, up = toleranceOf(in.Behavior.ScaleDown), toleranceOf(in.Behavior.ScaleUp)
	}
	return ratio >= 1-down && ratio <= 1+up
}

func toleranceOf(rules *autoscalingv2.HPAScalingRules) float64 {
	if rules == nil || rules.Tolerance == nil {
		return defaultTolerance
	}
	return rules.Tolerance.AsApproximateFloat64()
}

// ofTotal compares a sum over the fleet with a target, for the object or per pod. A sum that lacks members takes no
// replicas away.
func (in *Input) ofTotal(m Metric, target autoscalingv2.MetricTarget,
	current *autoscalingv2.MetricValueStatus) (int32, error) {
	var result float64
	switch {
	case target.Value != nil && target.Value.Sign() > 0:
		current.Value = quantity(m.Total, "")
		ready := in.ready()
		if ready == 0 {
			return 0, errors.New("no pod of the object is ready")
		}
		ratio := m.Total / Milli(*target.Value)
		result = in.inDirection(ratio, ratio*ready)
		if in.tolerates(ratio) {
			result = in.pods()
		}
	case target.AverageValue != nil && target.AverageValue.Sign() > 0:
		current.AverageValue = quantity(m.Total/in.pods(), "")
		goal := Milli(*target.AverageValue)
		result = m.Total / goal
		if in.tolerates(m.Total / (goal * in.pods())) {
			result = in.pods()
		}
	default:
		return 0, errors.New("its target is not there, or not above 0")
	}
	if m.Partial {
		result = max(result, in.pods())
	}
	return in.inReplicas(result), nil
}

// ready pods, and those that are not seen.
func (in *Input) ready() float64 {
	count := int(in.Unseen)
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Phase == corev1.PodRunning && p.Ready == corev1.ConditionTrue && !p.Deleting {
			count++
		}
	}
	return float64(count)
}

// Milli gives an amount in thousandths, no larger than sums of them can bear.
func Milli(q resource.Quantity) float64 {
	return math.Max(math.Min(q.AsApproximateFloat64()*1000, 1e18), -1e18)
}

// quantity of thousandths; those of bytes are written without decimals.
func quantity(thousandths float64, name corev1.ResourceName) *resource.Quantity {
	thousandths = math.Max(math.Min(thousandths, 1<<62), -1<<62)
	if name == corev1.ResourceMemory {
		return resource.NewQuantity(int64(math.Round(thousandths/1000)), resource.BinarySI)
	}
	return resource.NewMilliQuantity(int64(math.Round(thousandths)), resource.DecimalSI)
}
