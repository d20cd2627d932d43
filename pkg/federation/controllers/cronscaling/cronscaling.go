// Package cronscaling carries out CronFederatedHPAs: at the times of a rule it sets the number of replicas of an
// object, or the limits of a FederatedHPA. When the next time of each rule is lies in the status, so a restart neither
// forgets nor repeats one.
package cronscaling

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/scaling"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// look bounds how long nothing is looked at, in case that the clock is changed.
const look = 10 * time.Minute

// scales sets numbers of replicas.
type scales interface {
	Set(ctx context.Context, namespace string, target autoscalingv2.CrossVersionObjectReference, replicas int32) error
}

// cronScaling handles CronFederatedHPAs.
type cronScaling struct {
	client client.Client
	events events.EventRecorder
	scales scales
	now    func() time.Time
}

// Add registers the controller with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, scales *scaling.Scales, settings setup.Settings) error {
	s := &cronScaling{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("cronfederatedhpa"), scales: scales, now: time.Now,
	}
	return setup.Add(mgr, "cronscaling", settings(s),
		setup.Specs(mgr.GetCache(), &autoscalingv1alpha1.CronFederatedHPA{}))
}

// Reconcile handles one CronFederatedHPA.
func (s *cronScaling) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &autoscalingv1alpha1.CronFederatedHPA{}
	if err := s.client.Get(ctx, request.NamespacedName, c); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if c.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	before := c.DeepCopy()
	now := s.now()
	next := s.executeAll(ctx, c, now)
	if !apiequality.Semantic.DeepEqual(before.Status, c.Status) {
		if err := s.client.Status().Patch(ctx, c,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing the status of CronFederatedHPA %s: %w", request, err)
		}
	}
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(now), time.Millisecond), look)}, nil
}

// job is a rule with what it has to do.
type job struct {
	rule *autoscalingv1alpha1.CronFederatedHPARule
	// path of the rule's field.
	path string
	plan plan
}

// executeAll carries out what is due, in the order of the times, so that the latest counts. It gives the next time of
// any rule.
func (s *cronScaling) executeAll(ctx context.Context, c *autoscalingv1alpha1.CronFederatedHPA,
	now time.Time) time.Time {
	histories := make(map[string]autoscalingv1alpha1.ExecutionHistory, len(c.Spec.Rules))
	var jobs []job
	var first time.Time
	for i := range c.Spec.Rules {
		rule := &c.Spec.Rules[i]
		h := history(c.Status.ExecutionHistories, rule.Name)
		announced := h.NextExecutionTime
		h.NextExecutionTime, h.Problem = nil, ""
		if rule.Suspend == nil || !*rule.Suspend {
			if j, ok := s.plan(c, i, &h, announced, now); ok {
				jobs = append(jobs, j)
				if n := j.plan.next; !n.IsZero() && (first.IsZero() || n.Before(first)) {
					first = n
				}
			}
		}
		histories[rule.Name] = h
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return a.plan.due.Compare(b.plan.due) })
	for _, j := range jobs {
		if h := histories[j.rule.Name]; !j.plan.due.IsZero() {
			s.execute(ctx, c, j, &h)
			histories[j.rule.Name] = h
		}
	}
	known := problems(c)
	c.Status.ExecutionHistories = nil
	for i := range c.Spec.Rules {
		c.Status.ExecutionHistories = append(c.Status.ExecutionHistories, histories[c.Spec.Rules[i].Name])
	}
	if now := problems(c); now != "" && now != known {
		s.events.Eventf(c, nil, corev1.EventTypeWarning, "InvalidRule", "Scale", "%.1000s", now)
	}
	return first
}

// problems of all rules; one event tells them, since events of the same reason are counted as one.
func problems(c *autoscalingv1alpha1.CronFederatedHPA) string {
	var list []string
	for _, h := range c.Status.ExecutionHistories {
		if h.Problem != "" {
			list = append(list, h.Problem)
		}
	}
	return strings.Join(list, "; ")
}

// plan is false for a rule that cannot be understood.
func (s *cronScaling) plan(c *autoscalingv1alpha1.CronFederatedHPA, index int, h *autoscalingv1alpha1.ExecutionHistory,
	announced *metav1.Time, now time.Time) (job, bool) {
	rule, path := &c.Spec.Rules[index], fmt.Sprintf("spec.rules[%d]", index)
	times, err := scheduleOf(rule)
	if err != nil {
		h.Problem = fmt.Sprintf("%s.%v", path, err)
		return job{}, false
	}
	j := job{rule, path, planOf(times, announced, now)}
	if j.plan.next.IsZero() {
		h.Problem = fmt.Sprintf("%s.schedule: %q comes in no year", path, rule.Schedule)
	} else {
		h.NextExecutionTime = new(metav1.NewTime(j.plan.next))
	}
	return j, true
}

// execute records what came of it.
func (s *cronScaling) execute(ctx context.Context, c *autoscalingv1alpha1.CronFederatedHPA, j job,
	h *autoscalingv1alpha1.ExecutionHistory) {
	due, at := new(metav1.NewTime(j.plan.due)), new(metav1.NewTime(s.now()))
	success := autoscalingv1alpha1.SuccessfulExecution{ScheduleTime: due, ExecutionTime: at}
	var err error
	if j.plan.missed {
		err = fmt.Errorf("%s: missed: nothing ran in the fleet at that time, nor within %s after", j.path, catchUp)
	} else {
		err = s.scale(ctx, c, j, &success)
	}
	h.LastFailure = ""
	if err != nil {
		h.LastFailure = err.Error()
		h.FailedExecutions = withFailure(h.FailedExecutions,
			autoscalingv1alpha1.FailedExecution{ScheduleTime: due, ExecutionTime: at, Message: err.Error()},
			j.rule.FailedHistoryLimit)
		s.events.Eventf(c, nil, corev1.EventTypeWarning, "ScaleFailed", "Scale", "rule %s: %.900s", j.rule.Name,
			err.Error())
		return
	}
	h.SuccessfulExecutions = withSuccess(h.SuccessfulExecutions, success, j.rule.SuccessfulHistoryLimit)
}

// scale tells in applied what it set. Errors name the rule.
func (s *cronScaling) scale(ctx context.Context, c *autoscalingv1alpha1.CronFederatedHPA, j job,
	applied *autoscalingv1alpha1.SuccessfulExecution) error {
	target, rule := c.Spec.ScaleTargetRef, j.rule
	var err error
	switch limits := schema.FromAPIVersionAndKind(target.APIVersion,
		target.Kind).Group == autoscalingv1alpha1.GroupVersion.Group; {
	case limits && rule.TargetMinReplicas == nil && rule.TargetMaxReplicas == nil:
		return fmt.Errorf("%s: has neither targetMinReplicas nor targetMaxReplicas", j.path)
	case limits:
		applied.AppliedMinReplicas, applied.AppliedMaxReplicas = rule.TargetMinReplicas, rule.TargetMaxReplicas
		err = s.limit(ctx, types.NamespacedName{Namespace: c.Namespace, Name: target.Name}, rule)
	case rule.TargetReplicas == nil:
		return fmt.Errorf("%s: has no targetReplicas", j.path)
	default:
		applied.AppliedReplicas = rule.TargetReplicas
		err = s.scales.Set(ctx, c.Namespace, target, *rule.TargetReplicas)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	return nil
}

// limit sets the limits of a FederatedHPA that the rule gives. The API refuses them if they don't fit the other one.
func (s *cronScaling) limit(ctx context.Context, key types.NamespacedName,
	rule *autoscalingv1alpha1.CronFederatedHPARule) error {
	limits := map[string]any{}
	if rule.TargetMinReplicas != nil {
		limits["minReplicas"] = *rule.TargetMinReplicas
	}
	if rule.TargetMaxReplicas != nil {
		limits["maxReplicas"] = *rule.TargetMaxReplicas
	}
	patch, err := json.Marshal(map[string]any{"spec": limits})
	if err != nil {
		return err
	}
	f := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := s.client.Patch(ctx, f, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing the limits of FederatedHPA %s: %w", key, err)
	}
	return nil
}
