package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/priorityqueue"
)

// schedulePriority gives the value of the PriorityClass that a policy names; nil if it names none. A class that doesn't
// exist counts as 0, the policy's event says so, and its creation wakes the policy.
func (p *propagation) schedulePriority(ctx context.Context,
	policy *policies.Policy) (*workv1alpha2.SchedulePriority, error) {
	wanted := policy.Spec.SchedulePriority
	if wanted == nil {
		return nil, nil
	}
	class := &schedulingv1.PriorityClass{}
	err := p.client.Get(ctx, types.NamespacedName{Name: wanted.PriorityClassName}, class)
	if apierrors.IsNotFound(err) {
		p.events.Eventf(policy.Object, nil, corev1.EventTypeWarning, "PriorityClassNotFound", "Propagate",
			"spec.schedulePriority.priorityClassName: the fleet has no PriorityClass %q; until it has, the priority "+
				"is 0", wanted.PriorityClassName)
		return &workv1alpha2.SchedulePriority{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PriorityClass %s: %w", wanted.PriorityClassName, err)
	}
	return &workv1alpha2.SchedulePriority{Priority: class.Value}, nil
}

// priorityOf a binding; 0 unless its policy names a class.
func priorityOf(b bindings.Binding) int32 {
	if p := b.BindingSpec().SchedulePriority; p != nil {
		return p.Priority
	}
	return 0
}

// byPriority tells the priority of a binding before it is queued.
func byPriority[B bindings.Binding](
	priorities *priorityqueue.Priorities) handler.TypedEventHandler[B, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, b B) []reconcile.Request {
		priorities.Set(client.ObjectKeyFromObject(b), priorityOf(b))
		return []reconcile.Request{requestFor(b)}
	})
}

// retryWaiting tries all bindings that wait for room every now and then, since not every event that makes room is told.
// All at once: were each tried at a time of its own, the next one would get the room and not the most urgent.
func retryWaiting(priorities *priorityqueue.Priorities, wake *inlet[reconcile.Request]) manager.RunnableFunc {
	return func(ctx context.Context) error {
		clock := time.NewTicker(retryUnschedulable)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-clock.C:
			}
			for _, key := range priorities.Waiting() {
				wake.add(reconcile.Request{NamespacedName: key})
			}
		}
	}
}

// toPolicies wakes the policies that a change elsewhere concerns.
func toPolicies[T client.Object](reader client.Reader,
	concerns func(policies.Policy, T) bool) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object T) []reconcile.Request {
		all, err := policies.List(ctx, reader, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil
		}
		var requests []reconcile.Request
		for _, policy := range all {
			if concerns(policy, object) {
				requests = append(requests, requestFor(policy))
			}
		}
		return requests
	})
}

// namesPriorityClass tells whether the policy's priority is that of a class.
func namesPriorityClass(policy policies.Policy, class *schedulingv1.PriorityClass) bool {
	return policy.Spec.SchedulePriority != nil && policy.Spec.SchedulePriority.PriorityClassName == class.Name
}
