package karmada

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func fleet(n int, free int64) core.Snapshot {
	var clusters []core.Cluster
	for i := range n {
		c := core.Cluster{Name: fmt.Sprintf("m%04d", i), APIs: core.NewAPIs(deployments), Room: &core.Room{Free: core.Resources{Pods: free}}}
		if i%2 == 1 {
			c.Taints = []corev1.Taint{{Key: "down", Effect: corev1.TaintEffectNoSchedule}}
		}
		clusters = append(clusters, c)
	}
	return core.NewSnapshot(clusters)
}

func TestReport(t *testing.T) {
	b := core.Binding{Kind: deployments, Workload: true, Replicas: 6, Placement: core.Placement{Strategy: core.Aggregated}}
	got := Report(core.Decide(fleet(4, 10), b))
	if got.Strategy != "Aggregated" || len(got.Candidates) != 2 || !got.Candidates[0].Chosen || got.Candidates[0].Replicas != 6 || *got.Candidates[0].Available != 10 {
		t.Errorf("got %+v", got)
	}
	if len(got.Rejected) != 2 || got.Rejected[0].Reason != "TaintNotTolerated" || len(got.Rejected[0].Clusters) != 2 || got.Rejected[1].Reason != "NoReplicaAllotted" {
		t.Errorf("got %+v", got.Rejected)
	}
	later := Report(core.Decide(fleet(4, 9), b))
	if !SameReport(got, later) || SameReport(got, nil) || SameReport(got, Report(core.Decide(fleet(6, 10), b))) {
		t.Error("room alone makes no other report, other clusters do")
	}
}

func TestReportsAreBounded(t *testing.T) {
	got := Report(core.Decide(fleet(5000, 10), core.Binding{Kind: deployments, Workload: true, Replicas: 5, Placement: core.Placement{Strategy: core.Aggregated}}))
	var named int
	for _, r := range got.Rejected {
		named += len(r.Clusters)
	}
	if len(got.Candidates) > mostReportedCandidates || named > mostReportedRejections || got.Omitted == 0 {
		t.Errorf("%d candidates, %d rejected, %d omitted", len(got.Candidates), named, got.Omitted)
	}
}
