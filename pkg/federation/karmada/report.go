package karmada

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Bounds of what a binding keeps of a decision, so that a fleet of thousands of clusters doesn't make bindings of hundreds of kilobytes.
const (
	mostReportedCandidates = 200
	mostReportedRejections = 1000
	mostReportedGroups     = 100
	mostReportedTerms      = 64
)

// Report gives what a binding keeps of a decision.
func Report(d core.Decision) *workv1alpha2.PlacementDecision {
	report := &workv1alpha2.PlacementDecision{Strategy: d.Strategy().String()}
	for _, before := range d.Before[:min(len(d.Before), mostReportedTerms)] {
		report.SkippedAffinities = append(report.SkippedAffinities, workv1alpha2.SkippedAffinity{AffinityName: before.Term, Message: before.Failure.Message})
	}
	reportCandidates(report, d.Candidates(), d.OfUnit())
	reportRejections(report, d.Reasons())
	groups := d.Groups()
	for _, g := range groups[:min(len(groups), mostReportedGroups)] {
		report.Groups = append(report.Groups, workv1alpha2.DecisionGroup{Name: g.Name, Score: g.Score, Clusters: int32(g.Clusters), Chosen: g.Chosen})
	}
	return report
}

// reportCandidates keeps the chosen ones and those that were preferred most. The others have a reason.
func reportCandidates(report *workv1alpha2.PlacementDecision, candidates []core.Candidate, unit bool) {
	for i, c := range candidates {
		if i >= mostReportedCandidates && !c.Chosen {
			continue
		}
		item := workv1alpha2.DecisionCandidate{
			ClusterName: c.Cluster, Tier: int32(c.Tier), Score: c.Score, Weight: c.Weight, Replicas: c.Replicas, Chosen: c.Chosen,
		}
		if unit {
			item.Replicas = 0 // The binding tells those of its components.
		}
		if c.Available >= 0 {
			item.Available = new(c.Available)
		}
		report.Candidates = append(report.Candidates, item)
	}
}

func reportRejections(report *workv1alpha2.PlacementDecision, reasons []core.Reason) {
	position := map[string]int{}
	for i, r := range reasons {
		if i >= mostReportedRejections {
			report.Omitted++
			continue
		}
		at, known := position[r.Message]
		if !known {
			at = len(report.Rejected)
			position[r.Message] = at
			report.Rejected = append(report.Rejected, workv1alpha2.DecisionRejection{Reason: r.Code.String(), Message: r.Message})
		}
		report.Rejected[at].Clusters = append(report.Rejected[at].Clusters, r.Cluster)
	}
}

// SameReport tells whether two reports say the same but for the room that clusters have: that changes all the time, and is
// no reason to write a binding.
func SameReport(a, b *workv1alpha2.PlacementDecision) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, right := *a, *b
	left.Candidates, right.Candidates = withoutRoom(a.Candidates), withoutRoom(b.Candidates)
	left.Groups, right.Groups = nil, nil
	return equality.Semantic.DeepEqual(left, right) && slices.EqualFunc(a.Groups, b.Groups, func(a, b workv1alpha2.DecisionGroup) bool {
		return a.Name == b.Name && a.Chosen == b.Chosen
	})
}

// withoutRoom leaves out the room, and the order and the replicas of others that follow from it.
func withoutRoom(candidates []workv1alpha2.DecisionCandidate) []workv1alpha2.DecisionCandidate {
	result := slices.Clone(candidates)
	for i := range result {
		result[i].Available = nil
	}
	slices.SortFunc(result, func(a, b workv1alpha2.DecisionCandidate) int {
		if a.ClusterName < b.ClusterName {
			return -1
		}
		return 1
	})
	return result
}
