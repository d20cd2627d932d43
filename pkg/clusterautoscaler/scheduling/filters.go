package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

var one = resource.MustParse("1")

// untainted refuses nodes with taints that the pod does not tolerate.
func untainted(pod *corev1.Pod, node *Node) error {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append([]corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}},
			taints...)
	}
	return tolerated(pod, taints)
}

func tolerated(pod *corev1.Pod, taints []corev1.Taint) error {
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, pod.Spec.Tolerations,
		func(taint *corev1.Taint) bool {
			return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
		}, false)
	if found {
		return fmt.Errorf("the taint %s is not tolerated", taint.ToString())
	}
	return nil
}

// selected refuses nodes that the pod's node selector and node affinity do not take.
func selected(pod *corev1.Pod, node *Node) error {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node.Node)
	if err != nil {
		return fmt.Errorf("node affinity: %w", err)
	}
	if !matches {
		return fmt.Errorf("the node selector or node affinity does not match")
	}
	return nil
}

// hasRoom refuses nodes that have less than the pod requests.
func hasRoom(pod *corev1.Pod, node *Node) error {
	for name, wanted := range Requests(pod) {
		if wanted.IsZero() {
			continue
		}
		free := node.Status.Allocatable[name].DeepCopy()
		free.Sub(node.requested[name])
		if free.Cmp(wanted) < 0 {
			return fmt.Errorf("%s of %s is wanted, %s is free", wanted.String(), name, free.String())
		}
	}
	return nil
}

// hasPorts refuses nodes on which a port of the host is taken.
func hasPorts(pod *corev1.Pod, node *Node) error {
	for _, wanted := range hostPorts(pod) {
		for _, other := range node.Pods {
			for _, taken := range hostPorts(other) {
				if wanted.HostPort == taken.HostPort && protocol(wanted) == protocol(taken) &&
					sameHost(wanted.HostIP, taken.HostIP) {
					return fmt.Errorf("port %d of the node is taken", wanted.HostPort)
				}
			}
		}
	}
	return nil
}

// hostPorts are those of containers, and of init containers that go on running.
func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	containers := pod.Spec.Containers
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers[:len(containers):len(containers)], container)
		}
	}
	var ports []corev1.ContainerPort
	for _, container := range containers {
		for _, port := range container.Ports {
			if port.HostPort != 0 {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

func protocol(port corev1.ContainerPort) corev1.Protocol {
	if port.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return port.Protocol
}

// sameHost says whether two host addresses overlap; none means all.
func sameHost(a, b string) bool {
	all := func(address string) bool { return address == "" || address == "0.0.0.0" || address == "::" }
	return a == b || all(a) || all(b)
}

// reachesVolumes refuses nodes from which a bound volume of the pod cannot be reached.
func (c *Cluster) reachesVolumes(pod *corev1.Pod, node *Node) error {
	for _, volume := range pod.Spec.Volumes {
		name := claimOf(pod, volume)
		if name == "" {
			continue
		}
		bound := c.facts.Claims[pod.Namespace+"/"+name]
		if bound == nil {
			continue // provisioned where the pod is scheduled
		}
		if err := volumehelpers.CheckNodeAffinity(bound, node.Labels); err != nil {
			return fmt.Errorf("volume %s cannot be reached from the node", bound.Name)
		}
	}
	return nil
}

func claimOf(pod *corev1.Pod, volume corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}
