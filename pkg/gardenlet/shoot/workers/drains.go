package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/few"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
)

const (
	// conditionTerminating is what machine-controller-manager gives a node that it drains.
	conditionTerminating corev1.NodeConditionType = "Terminating"
	// mostTold is how many nodes, and how many budgets of one, are told of: users choose how many there are.
	mostTold = 5
	// advice is for those who may change what keeps a node.
	advice = "give the pods more replicas, mend those that are not healthy, or let the PodDisruptionBudget allow one " +
		"to be away"
	// explanationTimeout bounds the questions to a shoot why its nodes stay.
	explanationTimeout = 20 * time.Second
)

// waitForWorker waits for the machines. When that fails, the error tells which PodDisruptionBudgets of the shoot keep
// nodes that are to go: the provider's extension knows of these only in part.
func (w *Workers) waitForWorker(ctx context.Context) error {
	ended := w.admitUpdatedNodes(ctx)
	err := extension.Wait(ctx, w.Seed, &extensionsv1alpha1.Worker{ObjectMeta: w.Plan.Meta(w.Plan.ShootName)},
		extension.WorkerTiming)
	ended()
	if err == nil {
		return w.noteUpdated(ctx)
	}
	asking, cancel := context.WithTimeout(ctx, explanationTimeout)
	defer cancel()
	kept, askErr := w.keptNodes(asking)
	if askErr != nil {
		w.Log.Info("the shoot does not tell what keeps its nodes", "reason", askErr.Error())
	}
	if len(kept) == 0 {
		return err
	}
	return fmt.Errorf("%w; %s", err, few.Joined(kept, mostTold, "; "))
}

// keptNodes asks the shoot which of its nodes are drained in vain, and why.
func (w *Workers) keptNodes(ctx context.Context) ([]string, error) {
	clientset, err := access.Clientset(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return nil, err
	}
	return explainDrains(ctx, clientset)
}

// explainDrains tells, for each node that is drained, which budgets allow no eviction of its pods at this time.
func explainDrains(ctx context.Context, shoot kubernetes.Interface) ([]string, error) {
	nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	drained := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return !isDraining(node) })
	if len(drained) == 0 {
		return nil, nil
	}
	budgets, err := shoot.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	var told []string
	for _, node := range drained[:min(len(drained), mostTold)] {
		pods, err := shoot.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
		})
		if err != nil {
			return told, fmt.Errorf("listing pods of node %s: %w", node.Name, err)
		}
		if kept := keptBy(budgets.Items, pods.Items); len(kept) > 0 {
			told = append(told, fmt.Sprintf("node %s cannot be drained, as evictions are forbidden by %s: %s",
				node.Name, few.Joined(kept, mostTold, ", "), advice))
		}
	}
	return told, nil
}

// isDraining says whether a node is drained, because its machine goes or is about to be updated.
func isDraining(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Status == corev1.ConditionTrue && (condition.Type == conditionTerminating ||
			condition.Type == machinev1alpha1.NodeInPlaceUpdate &&
				condition.Reason == machinev1alpha1.SelectedForUpdate)
	})
}

// keptBy returns the budgets that allow no eviction of some of the pods, with what they ask for.
func keptBy(budgets []policyv1.PodDisruptionBudget, pods []corev1.Pod) []string {
	var kept []string
	for _, budget := range budgets {
		guarded := func(pod corev1.Pod) bool { return isDrained(pod) && guards(budget, pod) }
		if budget.Status.DisruptionsAllowed > 0 || !slices.ContainsFunc(pods, guarded) {
			continue
		}
		kept = append(kept, fmt.Sprintf("PodDisruptionBudget %s/%s (%d of %d pods are healthy, and %d have to be)",
			budget.Namespace, budget.Name, budget.Status.CurrentHealthy, budget.Status.ExpectedPods,
			budget.Status.DesiredHealthy))
	}
	return kept
}

// isDrained says whether a pod is evicted when its node is drained.
func isDrained(pod corev1.Pod) bool {
	owner := metav1.GetControllerOf(&pod)
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !isMirror && (owner == nil || owner.Kind != "DaemonSet") && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func guards(budget policyv1.PodDisruptionBudget, pod corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels))
}
