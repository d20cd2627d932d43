package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spread refuses nodes on which the pod would break one of its topology spread constraints that forbid scheduling.
func (c *Cluster) spread(pod *corev1.Pod, node *Node) error {
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		if err := c.satisfies(pod, node, constraint); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) satisfies(pod *corev1.Pod, node *Node, constraint corev1.TopologySpreadConstraint) error {
	domain, found := node.Labels[constraint.TopologyKey]
	if !found {
		return fmt.Errorf("the node has no label %s to spread by", constraint.TopologyKey)
	}
	selector := spreadSelector(pod, constraint)
	counts := c.countByDomain(pod, constraint, selector)
	self := int32(0)
	if matches(selector, pod.Labels) {
		self = 1
	}
	if skew := counts[domain] + self - least(counts, constraint.MinDomains); skew > constraint.MaxSkew {
		return fmt.Errorf("spreading by %s: a skew of %d is over %d", constraint.TopologyKey, skew, constraint.MaxSkew)
	}
	return nil
}

// countByDomain counts the pods that the constraint is about, in the domains where the pod may go.
func (c *Cluster) countByDomain(pod *corev1.Pod, constraint corev1.TopologySpreadConstraint,
	selector *metav1.LabelSelector) map[string]int32 {
	counts := map[string]int32{}
	for _, name := range c.order {
		node := c.nodes[name]
		if !inAllDomains(pod, node) || !counted(pod, node, constraint) {
			continue
		}
		domain := node.Labels[constraint.TopologyKey]
		counts[domain] += 0
		for _, other := range node.Pods {
			if other.Namespace == pod.Namespace && other.DeletionTimestamp == nil && selectsOthers(selector) &&
				matches(selector, other.Labels) {
				counts[domain]++
			}
		}
	}
	return counts
}

// selectsOthers is false for a selector that is empty, by which kube-scheduler counts no pods, though it means all of
// them.
func selectsOthers(selector *metav1.LabelSelector) bool {
	return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

// inAllDomains: by none of its constraints does a pod count nodes that lack the label of another.
func inAllDomains(pod *corev1.Pod, node *Node) bool {
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if _, found := node.Labels[constraint.TopologyKey]; !found &&
			constraint.WhenUnsatisfiable == corev1.DoNotSchedule {
			return false
		}
	}
	return true
}

// counted follows the constraint's policies: by default nodes count by the pod's node affinity, whatever their taints.
func counted(pod *corev1.Pod, node *Node, constraint corev1.TopologySpreadConstraint) bool {
	byAffinity := constraint.NodeAffinityPolicy == nil ||
		*constraint.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	byTaints := constraint.NodeTaintsPolicy != nil && *constraint.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	return (!byAffinity || selected(pod, node) == nil) && (!byTaints || tolerated(pod, node.Spec.Taints) == nil)
}

// least is the smallest count; 0 where there are fewer domains than the constraint wants.
func least(counts map[string]int32, minDomains *int32) int32 {
	if minDomains != nil && len(counts) < int(*minDomains) {
		return 0
	}
	first, result := true, int32(0)
	for _, count := range counts {
		if first || count < result {
			first, result = false, count
		}
	}
	return result
}

func spreadSelector(pod *corev1.Pod, constraint corev1.TopologySpreadConstraint) *metav1.LabelSelector {
	return mergedSelector(pod, corev1.PodAffinityTerm{
		LabelSelector: constraint.LabelSelector, MatchLabelKeys: constraint.MatchLabelKeys,
	})
}
