package interpreter

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// workloadOf gives nil for objects without replicas.
func workloadOf(object *unstructured.Unstructured) (*Workload, error) {
	k := kindOf(object)
	if k.workload != nil {
		return k.workload(object)
	}
	if k.replicas == nil && !k.single {
		return nil, nil
	}
	w := &Workload{Replicas: 1}
	if k.replicas != nil {
		replicas, found, err := unstructured.NestedInt64(object.Object, k.replicas...)
		if err != nil {
			return nil, fmt.Errorf("replicas of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if found {
			if w.Replicas, err = count(replicas); err != nil {
				return nil, fmt.Errorf("replicas of %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	pod, err := k.podSpec(object)
	if err != nil {
		return nil, err
	}
	if pod == nil {
		pod = &corev1.PodSpec{}
	}
	w.Requirements = Requirements(pod, object.GetNamespace())
	return w, nil
}

// Requirements are what a pod of a namespace needs of a node.
func Requirements(pod *corev1.PodSpec, namespace string) *workv1alpha2.ReplicaRequirements {
	result := &workv1alpha2.ReplicaRequirements{Namespace: namespace, PriorityClassName: pod.PriorityClassName}
	if request := core.PodRequest(pod); len(request) > 0 {
		result.ResourceRequest = request
	}
	claim := workv1alpha2.NodeClaim{NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if !apiequality.Semantic.DeepEqual(claim, workv1alpha2.NodeClaim{}) {
		result.NodeClaim = &claim
	}
	return result
}

func revise(object *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	result := object.DeepCopy()
	k := kindOf(object)
	if k.revise != nil {
		return result, k.revise(result, replicas)
	}
	path := k.replicas
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
