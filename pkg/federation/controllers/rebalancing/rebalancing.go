// Package rebalancing answers WorkloadRebalancers: it asks the scheduler, by spec.rescheduleTriggeredAt of bindings, to
// decide from scratch, and removes WorkloadRebalancers that are done and old enough.
package rebalancing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// rebalancing handles WorkloadRebalancers.
type rebalancing struct {
	client client.Client
	now    func() time.Time
}

// Add registers the controller with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, settings setup.Settings) error {
	r := &rebalancing{client: mgr.GetClient(), now: time.Now}
	return setup.Add(mgr, "rebalancing", settings(r), setup.Specs(mgr.GetCache(), &appsv1alpha1.WorkloadRebalancer{}))
}

// Reconcile handles one WorkloadRebalancer.
func (r *rebalancing) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	rebalancer := &appsv1alpha1.WorkloadRebalancer{}
	if err := r.client.Get(ctx, request.NamespacedName, rebalancer); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if rebalancer.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	before := rebalancer.DeepCopy()
	wait, err := r.rebalance(ctx, rebalancer)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.writeStatus(ctx, before, rebalancer); err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	return r.removeWhenOld(ctx, rebalancer)
}

// asksAtOnce is how many workloads are asked for at a time.
const asksAtOnce = 8

// rebalance asks for the workloads that were not handled yet. It gives how long to wait before those that are left.
func (r *rebalancing) rebalance(ctx context.Context,
	rebalancer *appsv1alpha1.WorkloadRebalancer) (time.Duration, error) {
	status := &rebalancer.Status
	status.ObservedWorkloads = observe(status.ObservedWorkloads, rebalancer.Spec.Workloads)
	waits := make([]time.Duration, len(status.ObservedWorkloads))
	var group errgroup.Group
	group.SetLimit(asksAtOnce)
	for i := range status.ObservedWorkloads {
		observed := &status.ObservedWorkloads[i]
		if observed.Result != "" {
			continue
		}
		group.Go(func() (err error) {
			waits[i], err = r.trigger(ctx, rebalancer, observed)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if finished(status.ObservedWorkloads) &&
		(status.FinishTime == nil || status.ObservedGeneration != rebalancer.Generation) {
		status.FinishTime = new(metav1.NewTime(r.now()))
	}
	status.ObservedGeneration = rebalancer.Generation
	return slices.Max(append(waits, 0)), nil
}

// trigger asks for one workload, or says how long to wait before.
func (r *rebalancing) trigger(ctx context.Context, rebalancer *appsv1alpha1.WorkloadRebalancer,
	observed *appsv1alpha1.ObservedWorkload) (time.Duration, error) {
	workload := observed.Workload
	key := types.NamespacedName{Namespace: workload.Namespace, Name: bindings.Name(workload.Name, workload.Kind)}
	b, err := bindings.Get(ctx, r.client, key)
	if err != nil {
		return 0, err
	}
	if b == nil || !bindings.IsFor(b, templateKey(workload)) {
		observed.Result, observed.Reason = appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
		return 0, nil
	}
	if wasTriggered(rebalancer, b) {
		observed.Result = appsv1alpha1.RebalanceSuccessful
		return 0, nil
	}
	if wait := tooEarly(b, r.now()); wait > 0 {
		return wait, nil
	}
	before := b.DeepCopyObject().(bindings.Binding)
	b.BindingSpec().RescheduleTriggeredAt = new(metav1.NewTime(r.now()))
	if err := r.client.Patch(ctx, b,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("asking for a new decision on binding %s: %w", key, err)
	}
	observed.Result = appsv1alpha1.RebalanceSuccessful
	return 0, nil
}

func templateKey(workload appsv1alpha1.ObjectReference) bindings.TemplateKey {
	return bindings.TemplateKey{
		GroupVersionKind: schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind),
		NamespacedName:   types.NamespacedName{Namespace: workload.Namespace, Name: workload.Name},
	}
}

// wasTriggered recognizes what was done before the status could be written. Workloads that were added to an existing
// WorkloadRebalancer cannot be told apart, so they are asked for once more.
func wasTriggered(rebalancer *appsv1alpha1.WorkloadRebalancer, b bindings.Binding) bool {
	at := b.BindingSpec().RescheduleTriggeredAt
	return rebalancer.Generation <= 1 && at != nil && at.After(rebalancer.CreationTimestamp.Time)
}

// tooEarly: times in the API are full seconds, and a request counts only if it is later than the last decision.
func tooEarly(b bindings.Binding, now time.Time) time.Duration {
	decided, found := karmada.DecidedOf(b)
	if !found {
		return 0
	}
	return max(0, decided.Time.Truncate(time.Second).Add(time.Second).Sub(now))
}

func (r *rebalancing) writeStatus(ctx context.Context, before, after *appsv1alpha1.WorkloadRebalancer) error {
	if apiequality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, after,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of WorkloadRebalancer %s: %w", after.Name, err)
	}
	return nil
}

func (r *rebalancing) removeWhenOld(ctx context.Context,
	rebalancer *appsv1alpha1.WorkloadRebalancer) (reconcile.Result, error) {
	if rebalancer.Spec.TTLSecondsAfterFinished == nil || rebalancer.Status.FinishTime == nil {
		return reconcile.Result{}, nil
	}
	end := rebalancer.Status.FinishTime.Add(time.Duration(*rebalancer.Spec.TTLSecondsAfterFinished) * time.Second)
	if left := end.Sub(r.now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	err := r.client.Delete(ctx, rebalancer,
		client.Preconditions{UID: new(rebalancer.UID), ResourceVersion: new(rebalancer.ResourceVersion)})
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
