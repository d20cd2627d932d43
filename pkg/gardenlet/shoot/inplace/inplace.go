// Package inplace follows the updates of machines that stay when they have to change: which pools wait for one, which
// have had it, and which nodes may take pods again. The updates are machine-controller-manager's and node-agent's.
package inplace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Begun returns the pools of a Worker whose machines are to be updated in place by what it says after, and were not by
// what it said before. Pools that are new have new machines only.
func Begun(before, after []extensionsv1alpha1.WorkerPool) []extensionsv1alpha1.WorkerPool {
	var begun []extensionsv1alpha1.WorkerPool
	for _, pool := range after {
		wanted := pool.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate]
		i := slices.IndexFunc(before, func(b extensionsv1alpha1.WorkerPool) bool { return b.Name == pool.Name })
		if wanted != "" && i >= 0 && before[i].Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate] != wanted {
			begun = append(begun, pool)
		}
	}
	return begun
}

// Begin notes in the status that pools wait for updates.
func Begin(status *gardencorev1beta1.ShootStatus, pools []extensionsv1alpha1.WorkerPool) {
	if len(pools) == 0 {
		return
	}
	pending := pendingOf(status)
	for _, pool := range pools {
		add(&pending, pool.Name, pool.UpdateStrategy)
	}
	write(status, pending)
}

func add(pending *gardencorev1beta1.PendingWorkerUpdates, pool string,
	strategy *gardencorev1beta1.MachineUpdateStrategy) {
	list := &pending.AutoInPlaceUpdate
	if isManual(strategy) {
		list = &pending.ManualInPlaceUpdate
	}
	if !slices.Contains(*list, pool) {
		*list = append(*list, pool)
	}
}

// Settle takes pools out of the status that do not wait any more: those that have had the update, and those that the
// shoot has no longer. One that its owner has others update by now waits on.
func Settle(status *gardencorev1beta1.ShootStatus, workers []gardencorev1beta1.Worker, updated []string) {
	before := pendingOf(status)
	pending := gardencorev1beta1.PendingWorkerUpdates{}
	for _, name := range slices.Concat(before.AutoInPlaceUpdate, before.ManualInPlaceUpdate) {
		i := slices.IndexFunc(workers, func(w gardencorev1beta1.Worker) bool {
			return w.Name == name && gardencorev1beta1.IsUpdatedInPlace(&w)
		})
		if i >= 0 && !slices.Contains(updated, name) {
			add(&pending, name, workers[i].UpdateStrategy)
		}
	}
	write(status, pending)
}

// AwaitingOwner are the pools with machines that are updated when their owner says so.
func AwaitingOwner(status *gardencorev1beta1.ShootStatus) []string {
	return pendingOf(status).ManualInPlaceUpdate
}

// Pending says whether some pool waits for an update.
func Pending(status *gardencorev1beta1.ShootStatus) bool {
	pending := pendingOf(status)
	return len(pending.AutoInPlaceUpdate)+len(pending.ManualInPlaceUpdate) > 0
}

func pendingOf(status *gardencorev1beta1.ShootStatus) gardencorev1beta1.PendingWorkerUpdates {
	if status.InPlaceUpdates == nil || status.InPlaceUpdates.PendingWorkerUpdates == nil {
		return gardencorev1beta1.PendingWorkerUpdates{}
	}
	return *status.InPlaceUpdates.PendingWorkerUpdates.DeepCopy()
}

func write(status *gardencorev1beta1.ShootStatus, pending gardencorev1beta1.PendingWorkerUpdates) {
	if len(pending.AutoInPlaceUpdate)+len(pending.ManualInPlaceUpdate) == 0 {
		status.InPlaceUpdates = nil
		return
	}
	status.InPlaceUpdates = &gardencorev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &pending}
}

func isManual(strategy *gardencorev1beta1.MachineUpdateStrategy) bool {
	return strategy != nil && *strategy == gardencorev1beta1.ManualInPlaceUpdate
}

// Updated returns the pools of a Worker all of whose machines are what it asks for. What nodes say of themselves does
// not count.
func Updated(ctx context.Context, seed client.Reader, worker *extensionsv1alpha1.Worker) ([]string, error) {
	deployments := &machinev1alpha1.MachineDeploymentList{}
	if err := seed.List(ctx, deployments, client.InNamespace(worker.Namespace)); err != nil {
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	var updated []string
	for _, pool := range worker.Spec.Pools {
		wanted := pool.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate]
		unfinished := func(d machinev1alpha1.MachineDeployment) bool {
			return d.Labels[gardencorev1beta1.LabelWorkerPool] == pool.Name && !isUpdated(d, wanted)
		}
		if wanted != "" && !slices.ContainsFunc(deployments.Items, unfinished) {
			updated = append(updated, pool.Name)
		}
	}
	return updated, nil
}

func isUpdated(d machinev1alpha1.MachineDeployment, wanted string) bool {
	template := d.Spec.Template.Spec.NodeTemplateSpec
	return template.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate] == wanted &&
		d.Status.ObservedGeneration >= d.Generation &&
		d.Status.UpdatedReplicas == d.Spec.Replicas && d.Status.Replicas == d.Spec.Replicas
}

// AdmitNodes lets pods on nodes of pools again, from which machine-controller-manager keeps them after an update until
// the pods are ready that no node can do without. Nobody else in the cluster takes that taint away.
func AdmitNodes(ctx context.Context, shoot kubernetes.Interface, nodes []corev1.Node, pools []string) error {
	var problems []error
	for i := range nodes {
		node := &nodes[i]
		if slices.Contains(pools, node.Labels[gardencorev1beta1.LabelWorkerPool]) &&
			slices.ContainsFunc(node.Spec.Taints, isNotReadyTaint) && isTrue(node.Status.Conditions, corev1.NodeReady) {
			problems = append(problems, admit(ctx, shoot, node))
		}
	}
	return errors.Join(problems...)
}

func isNotReadyTaint(taint corev1.Taint) bool {
	return taint.Key == gardencorev1beta1.TaintNodeCriticalComponentsNotReady
}

func isTrue(conditions []corev1.NodeCondition, t corev1.NodeConditionType) bool {
	return slices.ContainsFunc(conditions, func(c corev1.NodeCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// admit takes the taint from a node whose critical pods are ready.
func admit(ctx context.Context, shoot kubernetes.Interface, node *corev1.Node) error {
	pods, err := shoot.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
		LabelSelector: gardencorev1beta1.LabelNodeCriticalComponent + "=true",
	})
	if err != nil {
		return fmt.Errorf("listing critical pods of node %s: %w", node.Name, err)
	}
	if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return !isReady(pod) }) {
		return nil
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isNotReadyTaint)
	if _, err := shoot.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("admitting pods on node %s: %w", node.Name, err)
	}
	return nil
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
