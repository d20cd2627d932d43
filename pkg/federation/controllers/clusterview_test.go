package controllers

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// A survey that finds what the one before it found makes no event, and still ends promises.
func TestSurveysAreSeenWithoutAnEvent(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Name, cluster.Status.ResourceSummary = "m", summaryOf(1)
	view := &clusterView{reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build(), surveys: newSurveys()}
	begun := func() time.Time {
		_, surveys, err := view.snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return surveys["m"]
	}
	view.surveys.noted("m", time.Unix(10, 0), summaryOf(1))
	if got := begun(); !got.Equal(time.Unix(10, 0)) {
		t.Fatalf("the survey was begun at %v", got)
	}
	view.surveys.noted("m", time.Unix(20, 0), summaryOf(1))
	view.begunAt = view.begunAt.Add(-2 * surveysAge)
	if got := begun(); !got.Equal(time.Unix(20, 0)) {
		t.Errorf("the later survey was begun at %v", got)
	}
}
