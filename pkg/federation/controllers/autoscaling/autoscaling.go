// Package autoscaling carries out FederatedHPAs: every few seconds it asks the members of an object what its pods use,
// and sets the number of replicas of the object in the fleet; its policy divides them. How many there should be is
// computed in package autoscale.
package autoscaling

import (
	"context"
	"fmt"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/autoscale"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/scaling"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/members"
)

// Options say how often members are asked.
type Options struct {
	// Interval between two computations for one FederatedHPA.
	Interval time.Duration
	// Patience is how long the members may take to answer.
	Patience time.Duration
}

// DefaultOptions are those of Kubernetes' own autoscaler.
func DefaultOptions() Options { return Options{Interval: 15 * time.Second, Patience: 8 * time.Second} }

// scales reads and sets numbers of replicas.
type scales interface {
	Get(ctx context.Context, namespace string,
		target autoscalingv2.CrossVersionObjectReference) (*autoscalingv1.Scale, error)
	Set(ctx context.Context, namespace string, target autoscalingv2.CrossVersionObjectReference, replicas int32) error
}

// autoscaling handles FederatedHPAs.
type autoscaling struct {
	client  client.Client
	events  events.EventRecorder
	scales  scales
	usage   usage
	now     func() time.Time
	options Options

	mu        sync.Mutex
	histories map[types.NamespacedName]memory
}

// memory is of one object: another one of the same name begins anew.
type memory struct {
	uid     types.UID
	history autoscale.History
}

// Add registers the controller with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, scales *scaling.Scales, pool *members.Pool, options Options,
	settings setup.Settings) error {
	a := &autoscaling{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("federatedhpa"), scales: scales, now: time.Now,
		options:   options,
		usage:     usage{client: mgr.GetClient(), connected: pooled(pool), patience: options.Patience},
		histories: map[types.NamespacedName]memory{},
	}
	return setup.Add(mgr, "autoscaling", settings(a), setup.Specs(mgr.GetCache(), &autoscalingv1alpha1.FederatedHPA{}))
}

// Reconcile handles one FederatedHPA.
func (a *autoscaling) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	f := &autoscalingv1alpha1.FederatedHPA{}
	if err := a.client.Get(ctx, request.NamespacedName, f); err != nil {
		a.forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if f.DeletionTimestamp != nil {
		a.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	before := f.DeepCopy()
	f.Status.ObservedGeneration = &f.Generation
	if err := a.follow(ctx, f); err != nil {
		return reconcile.Result{}, err
	}
	if !apiequality.Semantic.DeepEqual(before.Status, f.Status) {
		if f.Status.CurrentMetrics == nil {
			f.Status.CurrentMetrics = []autoscalingv2.MetricStatus{} // The schema has no null there.
		}
		if err := a.client.Status().Update(ctx, f); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing the status of FederatedHPA %s: %w", request, err)
		}
	}
	return reconcile.Result{RequeueAfter: a.options.Interval}, nil
}

// follow computes how many replicas there should be, and has them set. What fails is told in conditions, and tried
// again the next time.
func (a *autoscaling) follow(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA) error {
	target := f.Spec.ScaleTargetRef
	current, err := a.scales.Get(ctx, f.Namespace, target)
	if err != nil {
		a.say(f, autoscale.Condition{
			Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedGetScale",
			Message: err.Error(),
		})
		// What was computed before is not true any more, and this is the condition that `kubectl get -o wide` shows.
		a.say(f, autoscale.Condition{
			Type: autoscalingv2.ScalingActive, Status: corev1.ConditionUnknown, Reason: "FailedGetScale",
			Message: err.Error(),
		})
		return nil
	}
	a.say(f, autoscale.Condition{
		Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "SucceededGetScale",
		Message: "The number of replicas could be read",
	})
	f.Status.CurrentReplicas = current.Spec.Replicas
	rival, err := a.rival(ctx, f)
	if err != nil {
		return err
	}
	if rival != "" {
		a.say(f, autoscale.Condition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse,
			Reason: "AmbiguousSelector",
			Message: fmt.Sprintf("FederatedHPA %s scales %s %s as well; delete one of them", rival, target.Kind,
				target.Name)})
		return nil
	}
	decision, notes, err := a.decide(ctx, f, current)
	if err != nil {
		return err
	}
	told := false
	for _, c := range decision.Conditions {
		if c.Type == autoscalingv2.ScalingActive && notes != "" {
			c.Message += ". " + notes
		}
		told = a.say(f, c) && c.Type == autoscalingv2.ScalingActive || told
	}
	if !told {
		a.warn(f, decision.NewlyFailed)
	}
	if decision.Metrics != nil {
		f.Status.CurrentMetrics = decision.Metrics
	}
	a.carryOut(ctx, f, current.Spec.Replicas, decision)
	return nil
}

// decide asks the members only if what they say matters.
func (a *autoscaling) decide(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA,
	current *autoscalingv1.Scale) (autoscale.Decision, string, error) {
	in := autoscale.Input{
		Min: 1, Max: f.Spec.MaxReplicas, Current: current.Spec.Replicas, Behavior: f.Spec.Behavior,
		History: a.remembered(f),
	}
	if f.Spec.MinReplicas != nil {
		in.Min = max(*f.Spec.MinReplicas, 1)
	}
	in.Max = max(in.Max, in.Min)
	notes := ""
	if in.Current >= in.Min && in.Current <= in.Max {
		got, err := a.usage.of(ctx, question{
			namespace: f.Namespace, target: f.Spec.ScaleTargetRef, selector: current.Status.Selector,
			replicas: in.Current, metrics: metricsOf(&f.Spec),
		})
		if err != nil {
			return autoscale.Decision{}, "", err
		}
		in.Copies, in.Pods, in.Unseen, in.Metrics, notes = got.copies, got.pods, got.unseen, got.metrics, got.notes()
	}
	in.Now = a.now()
	return autoscale.Decide(in), notes, nil
}

// metricsOf a FederatedHPA; without any, it is what Kubernetes takes, which no field asks for.
func metricsOf(spec *autoscalingv1alpha1.FederatedHPASpec) []metric {
	var result []metric
	for i := range spec.Metrics {
		result = append(result, metric{path: fmt.Sprintf("spec.metrics[%d]", i), MetricSpec: spec.Metrics[i]})
	}
	if len(result) > 0 {
		return result
	}
	return []metric{
		{
			MetricSpec: autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80)),
					},
				}},
		},
	}
}

// carryOut sets what was decided, and remembers it once it is true.
func (a *autoscaling) carryOut(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA, current int32,
	decision autoscale.Decision) {
	f.Status.DesiredReplicas = decision.Replicas
	if decision.Replicas == current {
		a.remember(f, decision.History)
		return
	}
	if err := a.scales.Set(ctx, f.Namespace, f.Spec.ScaleTargetRef, decision.Replicas); err != nil {
		f.Status.DesiredReplicas = current
		a.remember(f, decision.History)
		a.say(f, autoscale.Condition{
			Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedUpdateScale",
			Message: err.Error(),
		})
		return
	}
	now := a.now()
	f.Status.LastScaleTime = new(metav1.NewTime(now))
	a.remember(f, decision.History.Changed(now, current, decision.Replicas))
	a.say(f, autoscale.Condition{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue,
		Reason:  "SucceededRescale",
		Message: fmt.Sprintf("The number of replicas was set to %d", decision.Replicas)})
	a.events.Eventf(f, nil, corev1.EventTypeNormal, "SuccessfulRescale", "Scale", "%s %s has %d replicas instead of %d",
		f.Spec.ScaleTargetRef.Kind, f.Spec.ScaleTargetRef.Name, decision.Replicas, current)
}

// rival is another FederatedHPA of the same object, or "".
func (a *autoscaling) rival(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA) (string, error) {
	var list autoscalingv1alpha1.FederatedHPAList
	if err := a.client.List(ctx, &list, client.InNamespace(f.Namespace)); err != nil {
		return "", fmt.Errorf("listing FederatedHPAs: %w", err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Name != f.Name && other.DeletionTimestamp == nil &&
			sameTarget(other.Spec.ScaleTargetRef, f.Spec.ScaleTargetRef) {
			return other.Name, nil
		}
	}
	return "", nil
}

// remembered is what happened before. In a process that just started, it is no more than that something was changed.
func (a *autoscaling) remembered(f *autoscalingv1alpha1.FederatedHPA) autoscale.History {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, found := a.histories[client.ObjectKeyFromObject(f)]; found && known.uid == f.UID {
		return known.history
	}
	if f.Status.LastScaleTime == nil {
		return autoscale.History{}
	}
	return autoscale.History{Lost: f.Status.LastScaleTime.Time}
}

func (a *autoscaling) remember(f *autoscalingv1alpha1.FederatedHPA, history autoscale.History) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.histories[client.ObjectKeyFromObject(f)] = memory{f.UID, history}
}

func (a *autoscaling) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.histories, key)
}
