package karmada

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// flink has a job manager and task managers, for one cluster with room for all of them.
func flink(t *testing.T) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "flink.apache.org/v1beta1", Kind: "FlinkDeployment", Name: "f",
	}
	cpu := func(amount string) *workv1alpha2.ComponentReplicaRequirements {
		return &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse(amount)},
		}
	}
	b.Spec.Components = []workv1alpha2.Component{
		{Name: "jobmanager", Replicas: 1, ReplicaRequirements: cpu("1")},
		{Name: "taskmanager", Replicas: 2, ReplicaRequirements: cpu("1500m")},
	}
	b.Spec.Placement = &policyv1alpha1.Placement{
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
		},
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{
			{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: new(1), MaxGroups: new(1)},
		},
	}
	return b
}

func TestComponentsForOneClusterAreAUnit(t *testing.T) {
	b := flink(t)
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	got, err := Binding(&b.Spec, &b.Status)
	if err != nil || !got.Workload || got.Replicas != 1 || got.Request.CPU != 4000 || got.Request.Pods != 3 ||
		len(got.Components) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(got.Previous) != 1 || got.Previous[0] != (core.Target{Cluster: "m1", Replicas: 1}) {
		t.Errorf("previous: %+v", got.Previous)
	}
	b.Spec.Placement.SpreadConstraints[0].MaxGroups = new(2)
	if got, err := Binding(&b.Spec, &b.Status); err != nil || got.Workload || got.Components != nil {
		t.Errorf("for two clusters: %+v, %v", got, err)
	}
}

func TestAUnitIsSettledUntilItsComponentsChange(t *testing.T) {
	b := flink(t)
	b.Spec.Clusters = Targets(&b.Spec, []core.Target{{Cluster: "m1", Replicas: 1}})
	want := []workv1alpha2.TargetCluster{
		{
			Name: "m1", Components: []workv1alpha2.TargetComponent{
				{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 2},
			},
		},
	}
	if !apiequality.Semantic.DeepEqual(b.Spec.Clusters, want) {
		t.Fatalf("got %+v", b.Spec.Clusters)
	}
	text, err := json.Marshal(b.Spec.Placement)
	if err != nil {
		t.Fatal(err)
	}
	bindings.SetAnnotation(b, policyv1alpha1.AppliedPlacementAnnotation, string(text))
	b.Status.LastScheduledTime = new(metav1.Now())
	settled := func() bool {
		translated, err := Translate(b)
		return err == nil && Settled(b, translated)
	}
	if !settled() {
		t.Error("nothing changed")
	}
	b.Spec.Components[1].Replicas = 3
	if settled() {
		t.Error("it has a component more")
	}
}
