package rollout

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func TestProblemsOfWaves(t *testing.T) {
	fleet := core.NewSnapshot([]core.Cluster{
		{Name: "eu-1", Region: "eu"}, {Name: "eu-2", Region: "eu"}, {Name: "us-1", Region: "us"},
	})
	named := func(name string, clusters ...string) policyv1alpha1.RolloutWave {
		return policyv1alpha1.RolloutWave{
			Name: name, ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
		}
	}
	inEurope := func(name string) policyv1alpha1.RolloutWave {
		return policyv1alpha1.RolloutWave{Name: name,
			ClusterAffinity: &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
				MatchExpressions: []policyv1alpha1.FieldSelectorRequirement{
					{Key: "region", Operator: "In", Values: []string{"eu"}},
				},
			}}}
	}
	atMost := func(share string, w policyv1alpha1.RolloutWave) policyv1alpha1.RolloutWave {
		w.MaxClusters = new(intstr.FromString(share))
		return w
	}
	rest := policyv1alpha1.RolloutWave{Name: "rest"}
	tests := map[string]struct {
		waves []policyv1alpha1.RolloutWave
		want  []string
	}{
		"none": {nil, nil},
		"a canary of a region": {
			[]policyv1alpha1.RolloutWave{named("canary", "eu-1"), inEurope("europe"), rest}, nil,
		},
		"a canary that is the region": {
			[]policyv1alpha1.RolloutWave{named("canary", "eu-1", "eu-2"), inEurope("europe")}, nil,
		},
		"half of them, then the others": {
			[]policyv1alpha1.RolloutWave{atMost("50%", named("half", "eu-1", "eu-2")), named("others", "eu-1", "eu-2")},
			nil,
		},
		"a share, then all": {[]policyv1alpha1.RolloutWave{atMost("10%", rest), rest}, nil},
		"clusters that aren't there": {[]policyv1alpha1.RolloutWave{
			named("canary", "eu-9", "eu-1"), named("later", "us-9"),
		}, []string{
			"spec.rollout.waves[0].clusterAffinity.clusterNames[0]: the fleet has no cluster of this name; it has " +
				"eu-1, eu-2, us-1",
			"spec.rollout.waves[1].clusterAffinity.clusterNames[0]: the fleet has no cluster of this name; it has " +
				"eu-1, eu-2, us-1",
		}},
		"named again": {[]policyv1alpha1.RolloutWave{
			named("canary", "eu-1"), named("second", "us-1", "eu-1"), named("third", "eu-1"),
		}, []string{
			"spec.rollout.waves[1].clusterAffinity.clusterNames[1]: wave canary before it takes cluster eu-1; it " +
				"gets changes with that one",
			"spec.rollout.waves[2].clusterAffinity.clusterNames[0]: wave canary before it takes cluster eu-1; it " +
				"gets changes with that one",
		}},
		"named after its region": {[]policyv1alpha1.RolloutWave{inEurope("europe"), named("second", "us-1", "eu-1")},
			[]string{
				"spec.rollout.waves[1].clusterAffinity.clusterNames[1]: wave europe before it takes cluster eu-1; it " +
					"gets changes with that one",
			}},
		"after all": {[]policyv1alpha1.RolloutWave{named("canary", "eu-1"), rest, named("late", "us-1")}, []string{
			"spec.rollout.waves[2]: no cluster is left for it: wave rest before it takes all",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Problems(&policyv1alpha1.RolloutStrategy{Waves: tc.waves}, fleet); !slices.Equal(got, tc.want) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
	if got := Problems(nil, fleet); got != nil {
		t.Errorf("without a rollout: got %q", got)
	}
}
