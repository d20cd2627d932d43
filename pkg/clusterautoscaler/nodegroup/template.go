package nodegroup

import (
	"maps"
	"slices"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceGPU is the resource of GPUs on nodes.
const ResourceGPU corev1.ResourceName = "nvidia.com/gpu"

// maxPods is how many pods kubelets take unless they are told otherwise.
var maxPods = resource.MustParse("110")

// reserved is what a node keeps for itself: an estimate, used until a real node of the group can be looked at.
var reserved = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("80m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
}

// template is what a node of the group looks like by its machine class; nil if the class does not say.
func template(deployment *machinev1alpha1.MachineDeployment, class *machinev1alpha1.MachineClass) *corev1.Node {
	described := class.NodeTemplate
	if described == nil {
		return nil
	}
	nodeSpec := deployment.Spec.Template.Spec.NodeTemplateSpec
	capacity := described.Capacity.DeepCopy()
	maps.Copy(capacity, described.VirtualCapacity)
	if gpu, found := capacity["gpu"]; found {
		delete(capacity, "gpu")
		if !gpu.IsZero() {
			capacity[ResourceGPU] = gpu
		}
	}
	if _, found := capacity[corev1.ResourcePods]; !found {
		capacity[corev1.ResourcePods] = maxPods
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: maps.Clone(nodeSpec.Annotations)},
	}
	maps.Copy(node.Labels, locationLabels(described))
	maps.Copy(node.Labels, nodeSpec.Labels)
	node.Spec.Taints = slices.Clone(nodeSpec.Spec.Taints)
	node.Status.Capacity, node.Status.Allocatable = capacity, allocatable(capacity)
	return node
}

func locationLabels(described *machinev1alpha1.NodeTemplate) map[string]string {
	architecture := "amd64"
	if described.Architecture != nil {
		architecture = *described.Architecture
	}
	return map[string]string{
		corev1.LabelArchStable: architecture, corev1.LabelOSStable: "linux",
		corev1.LabelInstanceTypeStable: described.InstanceType,
		corev1.LabelTopologyRegion:     described.Region, corev1.LabelTopologyZone: described.Zone,
	}
}

// allocatable is the capacity without what nodes keep; of small ones at most a quarter is taken to be kept.
func allocatable(capacity corev1.ResourceList) corev1.ResourceList {
	result := capacity.DeepCopy()
	for name, kept := range reserved {
		total, found := result[name]
		if !found {
			continue
		}
		quarter := resource.NewMilliQuantity(total.MilliValue()/4, total.Format)
		if kept.Cmp(*quarter) > 0 {
			kept = *quarter
		}
		total.Sub(kept)
		result[name] = total
	}
	return result
}
