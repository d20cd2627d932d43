package interpreter

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Workload is what the scheduler wants to know of an object with replicas.
type Workload struct {
	Replicas int32
	// Pod is what one replica runs.
	Pod corev1.PodSpec
	// Request adds up what one replica needs.
	Request corev1.ResourceList
}

// WorkloadOf gives nil for objects without replicas.
func WorkloadOf(object *unstructured.Unstructured) (*Workload, error) {
	k := kindOf(object)
	if k.pods == nil {
		return nil, nil
	}
	w := &Workload{Replicas: 1}
	if k.replicas != nil {
		replicas, found, err := unstructured.NestedInt64(object.Object, k.replicas...)
		if err != nil {
			return nil, fmt.Errorf("replicas of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if found {
			w.Replicas = int32(replicas)
		}
	}
	raw, _, _ := unstructured.NestedMap(object.Object, append(append([]string{}, k.pods...), "spec")...)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &w.Pod); err != nil {
		return nil, fmt.Errorf("pod template of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	w.Request = core.PodRequest(&w.Pod)
	return w, nil
}

// Revise gives a copy of the object with a cluster's share of the replicas. Objects without such a number stay as
// they are.
func Revise(object *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	result := object.DeepCopy()
	path := kindOf(object).replicas
	if path == nil {
		return result, nil
	}
	if err := unstructured.SetNestedField(result.Object, int64(replicas), path...); err != nil {
		return nil, fmt.Errorf("replicas of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return result, nil
}

// SplitCompletions divides the completions of a Job like its replicas: the result is by cluster. It is nil for other
// objects and for Jobs that don't count completions.
func SplitCompletions(object *unstructured.Unstructured, targets []core.Target, total int32) map[string]int64 {
	if object.GroupVersionKind().GroupKind().String() != "Job.batch" {
		return nil
	}
	completions, found, err := unstructured.NestedInt64(object.Object, "spec", "completions")
	if !found || err != nil || !divided(targets, total) {
		return nil
	}
	shares := make([]core.Share, len(targets))
	for i, t := range targets {
		shares[i] = core.Share{Cluster: t.Cluster, Weight: int64(t.Replicas)}
	}
	core.Apportion(completions, shares, false)
	result := map[string]int64{}
	for _, s := range shares {
		result[s.Cluster] = s.Seats
	}
	return result
}

// divided tells whether the clusters share the replicas, rather than having all of them each.
func divided(targets []core.Target, total int32) bool {
	var sum int32
	for _, t := range targets {
		sum += t.Replicas
	}
	return sum == total
}
