package clusterautoscaler

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

const (
	// TaintToBeDeleted is on nodes that are being removed.
	TaintToBeDeleted = "ToBeDeletedByClusterAutoscaler"
	// annotationMirror is on the API's copies of static pods.
	annotationMirror = "kubernetes.io/config.mirror"
	// expendable pods have a priority below this: nothing is added or kept for them.
	expendable = -10
)

// Snapshot is what decisions are made from.
type Snapshot struct {
	// Now is when it was taken.
	Now time.Time
	// Nodes, Pods, DaemonSets and Budgets of the shoot.
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	DaemonSets []*appsv1.DaemonSet
	Budgets    []*policyv1.PodDisruptionBudget
	// Facts about namespaces and volumes.
	Facts scheduling.Facts
	// Groups of nodes.
	Groups []*nodegroup.Group
	// Priorities of groups, for the expander of that name.
	Priorities Priorities
}

// group returns the group of a node and its machine there, or nil.
func (s *Snapshot) group(node string) (*nodegroup.Group, *nodegroup.Machine) {
	for _, group := range s.Groups {
		if machine := group.MachineOf(node); machine != nil {
			return group, machine
		}
	}
	return nil, nil
}

// podsByNode returns the pods that hold resources of nodes.
func (s *Snapshot) podsByNode() map[string][]*corev1.Pod {
	result := map[string][]*corev1.Pod{}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName != "" && !ended(pod) {
			result[pod.Spec.NodeName] = append(result[pod.Spec.NodeName], pod)
		}
	}
	return result
}

// pending are the pods that kube-scheduler found no node for, those with the largest requests first.
func (s *Snapshot) pending(delay time.Duration) []*corev1.Pod {
	var result []*corev1.Pod
	for _, pod := range s.Pods {
		if unschedulable(pod) && s.Now.Sub(pod.CreationTimestamp.Time) >= delay {
			result = append(result, pod)
		}
	}
	slices.SortStableFunc(result, func(a, b *corev1.Pod) int {
		left, right := scheduling.Requests(a), scheduling.Requests(b)
		if byCPU := right.Cpu().Cmp(*left.Cpu()); byCPU != 0 {
			return byCPU
		}
		if byMemory := right.Memory().Cmp(*left.Memory()); byMemory != 0 {
			return byMemory
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return result
}

func unschedulable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || ended(pod) || pod.Status.NominatedNodeName != "" {
		return false
	}
	if pod.Spec.Priority != nil && *pod.Spec.Priority < expendable {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// usable nodes are ready, stay, and have no startup taint.
func (o *Options) usable(node *corev1.Node) bool {
	return ready(node) && node.DeletionTimestamp == nil &&
		!slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == TaintToBeDeleted || o.isStartupTaint(taint.Key)
		})
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// leaving says whether a node is being removed.
func leaving(node *corev1.Node) bool {
	return node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == TaintToBeDeleted })
}

// ofDaemonSet says whether a pod is on its node because of the node: there is nothing to move.
func ofDaemonSet(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[annotationMirror]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

func contains(list []string, value string) bool { return slices.Contains(list, value) }
