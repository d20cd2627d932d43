package failover_test

import (
	"testing"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
)

// An application leaves a cluster only for another one.
func TestElsewhere(t *testing.T) {
	single := &policyv1alpha1.Placement{
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{
			{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MaxGroups: new(1), MinGroups: new(1)},
		},
	}
	for _, test := range []struct {
		name      string
		clusters  core.Snapshot
		placement *policyv1alpha1.Placement
		now, left []string
		want      bool
	}{
		{"another one is free", snapshot("m1", "m2"), single, []string{"m1"}, nil, true},
		{"the other one was left before", snapshot("m1", "m2"), single, []string{"m1"}, []string{"m2"}, false},
		{"there is no other", snapshot("m1"), single, []string{"m1"}, nil, false},
		{"another has it already", snapshot("m1", "m2"), &policyv1alpha1.Placement{}, []string{"m1", "m2"}, nil, true},
		{"it is not there", snapshot("m1", "m2"), single, []string{"m2"}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Replicas: 2,
				Placement: test.placement, Clusters: targets(test.now...),
			}
			for _, name := range test.left {
				spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks,
					workv1alpha2.GracefulEvictionTask{FromCluster: name})
			}
			got, err := failover.Elsewhere(test.clusters, spec, &workv1alpha2.ResourceBindingStatus{},
				failover.Eviction{Cluster: "m1"}, second(0))
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
			if len(spec.Clusters) != len(test.now) {
				t.Errorf("the binding was changed: %v", spec.Clusters)
			}
		})
	}
}
