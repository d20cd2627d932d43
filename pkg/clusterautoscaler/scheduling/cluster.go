// Package scheduling tells whether a pod would be scheduled to a node: a small model of what kube-scheduler refuses,
// over nodes and pods that may not exist yet. It prefers nothing and preempts nobody; where it knows less than
// kube-scheduler (devices, limits of volumes per node) it takes the pod to fit. test/schedulerfilters compares it with
// kube-scheduler's own filters.
package scheduling

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Facts are what filters know beside nodes and pods.
type Facts struct {
	// Namespaces are the labels of namespaces by name; affinity terms select by them.
	Namespaces map[string]labels.Set
	// Claims are the volumes that claims are bound to, by namespace/name; a claim that is not bound yet is nil.
	Claims map[string]*corev1.PersistentVolume
}

// Node is a node with the pods on it.
type Node struct {
	*corev1.Node
	// Pods that hold resources of the node.
	Pods []*corev1.Pod

	requested corev1.ResourceList
}

// Cluster is a set of nodes with pods. It is not safe for concurrent use.
type Cluster struct {
	facts Facts
	nodes map[string]*Node
	order []string
}

// New returns a cluster without nodes.
func New(facts Facts) *Cluster {
	return &Cluster{facts: facts, nodes: map[string]*Node{}}
}

// Clone returns a copy; changes of one are not seen by the other.
func (c *Cluster) Clone() *Cluster {
	clone := &Cluster{facts: c.facts, nodes: make(map[string]*Node, len(c.nodes)), order: slices.Clone(c.order)}
	for name, node := range c.nodes {
		clone.nodes[name] = &Node{Node: node.Node, Pods: slices.Clone(node.Pods), requested: maps.Clone(node.requested)}
	}
	return clone
}

// Add adds a node with its pods.
func (c *Cluster) Add(node *corev1.Node, pods ...*corev1.Pod) {
	added := &Node{Node: node, requested: corev1.ResourceList{}}
	for _, pod := range pods {
		added.place(pod)
	}
	if _, found := c.nodes[node.Name]; !found {
		c.order = append(c.order, node.Name)
	}
	c.nodes[node.Name] = added
}

// Remove takes a node away.
func (c *Cluster) Remove(name string) {
	delete(c.nodes, name)
	c.order = slices.DeleteFunc(c.order, func(n string) bool { return n == name })
}

// Node returns a node, or nil.
func (c *Cluster) Node(name string) *Node { return c.nodes[name] }

// Names of the nodes in the order in which they were added.
func (c *Cluster) Names() []string { return slices.Clone(c.order) }

// Place puts a pod on a node, whether it fits or not.
func (c *Cluster) Place(pod *corev1.Pod, name string) { c.nodes[name].place(pod) }

// PlaceOnAny puts a pod on the first node that it fits, of those that are named; it returns false if there is none.
func (c *Cluster) PlaceOnAny(pod *corev1.Pod, names []string) (string, bool) {
	for _, name := range names {
		if c.Fits(pod, name) == nil {
			c.Place(pod, name)
			return name, true
		}
	}
	return "", false
}

// Fits returns nil when the pod could run on the node, else why not.
func (c *Cluster) Fits(pod *corev1.Pod, name string) error {
	node := c.nodes[name]
	if node == nil {
		return fmt.Errorf("there is no node %s", name)
	}
	for _, filter := range []func(*corev1.Pod, *Node) error{
		untainted, selected, hasRoom, hasPorts, c.reachesVolumes, c.affine, c.spread,
	} {
		if err := filter(pod, node); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) place(pod *corev1.Pod) {
	n.Pods = append(n.Pods, pod)
	for name, quantity := range Requests(pod) {
		sum := n.requested[name].DeepCopy()
		sum.Add(quantity)
		n.requested[name] = sum
	}
}

// Requests are what kube-scheduler counts for a pod, the pod itself included.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}).DeepCopy()
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	requests[corev1.ResourcePods] = one
	return requests
}
