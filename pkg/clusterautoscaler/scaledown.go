package clusterautoscaler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

const (
	// AnnotationScaleDownDisabled on a node keeps it.
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// AnnotationSafeToEvict on a pod says whether its node may be removed because of it.
	AnnotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// Removal is a node that the shoot can do without.
type Removal struct {
	Node    *corev1.Node
	Group   *nodegroup.Group
	Machine string
	// Pods have room elsewhere and are to be evicted.
	Pods []*corev1.Pod
}

// unneeded finds the nodes whose pods have room elsewhere, assuming that all of them are removed. For the others it
// says why not.
func (s *Snapshot) unneeded(options *Options, world *scheduling.Cluster) ([]Removal, map[string]string) {
	kept := map[string]string{}
	var removals []Removal
	pods, spare := s.podsByNode(), s.spare()
	cluster := world.Clone()
	for _, node := range s.byUtilization(pods) {
		group, machine := s.group(node.Name)
		if group == nil || leaving(node) {
			continue
		}
		if spare[group] <= 0 {
			kept[node.Name] = fmt.Sprintf("%s has its minimum of %d", group.Name, group.Minimum)
			continue
		}
		moved, after, err := s.removable(options, cluster, node, group, pods[node.Name])
		if err != nil {
			kept[node.Name] = err.Error()
			continue
		}
		cluster = after
		spare[group]--
		removals = append(removals, Removal{Node: node, Group: group, Machine: machine.Name, Pods: moved})
	}
	return removals, kept
}

// spare counts the machines of groups above their minimum, without those that are being removed.
func (s *Snapshot) spare() map[*nodegroup.Group]int {
	result := map[*nodegroup.Group]int{}
	for _, group := range s.Groups {
		result[group] += group.Target - group.Minimum
	}
	for _, node := range s.Nodes {
		if group, _ := s.group(node.Name); group != nil && leaving(node) {
			result[group]--
		}
	}
	return result
}

// byUtilization returns the nodes, the emptiest first.
func (s *Snapshot) byUtilization(pods map[string][]*corev1.Pod) []*corev1.Node {
	nodes := slices.Clone(s.Nodes)
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int {
		return cmp.Or(cmp.Compare(utilization(a, pods[a.Name]), utilization(b, pods[b.Name])),
			cmp.Compare(a.Name, b.Name))
	})
	return nodes
}

// removable returns the pods to move off a node, and the cluster without the node and with them elsewhere.
func (s *Snapshot) removable(options *Options, cluster *scheduling.Cluster, node *corev1.Node, group *nodegroup.Group,
	pods []*corev1.Pod) ([]*corev1.Pod, *scheduling.Cluster, error) {
	if node.Annotations[AnnotationScaleDownDisabled] == "true" {
		return nil, nil, fmt.Errorf("annotation %s keeps it", AnnotationScaleDownDisabled)
	}
	if err := options.underused(node, group, pods); err != nil {
		return nil, nil, err
	}
	toMove, err := s.movable(pods)
	if err != nil {
		return nil, nil, err
	}
	after := cluster.Clone()
	after.Remove(node.Name)
	for _, pod := range append(guests(cluster, node.Name, pods), toMove...) {
		if _, placed := after.PlaceOnAny(pod, s.places(options, after)); !placed {
			return nil, nil, fmt.Errorf("pod %s/%s has room nowhere else", pod.Namespace, pod.Name)
		}
	}
	return toMove, after, nil
}

// guests are pods that were put on a node by an earlier decision, and are not there yet.
func guests(cluster *scheduling.Cluster, name string, there []*corev1.Pod) []*corev1.Pod {
	node := cluster.Node(name)
	if node == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(node.Pods), func(pod *corev1.Pod) bool { return slices.Contains(there, pod) })
}

// places are the nodes that pods may move to: real ones.
func (s *Snapshot) places(options *Options, cluster *scheduling.Cluster) []string {
	return slices.DeleteFunc(cluster.Names(), func(name string) bool {
		node := s.node(name)
		return node == nil || !options.usable(node)
	})
}

// underused compares what is requested of a node with the threshold of its group.
func (o *Options) underused(node *corev1.Node, group *nodegroup.Group, pods []*corev1.Pod) error {
	if o.IgnoreDaemonSetsUtilization {
		pods = slices.DeleteFunc(slices.Clone(pods), ofDaemonSet)
	}
	used, threshold := utilization(node, pods), group.ScaleDownUtilizationThreshold
	if gpus := node.Status.Allocatable[nodegroup.ResourceGPU]; !gpus.IsZero() {
		threshold = group.ScaleDownGPUUtilizationThreshold
	}
	if used >= threshold {
		return fmt.Errorf("%.0f %% of it is requested, the threshold is %.0f %%", 100*used, 100*threshold)
	}
	return nil
}

// utilization is the larger of the shares of CPU and memory that are requested; of nodes with GPUs only these count.
func utilization(node *corev1.Node, pods []*corev1.Pod) float64 {
	resources := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	if gpus := node.Status.Allocatable[nodegroup.ResourceGPU]; !gpus.IsZero() {
		resources = []corev1.ResourceName{nodegroup.ResourceGPU}
	}
	highest := 0.0
	for _, resource := range resources {
		total := node.Status.Allocatable[resource]
		if total.IsZero() {
			continue
		}
		highest = max(highest, float64(requestedMilli(pods, resource))/float64(total.MilliValue()))
	}
	return highest
}

// movable returns the pods that must run elsewhere when their node goes; the error names the first that must stay.
func (s *Snapshot) movable(pods []*corev1.Pod) ([]*corev1.Pod, error) {
	var result []*corev1.Pod
	left := map[*policyv1.PodDisruptionBudget]int32{}
	for _, budget := range s.Budgets {
		left[budget] = budget.Status.DisruptionsAllowed
	}
	for _, pod := range pods {
		if ofDaemonSet(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if err := mayMove(pod); err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		for _, budget := range s.Budgets {
			if !guards(budget, pod) {
				continue
			}
			if left[budget]--; left[budget] < 0 {
				return nil, fmt.Errorf("pod %s/%s: PodDisruptionBudget %s does not allow its eviction", pod.Namespace,
					pod.Name, budget.Name)
			}
		}
		result = append(result, pod)
	}
	return result, nil
}

// mayMove refuses pods that nobody would make anew, and those whose owner forbids it.
func mayMove(pod *corev1.Pod) error {
	safe, said := pod.Annotations[AnnotationSafeToEvict]
	switch {
	case said && safe == "false":
		return errors.New("annotation " + AnnotationSafeToEvict + " keeps it where it is")
	case said && safe == "true", metav1.GetControllerOf(pod) != nil,
		pod.Spec.Priority != nil && *pod.Spec.Priority < expendable:
		return nil
	}
	return errors.New("no controller would make it anew; annotation " + AnnotationSafeToEvict +
		`: "true" allows its eviction`)
}

func guards(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if budget.Namespace != pod.Namespace || budget.Spec.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// unneededSince remembers since when nodes are unneeded.
type unneededSince map[string]time.Time

// update starts the clock of nodes that have become unneeded, and forgets the others.
func (u unneededSince) update(removals []Removal, now time.Time) {
	still := map[string]bool{}
	for _, removal := range removals {
		still[removal.Node.Name] = true
		if _, known := u[removal.Node.Name]; !known {
			u[removal.Node.Name] = now
		}
	}
	for name := range u {
		if !still[name] {
			delete(u, name)
		}
	}
}

// due returns the removals whose time has come, within the limits of how many are removed at a time.
func (u unneededSince) due(options *Options, removals []Removal, underway []Removal, now time.Time) []Removal {
	total, drained := len(underway), 0
	for _, removal := range underway {
		if len(removal.Pods) > 0 {
			drained++
		}
	}
	var result []Removal
	for _, removal := range removals {
		wait := removal.Group.ScaleDownUnneededTime
		if !ready(removal.Node) {
			wait = removal.Group.ScaleDownUnreadyTime
		}
		if now.Sub(u[removal.Node.Name]) < wait || total >= options.MaxScaleDownParallelism {
			continue
		}
		if len(removal.Pods) > 0 {
			if drained >= options.MaxDrainParallelism {
				continue
			}
			drained++
		}
		total++
		result = append(result, removal)
	}
	return result
}
