package interpreter

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// part is one of several pod templates of an object.
type part struct {
	name     string
	replicas int64
	template fields
}

func sortedKeys(f fields) []string { return slices.Sorted(maps.Keys(f)) }

func orNumbered(name, prefix string, index int) string {
	if name != "" {
		return name
	}
	return prefix + "-" + strconv.Itoa(index)
}

// decodePod reads the specification of a pod.
func decodePod(raw fields) (*corev1.PodSpec, error) {
	pod := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, pod); err != nil {
		return nil, fmt.Errorf("pod template: %w", err)
	}
	return pod, nil
}

// componentRequirements are those of a pod, in the form of a component.
func componentRequirements(pod *corev1.PodSpec) *workv1alpha2.ComponentReplicaRequirements {
	r := Requirements(pod, "")
	return &workv1alpha2.ComponentReplicaRequirements{
		NodeClaim: r.NodeClaim, ResourceRequest: r.ResourceRequest, PriorityClassName: r.PriorityClassName,
	}
}

func componentsOf(object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	k := kindOf(object)
	if k.components != nil {
		return k.components(object)
	}
	if k.parts == nil || k.partsAreOne {
		return nil, nil
	}
	var result []workv1alpha2.Component
	for _, p := range k.parts(object) {
		pod, err := decodePod(p.template.part("spec"))
		if err != nil {
			return nil, fmt.Errorf("%s of %s %s: %w", p.name, object.GetKind(), object.GetName(), err)
		}
		replicas, err := count(p.replicas)
		if err != nil {
			return nil, fmt.Errorf("%s of %s %s: %w", p.name, object.GetKind(), object.GetName(), err)
		}
		result = append(result, workv1alpha2.Component{
			Name: shortName(p.name), Replicas: replicas, ReplicaRequirements: componentRequirements(pod),
		})
	}
	return result, nil
}

// shortName cuts a name to what a component may have.
func shortName(name string) string { return name[:min(len(name), 32)] }

var errCount = errors.New("not a number of replicas")

// count checks a number of replicas.
func count(n int64) (int32, error) {
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%w: %d", errCount, n)
	}
	return int32(n), nil
}

// rayParts are the head and the groups of workers of the RayCluster that is described at a path.
func rayParts(path ...string) func(object *unstructured.Unstructured) []part {
	return func(object *unstructured.Unstructured) []part {
		cluster := fields(object.Object).part(path...)
		var result []part
		if template := cluster.part("headGroupSpec", "template"); template != nil {
			result = append(result, part{name: "ray-head", replicas: 1, template: template})
		}
		for i, group := range cluster.list("workerGroupSpecs") {
			result = append(result, part{
				name: orNumbered(group.text("groupName"), "worker", i+1), replicas: group.number("replicas"),
				template: group.part("template"),
			})
		}
		return result
	}
}

// rayServiceWorkload counts head and workers alike; one replica needs what the largest of them does.
func rayServiceWorkload(object *unstructured.Unstructured) (*Workload, error) {
	var total int64
	var head *corev1.PodSpec
	request := corev1.ResourceList{}
	for _, p := range rayParts("spec", "rayClusterConfig")(object) {
		total += max(p.replicas, 0)
		pod, err := decodePod(p.template.part("spec"))
		if err != nil {
			return nil, fmt.Errorf("%s of RayService %s: %w", p.name, object.GetName(), err)
		}
		if head == nil {
			head = pod
		}
		for name, quantity := range core.PodRequest(pod) {
			if largest, found := request[name]; !found || quantity.Cmp(largest) > 0 {
				request[name] = quantity
			}
		}
	}
	if head == nil {
		return nil, nil
	}
	replicas, err := count(total)
	if err != nil {
		return nil, fmt.Errorf("RayService %s: %w", object.GetName(), err)
	}
	requirements := Requirements(head, object.GetNamespace())
	if len(request) > 0 {
		requirements.ResourceRequest = request
	}
	return &Workload{Replicas: replicas, Requirements: requirements}, nil
}

// rayServiceRevise keeps the head, and divides the rest among the groups of workers as they are now.
func rayServiceRevise(object *unstructured.Unstructured, replicas int32) error {
	groups := fields(object.Object).part("spec", "rayClusterConfig").list("workerGroupSpecs")
	shares := make([]core.Share, len(groups))
	var total int64
	for i, group := range groups {
		shares[i] = core.Share{Cluster: fmt.Sprintf("%06d", i), Weight: max(group.number("replicas"), 0)}
		total += shares[i].Weight
	}
	if total == 0 {
		for i := range shares {
			shares[i].Weight = 1
		}
	}
	core.Apportion(max(int64(replicas)-1, 0), shares, false)
	for _, share := range shares {
		index, err := strconv.Atoi(share.Cluster)
		if err != nil {
			return err
		}
		groups[index]["replicas"] = share.Seats
	}
	return nil
}
