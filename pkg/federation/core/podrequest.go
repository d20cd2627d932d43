package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodRequest is what the scheduler of a member reckons with for a pod: the sum over the containers, or the largest of
// the init containers if that is more, and the overhead.
func PodRequest(pod *corev1.PodSpec) corev1.ResourceList {
	request := corev1.ResourceList{}
	for _, c := range pod.Containers {
		AddResources(request, c.Resources.Requests)
	}
	for _, c := range pod.InitContainers {
		for name, quantity := range c.Resources.Requests {
			if current, found := request[name]; !found || quantity.Cmp(current) > 0 {
				request[name] = quantity.DeepCopy()
			}
		}
	}
	AddResources(request, pod.Overhead)
	return request
}

// AddResources adds to sum.
func AddResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}

// OnePod is one unit of the resource that limits the number of pods.
var OnePod = resource.MustParse("1")
