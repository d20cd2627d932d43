package controllers

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
)

// A survey that finds what the one before it found makes no event, and still ends promises.
func TestSurveysAreSeenWithoutAnEvent(t *testing.T) {
	scheme := fleetscheme.Scheme()
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Name, cluster.Status.ResourceSummary = "m", summaryOf(1)
	cluster.Status.Conditions = readySince(time.Unix(5, 0), metav1.ConditionTrue)
	view := &clusterView{
		reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build(), surveys: newSurveys(),
	}
	begun := func() time.Time {
		_, surveys, err := view.snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if ready := surveys["m"].Ready; !ready.Equal(time.Unix(5, 0)) {
			t.Fatalf("the cluster has been ready since %v", ready)
		}
		return surveys["m"].Begun
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

func readySince(since time.Time, status metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{
		{Type: clusterv1alpha1.ConditionReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
	}
}

// What is shown of a cluster that isn't ready may be of any age, whoever looked at it.
func TestClustersThatAreNotReadyAreNotLookedAt(t *testing.T) {
	view := &clusterView{surveys: newSurveys()}
	cluster := clusterv1alpha1.Cluster{}
	cluster.Name, cluster.Status.ResourceSummary = "m", summaryOf(1)
	view.surveys.noted("m", time.Unix(10, 0), summaryOf(1))
	for status, want := range map[metav1.ConditionStatus]int{
		metav1.ConditionTrue: 1, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0,
	} {
		cluster.Status.Conditions = readySince(time.Unix(5, 0), status)
		if got := view.surveysOf([]clusterv1alpha1.Cluster{cluster}, time.Unix(20, 0)); len(got) != want {
			t.Errorf("ready %s: %d surveys count, want %d", status, len(got), want)
		}
	}
}
