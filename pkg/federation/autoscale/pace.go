package autoscale

import (
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// Longest times that the API allows rules to look back.
const (
	longestWindow = time.Hour
	longestPeriod = 30 * time.Minute
)

// defaultWindow is how long fewer replicas must have been enough before there are fewer.
const defaultWindow = 5 * time.Minute

// History is what earlier computations asked for, and what was changed. The zero value is that of a process that just
// started: what is remembered then is that the current number of replicas was asked for, so that nobody scales down
// because it forgot.
type History struct {
	begun           bool
	recommendations []moment
	changes         []moment
	// Lost is the last change that is known of without its size; changes before it may be lost as well. It is used up:
	// nothing more may change in the period of a rule that looks back so far.
	Lost time.Time
	// failed are the metrics that said nothing when they were last looked at.
	failed []string
}

// moment is a number at a time.
type moment struct {
	at    time.Time
	count int32
}

// at forgets what no rule looks back to.
func (h History) at(now time.Time, current int32) History {
	if !h.begun {
		h.begun, h.recommendations = true, []moment{{now, current}}
	}
	h.recommendations = slices.DeleteFunc(slices.Clone(h.recommendations),
		func(m moment) bool { return m.at.Before(now.Add(-longestWindow)) })
	h.changes = slices.DeleteFunc(slices.Clone(h.changes),
		func(m moment) bool { return m.at.Before(now.Add(-longestPeriod)) })
	return h
}

// Changed notes that the number of replicas was changed.
func (h History) Changed(now time.Time, from, to int32) History {
	h.changes = append(slices.Clone(h.changes), moment{now, to - from})
	return h
}

// newlyFailed tells which of the metrics that fail did not do so before, and remembers all of them.
func (h History) newlyFailed(failed []Failure) ([]Failure, History) {
	var begun []Failure
	known := h.failed
	h.failed = nil
	for _, f := range failed {
		if !slices.Contains(known, f.metric) {
			begun = append(begun, f)
		}
		h.failed = append(h.failed, f.metric)
	}
	return begun, h
}

// changed is by how much the number became larger, less by how much it became smaller, since then.
func (h History) changed(since time.Time) int32 {
	var sum int32
	for _, c := range h.changes {
		if c.at.After(since) {
			sum += c.count
		}
	}
	return sum
}

// paced lets the number of replicas follow what is wanted as fast as the rules allow, within the limits.
func (d *Decision) paced(in Input, wanted int32) {
	up, down := rulesOf(in.Behavior)
	steady := d.steadied(in, wanted, up, down)
	d.History.recommendations = append(d.History.recommendations, moment{in.Now, wanted})
	switch {
	case steady < wanted:
		d.say(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleUpStabilized",
			"Fewer replicas were enough a short while ago; the least of these numbers counts")
	case steady > wanted:
		d.say(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleDownStabilized",
			"More replicas were needed a short while ago; the largest of these numbers counts")
	default:
		d.say(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ReadyForNewScale",
			"Nothing holds up a change of the number of replicas")
	}
	d.Replicas = d.limited(in, steady, up, down)
}

// rulesOf fills in what is not given.
func rulesOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) (up, down autoscalingv2.HPAScalingRules) {
	if behavior != nil && behavior.ScaleUp != nil {
		up = *behavior.ScaleUp
	}
	if behavior != nil && behavior.ScaleDown != nil {
		down = *behavior.ScaleDown
	}
	double := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	four := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
	if len(up.Policies) == 0 {
		up.Policies = []autoscalingv2.HPAScalingPolicy{four, double}
	}
	if len(down.Policies) == 0 {
		down.Policies = []autoscalingv2.HPAScalingPolicy{double}
	}
	if down.StabilizationWindowSeconds == nil {
		down.StabilizationWindowSeconds = new(int32(defaultWindow / time.Second))
	}
	return up, down
}

// steadied goes up only as far as was wanted all the time of a window, and down as well.
func (d *Decision) steadied(in Input, wanted int32, up, down autoscalingv2.HPAScalingRules) int32 {
	least, most := wanted, wanted
	for _, r := range d.History.recommendations {
		if r.at.After(in.Now.Add(-seconds(up.StabilizationWindowSeconds))) {
			least = min(least, r.count)
		}
		if r.at.After(in.Now.Add(-seconds(down.StabilizationWindowSeconds))) {
			most = max(most, r.count)
		}
	}
	return min(max(in.Current, least), most)
}

func seconds(n *int32) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}

// limited by the rules' policies, and by the least and the largest number.
func (d *Decision) limited(in Input, wanted int32, up, down autoscalingv2.HPAScalingRules) int32 {
	lowest, highest := in.Min, in.Max
	tooFew, tooMany := "TooFewReplicas", "TooManyReplicas"
	if limit := d.History.reach(in, up, +1); limit < highest {
		highest, tooMany = limit, "ScaleUpLimit"
	}
	if limit := d.History.reach(in, down, -1); limit > lowest {
		lowest, tooFew = limit, "ScaleDownLimit"
	}
	switch {
	case wanted > highest:
		d.say(autoscalingv2.ScalingLimited, corev1.ConditionTrue, tooMany, "%s", limits[tooMany])
		return highest
	case wanted < lowest:
		d.say(autoscalingv2.ScalingLimited, corev1.ConditionTrue, tooFew, "%s", limits[tooFew])
		return lowest
	}
	d.say(autoscalingv2.ScalingLimited, corev1.ConditionFalse, "DesiredWithinRange",
		"As many replicas as wanted are allowed")
	return wanted
}

// limits tell by reason what keeps the number of replicas from being what is wanted.
var limits = map[string]string{
	"TooManyReplicas": "More replicas are wanted than spec.maxReplicas",
	"TooFewReplicas":  "Fewer replicas are wanted than spec.minReplicas",
	"ScaleUpLimit":    "More replicas are wanted than spec.behavior.scaleUp allows at once",
	"ScaleDownLimit":  "Fewer replicas are wanted than spec.behavior.scaleDown allows at once",
}

// reach is how far the rules allow to go in a direction now. It is never on the other side of the current number.
func (h History) reach(in Input, rules autoscalingv2.HPAScalingRules, direction int32) int32 {
	choose := autoscalingv2.MaxChangePolicySelect
	if rules.SelectPolicy != nil {
		choose = *rules.SelectPolicy
	}
	if choose == autoscalingv2.DisabledPolicySelect {
		return in.Current
	}
	var furthest int32
	for i, policy := range rules.Policies {
		steps := h.steps(in, policy, direction)
		if i == 0 || (choose == autoscalingv2.MinChangePolicySelect) == (steps < furthest) {
			furthest = steps
		}
	}
	if direction < 0 {
		return in.Current - min(furthest, in.Current)
	}
	return in.Current + min(furthest, math.MaxInt32-in.Current)
}

// steps that one policy still allows in its period: those it allows from the number at the beginning of the period.
func (h History) steps(in Input, policy autoscalingv2.HPAScalingPolicy, direction int32) int32 {
	since := in.Now.Add(-time.Duration(policy.PeriodSeconds) * time.Second)
	if h.Lost.After(since) {
		return 0
	}
	start := int64(in.Current) - int64(h.changed(since))
	limit := start + int64(direction)*int64(policy.Value)
	if policy.Type == autoscalingv2.PercentScalingPolicy {
		limit = percent(start, policy.Value, direction)
	}
	return int32(min(max((limit-int64(in.Current))*int64(direction), 0), math.MaxInt32))
}

// percent rounds in favour of more change when there are more replicas, and when there are fewer, as Kubernetes does.
func percent(start int64, value, direction int32) int64 {
	if direction > 0 {
		return start + (start*int64(value)+99)/100
	}
	return max(start*(100-int64(value))/100, 0)
}
