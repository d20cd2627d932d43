package controllers

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func summaryOf(cpu int) *clusterv1alpha1.ResourceSummary {
	return &clusterv1alpha1.ResourceSummary{
		Allocated: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(cpu))},
	}
}

func TestSurveyIsKnownByWhatItFound(t *testing.T) {
	s := newSurveys()
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	s.noted("m", at(1), summaryOf(1))
	s.noted("m", at(2), summaryOf(2))
	if got := s.of("m", summaryOf(1), at(9)); got != at(1) {
		t.Errorf("the first survey was begun at %v", got)
	}
	s.noted("m", at(3), summaryOf(1))
	if got := s.of("m", summaryOf(1), at(9)); got != at(3) {
		t.Errorf("a later one that found the same was begun at %v", got)
	}
	if got := s.of("m", nil, at(9)); !got.IsZero() {
		t.Errorf("no survey was begun at %v", got)
	}
	for i := range 3 * kept {
		s.noted("m", at(int64(100+i)), summaryOf(100+i))
	}
	if len(s.begun["m"]) > kept {
		t.Errorf("%d surveys are remembered", len(s.begun["m"]))
	}
	s.forget("m")
	if len(s.begun)+len(s.foreign) > 0 {
		t.Error("a cluster that is gone is remembered")
	}
}

func TestForeignSurveyWasBegunAfterTheOneBefore(t *testing.T) {
	s := newSurveys()
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for _, step := range []struct {
		cpu  int
		seen int64
		want time.Time
	}{
		{1, 10, time.Time{}}, {1, 11, time.Time{}}, {2, 20, at(10)}, {2, 25, at(10)}, {3, 30, at(20)}, {3, 90, at(20)},
		{3, 100, at(40)},
	} {
		if got := s.of("m", summaryOf(step.cpu), at(step.seen)); got != step.want {
			t.Errorf("seen at %d: begun at %v, want %v", step.seen, got, step.want)
		}
	}
}
