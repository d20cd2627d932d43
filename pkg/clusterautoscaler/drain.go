package clusterautoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// evictionTimeout is how long an eviction that a PodDisruptionBudget refuses is tried again.
	evictionTimeout = 2 * time.Minute
	// endSlack is what pods get to be gone beyond their grace period.
	endSlack = 30 * time.Second
)

// drainer empties nodes.
type drainer struct {
	client kubernetes.Interface
	// longestGrace bounds the grace period of pods.
	longestGrace time.Duration
	// interval is how often evictions are tried again, and pods are looked at.
	interval time.Duration
}

// drain keeps new pods off a node and evicts its pods; it returns when they are gone. The taint goes again if that
// fails, or if pods have come since the removal was decided: nobody has looked for room elsewhere for them.
func (d *drainer) drain(ctx context.Context, removal Removal) error {
	if err := d.taint(ctx, removal.Node.Name); err != nil {
		return err
	}
	err := d.noneCame(ctx, removal)
	if err == nil {
		err = d.evictAll(ctx, removal.Pods)
	}
	if err != nil {
		return errors.Join(err, d.untaint(context.WithoutCancel(ctx), removal.Node.Name))
	}
	return nil
}

// noneCame names a pod of the node that the removal doesn't reckon with.
func (d *drainer) noneCame(ctx context.Context, removal Removal) error {
	there, err := d.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", removal.Node.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("listing the pods of Node %s: %w", removal.Node.Name, err)
	}
	for i := range there.Items {
		pod := &there.Items[i]
		known := func(p *corev1.Pod) bool {
			return p.UID == pod.UID && p.Namespace == pod.Namespace && p.Name == pod.Name
		}
		if pod.DeletionTimestamp == nil && !ended(pod) && !ofDaemonSet(pod) &&
			!slices.ContainsFunc(removal.Pods, known) {
			return fmt.Errorf("pod %s/%s has come to Node %s meanwhile", pod.Namespace, pod.Name, removal.Node.Name)
		}
	}
	return nil
}

func (d *drainer) evictAll(ctx context.Context, pods []*corev1.Pod) error {
	problems := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { problems[i] = d.evict(ctx, pod) })
	}
	group.Wait()
	return errors.Join(problems...)
}

// evict asks for the eviction of a pod until it is granted, and waits until the pod is gone.
func (d *drainer) evict(ctx context.Context, pod *corev1.Pod) error {
	grace := min(time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30))*time.Second, d.longestGrace)
	eviction := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(grace.Seconds())), Preconditions: &metav1.Preconditions{UID: new(pod.UID)},
		},
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, d.interval, evictionTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = d.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
			return last == nil || apierrors.IsNotFound(last) || apierrors.IsConflict(last), nil
		})
	if err != nil {
		return fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, errors.Join(last, err))
	}
	return d.waitUntilGone(ctx, pod, grace+endSlack)
}

func (d *drainer) waitUntilGone(ctx context.Context, pod *corev1.Pod, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, d.interval, timeout, true, func(ctx context.Context) (bool, error) {
		current, err := d.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && (current.UID != pod.UID || current.Spec.NodeName != pod.Spec.NodeName), nil
	})
	if err != nil {
		return fmt.Errorf("pod %s/%s was evicted and is still there after %s: %w", pod.Namespace, pod.Name, timeout,
			err)
	}
	return nil
}

func (d *drainer) taint(ctx context.Context, name string) error {
	return d.changeTaints(ctx, name, func(taints []corev1.Taint) []corev1.Taint {
		return append(withoutDeletion(taints),
			corev1.Taint{
				Key: TaintToBeDeleted, Value: fmt.Sprint(time.Now().Unix()), Effect: corev1.TaintEffectNoSchedule,
			})
	})
}

func (d *drainer) untaint(ctx context.Context, name string) error {
	return d.changeTaints(ctx, name, withoutDeletion)
}

func withoutDeletion(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints),
		func(taint corev1.Taint) bool { return taint.Key == TaintToBeDeleted })
}

// changeTaints replaces the taints of a node as they were read.
func (d *drainer) changeTaints(ctx context.Context, name string, change func([]corev1.Taint) []corev1.Taint) error {
	return wait.PollUntilContextTimeout(ctx, d.interval, endSlack, true, func(ctx context.Context) (bool, error) {
		node, err := d.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("reading Node %s: %w", name, err)
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
			"spec":     map[string]any{"taints": change(node.Spec.Taints)},
		})
		if err != nil {
			return false, err
		}
		_, err = d.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("tainting Node %s: %w", name, err)
		}
		return true, nil
	})
}
