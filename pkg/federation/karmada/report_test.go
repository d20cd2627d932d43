package karmada

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func fleet(n int, free int64) core.Snapshot {
	var clusters []core.Cluster
	for i := range n {
		c := core.Cluster{
			Name: fmt.Sprintf("m%04d", i), APIs: core.NewAPIs(deployments),
			Room: &core.Room{Free: core.Resources{Pods: free}},
		}
		if i%2 == 1 {
			c.Taints = []corev1.Taint{{Key: "down", Effect: corev1.TaintEffectNoSchedule}}
		}
		clusters = append(clusters, c)
	}
	return core.NewSnapshot(clusters)
}

func TestReport(t *testing.T) {
	b := core.Binding{
		Kind: deployments, Workload: true, Replicas: 6, Placement: core.Placement{Strategy: core.Aggregated},
	}
	got := Report(core.Decide(fleet(4, 10), b))
	if want := workv1alpha2.Ranking("m0000 chosen replicas=6 available=10\nm0002 available=10\n"); got.Strategy !=
		"Aggregated" || got.Ranking != want {
		t.Errorf("got %+v", got)
	}
	if len(got.Rejections) != 2 || got.Rejections[0].Reason != "TaintNotTolerated" ||
		got.Rejections[0].Clusters != "m0001 m0003" || got.Rejections[1].Reason != "NoReplicaAllotted" {
		t.Errorf("got %+v", got.Rejections)
	}
	later := Report(core.Decide(fleet(4, 9), b))
	if !SameReport(got, later) || SameReport(got, nil) || SameReport(got, Report(core.Decide(fleet(6, 10), b))) {
		t.Error("room alone makes no other report, other clusters do")
	}
}

func TestReportsAreBounded(t *testing.T) {
	got := Report(core.Decide(fleet(5000, 10),
		core.Binding{
			Kind: deployments, Workload: true, Replicas: 5, Placement: core.Placement{Strategy: core.Aggregated},
		}))
	var named int
	for _, r := range got.Rejections {
		named += len(strings.Fields(r.Clusters))
	}
	ranked, err := got.Ranking.Clusters()
	if err != nil || len(ranked) > mostReportedCandidates || named > mostReportedRejections ||
		int(got.Omitted)+named < 5000-len(ranked) {
		t.Errorf("%d candidates (%v), %d rejected, %d omitted", len(ranked), err, named, got.Omitted)
	}
}
