package clusterautoscaler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

// daemonTolerations are what the DaemonSet controller adds to its pods.
var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists},
}

// template is what a new node of the group would look like: like a usable node of it, else as its machine class says.
func (s *Snapshot) template(options *Options, group *nodegroup.Group) *corev1.Node {
	for _, node := range s.Nodes {
		if group.MachineOf(node.Name) != nil && options.usable(node) {
			return options.clean(node)
		}
	}
	if group.Template == nil {
		return nil
	}
	return options.clean(group.Template)
}

// clean removes from a node what others of its group do not have, or not for long.
func (o *Options) clean(node *corev1.Node) *corev1.Node {
	clean := node.DeepCopy()
	clean.Spec.Unschedulable = false
	clean.Spec.Taints = slices.DeleteFunc(clean.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == TaintToBeDeleted || strings.HasPrefix(taint.Key, "node.kubernetes.io/") ||
			strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/") ||
			o.isStartupTaint(taint.Key) || contains(o.StatusTaints, taint.Key)
	})
	return clean
}

// addNew adds a node of the template, with the pods that DaemonSets would put on it.
func (s *Snapshot) addNew(cluster *scheduling.Cluster, template *corev1.Node, name string) {
	node := template.DeepCopy()
	node.Name = name
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[corev1.LabelHostname] = name
	cluster.Add(node)
	for _, daemon := range s.DaemonSets {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: daemon.Namespace, Name: daemon.Name + "-" + name, Labels: daemon.Spec.Template.Labels,
			},
			Spec: *daemon.Spec.Template.Spec.DeepCopy(),
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations...)
		if cluster.Fits(pod, name) == nil {
			cluster.Place(pod, name)
		}
	}
}

// world is the shoot with its usable nodes, and with the nodes that have been asked for and are on their way.
func (s *Snapshot) world(options *Options) *scheduling.Cluster {
	cluster := scheduling.New(s.Facts)
	pods := s.podsByNode()
	for _, node := range s.Nodes {
		if options.usable(node) {
			cluster.Add(node, pods[node.Name]...)
		}
	}
	for _, group := range s.Groups {
		template := s.template(options, group)
		for i := range s.upcoming(options, group) {
			if template != nil {
				s.addNew(cluster, template, fmt.Sprintf("upcoming-%s-%d", group.Name, i))
			}
		}
	}
	return cluster
}

// upcoming counts the machines of a group that can be expected to become nodes.
func (s *Snapshot) upcoming(options *Options, group *nodegroup.Group) int {
	count := group.Target
	for _, machine := range group.Machines {
		node := s.node(machine.Node)
		overdue := s.Now.Sub(machine.Created) > group.MaxNodeProvisionTime
		if node != nil && (options.usable(node) || leaving(node)) || overdue || machine.Problem != "" {
			count--
		}
	}
	return max(0, count)
}

func (s *Snapshot) node(name string) *corev1.Node {
	for _, node := range s.Nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}
