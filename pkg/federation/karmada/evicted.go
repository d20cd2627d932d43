package karmada

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// evicted clusters are being left, or were left because of a failure and have not been healthy for long enough since.
// What a return leaves behind may be chosen again at any time, and so may what has a part of its replicas again.
func evicted(spec *workv1alpha2.ResourceBindingSpec) []string {
	var clusters []string
	for _, task := range spec.GracefulEvictionTasks {
		if task.Producer != workv1alpha2.EvictionProducerFailBack {
			clusters = append(clusters, task.FromCluster)
		}
	}
	if before := spec.BeforeFailover; before != nil && before.PlacementHash == PlacementHash(spec.Placement) {
		for _, failed := range before.Failed {
			if !isTarget(spec, failed.Name) {
				clusters = append(clusters, failed.Name)
			}
		}
	}
	return clusters
}

// Returning tells whether an object is on its way back to clusters that failed: a part of its replicas is there again,
// and the rest follows step by step.
func Returning(spec *workv1alpha2.ResourceBindingSpec) bool {
	before := spec.BeforeFailover
	return before != nil && slices.ContainsFunc(before.Failed, func(failed workv1alpha2.FailedCluster) bool {
		return isTarget(spec, failed.Name)
	}) && before.PlacementHash == PlacementHash(spec.Placement)
}

func isTarget(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster })
}

// PlacementHash tells placements apart.
func PlacementHash(placement *policyv1alpha1.Placement) string {
	// A placement came as JSON.
	text, _ := json.Marshal(placement)
	h := fnv.New64a()
	h.Write(text)
	return fmt.Sprintf("%016x", h.Sum64())
}
