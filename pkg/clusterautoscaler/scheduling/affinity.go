package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// affine refuses nodes by the required affinity and anti-affinity between pods, the anti-affinity of others included.
func (c *Cluster) affine(pod *corev1.Pod, node *Node) error {
	for _, term := range requiredAntiAffinity(pod) {
		if c.inDomain(node, term.TopologyKey, func(other *corev1.Pod) bool { return c.selects(pod, term, other) }) {
			return fmt.Errorf("a pod that it must not be with is in the same %s", term.TopologyKey)
		}
	}
	for _, name := range c.order {
		for _, other := range c.nodes[name].Pods {
			for _, term := range requiredAntiAffinity(other) {
				if c.selects(other, term, pod) && sameDomain(c.nodes[name], node, term.TopologyKey) {
					return fmt.Errorf("pod %s/%s does not want it in the same %s", other.Namespace, other.Name,
						term.TopologyKey)
				}
			}
		}
	}
	return c.accompanied(pod, node)
}

// accompanied refuses nodes without the pods that the pod must be with: those that all of its terms mean, in the node's
// domain of each term. The first of a group that wants to be with itself may be anywhere.
func (c *Cluster) accompanied(pod *corev1.Pod, node *Node) error {
	terms := requiredAffinity(pod)
	wanted := func(other *corev1.Pod) bool {
		return !slices.ContainsFunc(terms,
			func(term corev1.PodAffinityTerm) bool { return !c.selects(pod, term, other) })
	}
	missing := ""
	for _, term := range terms {
		if _, labelled := node.Labels[term.TopologyKey]; !labelled {
			return fmt.Errorf("the node has no label %s, by which it must be with other pods", term.TopologyKey)
		}
		if !c.inDomain(node, term.TopologyKey, wanted) {
			missing = term.TopologyKey
		}
	}
	if missing == "" || wanted(pod) && !c.inAnyDomain(terms, wanted) {
		return nil
	}
	return fmt.Errorf("no pod that it must be with is in the same %s", missing)
}

// inAnyDomain says whether a pod that matches is on a node with the label of one of the terms.
func (c *Cluster) inAnyDomain(terms []corev1.PodAffinityTerm, matches func(*corev1.Pod) bool) bool {
	for _, node := range c.nodes {
		labelled := slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
			_, found := node.Labels[term.TopologyKey]
			return found
		})
		if labelled && slices.ContainsFunc(node.Pods, matches) {
			return true
		}
	}
	return false
}

// inDomain says whether a pod that matches is in the node's domain.
func (c *Cluster) inDomain(node *Node, key string, matches func(*corev1.Pod) bool) bool {
	for _, name := range c.order {
		if sameDomain(c.nodes[name], node, key) && slices.ContainsFunc(c.nodes[name].Pods, matches) {
			return true
		}
	}
	return false
}

// sameDomain says whether two nodes have the label with the same value.
func sameDomain(a, b *Node, key string) bool {
	value, found := a.Labels[key]
	other, also := b.Labels[key]
	return found && also && value == other
}

// selects says whether a term of a pod's affinity means another pod.
func (c *Cluster) selects(owner *corev1.Pod, term corev1.PodAffinityTerm, other *corev1.Pod) bool {
	return c.inNamespaces(owner, term, other.Namespace) && matches(mergedSelector(owner, term), other.Labels)
}

func (c *Cluster) inNamespaces(owner *corev1.Pod, term corev1.PodAffinityTerm, namespace string) bool {
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		return namespace == owner.Namespace
	}
	return slices.Contains(term.Namespaces, namespace) ||
		term.NamespaceSelector != nil && matches(term.NamespaceSelector, c.facts.Namespaces[namespace])
}

// mergedSelector adds the labels of the pod itself that the term names.
func mergedSelector(owner *corev1.Pod, term corev1.PodAffinityTerm) *metav1.LabelSelector {
	if term.LabelSelector == nil || len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) == 0 {
		return term.LabelSelector
	}
	selector := term.LabelSelector.DeepCopy()
	add := func(keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, found := owner.Labels[key]; found {
				selector.MatchExpressions = append(selector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	add(term.MatchLabelKeys, metav1.LabelSelectorOpIn)
	add(term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	return selector
}

// matches is false for selectors that are missing or broken, as in kube-scheduler.
func matches(selector *metav1.LabelSelector, set labels.Set) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(set)
}

func requiredAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func requiredAntiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
