// Package quota adds up what placed objects request and holds it against the limits of FederatedResourceQuotas.
// Reservations remembers decisions that are being written, so that several at a time exceed no limit together.
package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Usage is what an object requests in the given clusters: the requests of all replicas, and their number as pods.
func Usage(spec *workv1alpha2.ResourceBindingSpec, clusters []workv1alpha2.TargetCluster) corev1.ResourceList {
	used := corev1.ResourceList{}
	for _, c := range clusters {
		if len(spec.Components) == 0 {
			if spec.ReplicaRequirements != nil {
				add(used, spec.ReplicaRequirements.ResourceRequest, c.Replicas)
			}
			add(used, onePod, c.Replicas)
			continue
		}
		for _, component := range spec.Components {
			replicas := replicasOf(component, c)
			if component.ReplicaRequirements != nil {
				add(used, component.ReplicaRequirements.ResourceRequest, replicas)
			}
			add(used, onePod, replicas)
		}
	}
	return used
}

var onePod = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}

// replicasOf a component in a cluster: what was decided, or all.
func replicasOf(component workv1alpha2.Component, cluster workv1alpha2.TargetCluster) int32 {
	for _, c := range cluster.Components {
		if c.Name == component.Name {
			return c.Replicas
		}
	}
	return component.Replicas
}

func add(sum, request corev1.ResourceList, times int32) {
	if times <= 0 {
		return
	}
	for name, quantity := range request {
		total := sum[name]
		quantity = quantity.DeepCopy()
		quantity.Mul(int64(times))
		total.Add(quantity)
		sum[name] = total
	}
}

// Add gives the sum of two lists.
func Add(a, b corev1.ResourceList) corev1.ResourceList {
	sum := a.DeepCopy()
	if sum == nil {
		sum = corev1.ResourceList{}
	}
	add(sum, b, 1)
	return sum
}

// Requested names what workloads request of a resource that quotas limit: cpu for requests.cpu. It is false for
// resources that workloads don't request, such as limits.cpu, services or count/deployments.apps.
func Requested(limited corev1.ResourceName) (corev1.ResourceName, bool) {
	name := string(limited)
	if strings.HasPrefix(name, "limits.") || strings.HasPrefix(name, "count/") ||
		strings.Contains(name, ".storageclass.storage.k8s.io/") ||
		slices.Contains(counted, limited) {
		return "", false
	}
	return corev1.ResourceName(strings.TrimPrefix(name, corev1.DefaultResourceRequestsPrefix)), true
}

// counted resources are numbers of objects, or the sizes of some.
var counted = []corev1.ResourceName{
	corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceQuotas, corev1.ResourceSecrets,
	corev1.ResourceConfigMaps,
	corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	corev1.ResourceRequestsStorage,
}
