package main

import (
	"encoding/json"
	"fmt"

	karmadacluster "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	karmadawork "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// convert goes through JSON: both sides read the same API.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// snapshotOf gives the peer's clusters as a snapshot.
func snapshotOf(clusters []*karmadacluster.Cluster) (core.Snapshot, error) {
	var translator karmada.Translator
	translated := make([]core.Cluster, len(clusters))
	for i, from := range clusters {
		var c clusterv1alpha1.Cluster
		if err := convert(from, &c); err != nil {
			return core.Snapshot{}, fmt.Errorf("cluster %s: %w", from.Name, err)
		}
		translated[i] = translator.Cluster(&c)
	}
	return core.NewSnapshot(translated), nil
}

// bindingOf gives the peer's binding in the types of this project.
func bindingOf(spec *karmadawork.ResourceBindingSpec,
	status *karmadawork.ResourceBindingStatus) (*workv1alpha2.ResourceBindingSpec, *workv1alpha2.ResourceBindingStatus,
	error) {
	s, st := &workv1alpha2.ResourceBindingSpec{}, &workv1alpha2.ResourceBindingStatus{}
	if err := convert(spec, s); err != nil {
		return nil, nil, fmt.Errorf("binding: %w", err)
	}
	if err := convert(status, st); err != nil {
		return nil, nil, fmt.Errorf("binding status: %w", err)
	}
	return s, st, nil
}

func ourOutcome(d core.Decision) outcome {
	result := outcome{term: d.Term, failure: placed, targets: map[string]int32{}, chosen: map[string]bool{}}
	if d.Failure != nil {
		result.message = d.Failure.Message
		result.failure = noFit
		if d.Failure.Kind == core.NoRoom {
			result.failure = noRoom
		}
		return result
	}
	for _, t := range d.Targets {
		result.targets[t.Cluster], result.chosen[t.Cluster] = t.Replicas, true
	}
	for _, r := range d.Reasons() {
		if r.Code == core.NoReplicaAllotted || r.Code == core.NoWeight {
			result.chosen[r.Cluster] = true
		}
	}
	return result
}
