package karmada

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Bounds of what a binding keeps of a decision, so that a fleet of thousands of clusters doesn't make bindings of
// hundreds of kilobytes.
const (
	mostReportedCandidates = 200
	mostReportedRejections = 1000
	mostReportedGroups     = 100
	mostReportedTerms      = 64
	// mostReported bytes go into an annotation: all of an object's have 256 KiB.
	mostReported = 96 << 10
)

// Report gives what a binding keeps of a decision.
func Report(d core.Decision) *workv1alpha2.PlacementDecision {
	report := &workv1alpha2.PlacementDecision{Strategy: d.Strategy().String()}
	for _, before := range d.Before[:min(len(d.Before), mostReportedTerms)] {
		report.SkippedAffinities = append(report.SkippedAffinities,
			workv1alpha2.SkippedAffinity{AffinityName: before.Term, Message: before.Failure.Message})
	}
	reportCandidates(report, d.Candidates(), d.OfUnit())
	reportRejections(report, d.Reasons())
	groups := d.Groups()
	for _, g := range groups[:min(len(groups), mostReportedGroups)] {
		report.Groups = append(report.Groups,
			workv1alpha2.DecisionGroup{Name: g.Name, Score: g.Score, Clusters: int32(g.Clusters), Chosen: g.Chosen})
	}
	boundReport(report)
	return report
}

// boundReport leaves out the ranking, which tells least that the binding does not, and then the other lists, until the
// rest may be kept.
func boundReport(report *workv1alpha2.PlacementDecision) {
	if reportSize(report) > mostReported {
		report.Omitted += int32(strings.Count(string(report.Ranking), "\n"))
		report.Ranking = ""
	}
	if reportSize(report) > mostReported {
		for _, r := range report.Rejections {
			report.Omitted += int32(len(strings.Fields(r.Clusters)))
		}
		report.Rejections = nil
	}
	if reportSize(report) > mostReported {
		report.SkippedAffinities, report.Groups = nil, nil
	}
}

// reportSize is about that of the report as text.
func reportSize(report *workv1alpha2.PlacementDecision) int {
	size := len(report.Ranking)
	for _, r := range report.Rejections {
		size += len(r.Reason) + len(r.Message) + len(r.Clusters)
	}
	for _, s := range report.SkippedAffinities {
		size += len(s.AffinityName) + len(s.Message)
	}
	for _, g := range report.Groups {
		size += len(g.Name)
	}
	return size
}

// reportCandidates keeps the chosen ones and those that were preferred most. The others have a reason.
func reportCandidates(report *workv1alpha2.PlacementDecision, candidates []core.Candidate, unit bool) {
	var ranked []workv1alpha2.RankedCluster
	for i, c := range candidates {
		if i >= mostReportedCandidates && !c.Chosen {
			continue
		}
		item := workv1alpha2.RankedCluster{
			Name: c.Cluster, Tier: int32(c.Tier), Score: c.Score, Weight: c.Weight, Replicas: c.Replicas,
			Chosen: c.Chosen,
		}
		if unit {
			item.Replicas = 0 // The binding tells those of its components.
		}
		if c.Available >= 0 {
			item.Available = new(c.Available)
		}
		ranked = append(ranked, item)
	}
	report.Ranking = workv1alpha2.NewRanking(ranked)
}

func reportRejections(report *workv1alpha2.PlacementDecision, reasons []core.Reason) {
	report.Omitted = int32(max(0, len(reasons)-mostReportedRejections))
	clusters := map[string][]string{}
	for _, r := range reasons[:min(len(reasons), mostReportedRejections)] {
		if clusters[r.Message] == nil {
			report.Rejections = append(report.Rejections,
				workv1alpha2.DecisionRejection{Reason: r.Code.String(), Message: r.Message})
		}
		clusters[r.Message] = append(clusters[r.Message], r.Cluster)
	}
	for i := range report.Rejections {
		report.Rejections[i].Clusters = strings.Join(clusters[report.Rejections[i].Message], " ")
	}
}

// SameReport tells whether two reports say the same but for the room that clusters have: that changes all the time, and
// is no reason to write a binding.
func SameReport(a, b *workv1alpha2.PlacementDecision) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, right := *a, *b
	left.Ranking, right.Ranking, left.Groups, right.Groups = "", "", nil, nil
	return apiequality.Semantic.DeepEqual(left, right) && sameRanking(a.Ranking, b.Ranking) &&
		slices.EqualFunc(a.Groups, b.Groups,
			func(a, b workv1alpha2.DecisionGroup) bool { return a.Name == b.Name && a.Chosen == b.Chosen })
}

// sameRanking leaves out the room, and the order of others that follows from it.
func sameRanking(a, b workv1alpha2.Ranking) bool {
	if a == b {
		return true
	}
	left, err := a.Clusters()
	if err != nil {
		return false
	}
	right, err := b.Clusters()
	return err == nil && slices.Equal(withoutRoom(left), withoutRoom(right))
}

func withoutRoom(clusters []workv1alpha2.RankedCluster) []workv1alpha2.RankedCluster {
	for i := range clusters {
		clusters[i].Available = nil
	}
	slices.SortFunc(clusters, func(a, b workv1alpha2.RankedCluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters
}
