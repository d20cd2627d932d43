package controllers

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func groupMember(namespace, name string, groups workv1alpha2.WorkloadAffinityGroups,
	clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = namespace, name
	b.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name,
	}
	one := 1
	b.Spec.Placement = &policyv1alpha1.Placement{
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{
			{SpreadByField: "cluster", MaxGroups: &one, MinGroups: &one},
		},
	}
	b.Spec.WorkloadAffinityGroups = &groups
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	return b
}

// TestNeighbours: members of a group are decided on with regard to those before, also if the cache does not show them
// yet.
func TestNeighbours(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	near, apart := workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=shop"},
		workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "tier=db"}
	bindings := []*workv1alpha2.ResourceBinding{
		groupMember("shop", "a", near, "m2"), groupMember("shop", "b", near), groupMember("other", "c", near),
		groupMember("shop", "d", apart), groupMember("shop", "e", apart), groupMember("shop", "f", apart),
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&workv1alpha2.ResourceBinding{}, groupIndex,
		indexGroups).WithIndex(&workv1alpha2.ClusterResourceBinding{}, groupIndex, indexGroups)
	for _, b := range bindings {
		builder = builder.WithObjects(b)
	}
	s := &scheduling{
		client: builder.Build(), now: func() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) },
	}
	chosen := func(b *workv1alpha2.ResourceBinding) string {
		t.Helper()
		decision, err := s.decideAmong(t.Context(), b, func(near, apart []string) (outcome, error) {
			return decideBy(b, func(translated core.Binding) (core.Decision, error) {
				translated.Near, translated.Apart = near, apart
				return core.Decide(fleetOf("m1", "m2"), translated), nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(decision.clusters) == 0 {
			return decision.reason
		}
		return decision.clusters[0].Name
	}
	if got := chosen(bindings[1]); got != "m2" {
		t.Errorf("b goes to %s, not to a's cluster", got)
	}
	if got := chosen(bindings[2]); got != "m1" {
		t.Errorf("c is of another namespace but goes to %s", got)
	}
	got := []string{chosen(bindings[3]), chosen(bindings[4]), chosen(bindings[5])}
	if !slices.Equal(got, []string{"m1", "m2", workv1alpha2.ReasonNoClusterFit}) {
		t.Errorf("d, e and f go to %v", got)
	}
}
