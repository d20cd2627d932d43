package trellisctl

import (
	"bytes"
	"strings"
	"testing"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Fleets drop what an earlier version wrote about each cluster when they read it.
func TestExplainOfDecisionsThatTellOfNoCluster(t *testing.T) {
	chosen := []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 2}}
	tests := map[string]struct {
		clusters []workv1alpha2.TargetCluster
		decision workv1alpha2.PlacementDecision
		want     string
		table    bool
	}{
		"by an earlier version": {chosen, workv1alpha2.PlacementDecision{Strategy: "Aggregated"}, "An earlier version of the fleet decided", false},
		"without clusters":      {nil, workv1alpha2.PlacementDecision{Strategy: "Aggregated"}, "the fleet had none, or an earlier version", false},
		"with a ranking": {chosen, workv1alpha2.PlacementDecision{
			Ranking: workv1alpha2.NewRanking([]workv1alpha2.RankedCluster{{Name: "member1", Chosen: true}}),
		}, "member1", true},
		"with rejections": {nil, workv1alpha2.PlacementDecision{
			Rejections: []workv1alpha2.DecisionRejection{{Reason: "AffinityMismatch", Message: "no", Clusters: "member1"}},
		}, "AffinityMismatch: no", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Clusters, b.Status.Decision = tc.clusters, &tc.decision
			var out bytes.Buffer
			if err := explainClusters(&out, b); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if !strings.Contains(got, tc.want) || strings.Contains(got, "CLUSTER") != tc.table || strings.Contains(got, "WorkloadRebalancer") == tc.table {
				t.Errorf("got\n%s\nwant %q, with a table: %v", got, tc.want, tc.table)
			}
			for line := range strings.Lines(got) {
				if !tc.table && len(line) > 81 {
					t.Errorf("%q has more than 80 columns", line)
				}
			}
		})
	}
}
