package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
)

// reporting is a Work whose object has a status in the member, which was brought there as it is now.
func reporting(group, kind, status string, health workv1alpha1.ResourceHealth) *workv1alpha1.Work {
	work := &workv1alpha1.Work{}
	work.Generation = 3
	applies(work, metav1.ConditionTrue, 3)
	manifest := workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{Group: group, Kind: kind}, Health: health,
	}
	if status != "" {
		manifest.Status = &runtime.RawExtension{Raw: []byte(status)}
	}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{manifest}
	return work
}

func applies(work *workv1alpha1.Work, status metav1.ConditionStatus, generation int64) {
	work.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.ConditionApplied, Status: status, ObservedGeneration: generation},
	}
}

func suspends(work *workv1alpha1.Work) {
	work.Spec.SuspendDispatching = new(true)
	work.Status.Conditions = append(work.Status.Conditions,
		metav1.Condition{Type: workv1alpha1.ConditionDispatching, Status: metav1.ConditionFalse})
}

// TestReports is about members that were told to run five replicas.
func TestReports(t *testing.T) {
	const healthy,
		unhealthy, unknown = workv1alpha1.ResourceHealthy, workv1alpha1.ResourceUnhealthy, workv1alpha1.ResourceUnknown
	numberless := reservations.Report{Numberless: true, Settled: 5}
	for name, c := range map[string]struct {
		group, kind, status string
		health              workv1alpha1.ResourceHealth
		want                reservations.Report
	}{
		"no controller has looked": {"apps", "Deployment", "", unhealthy, reservations.Report{}},
		"pods that are not ready have their room": {
			"apps", "Deployment", `{"generation":7,"observedGeneration":7,"replicas":5,"unavailableReplicas":5}`,
			unhealthy, reservations.Report{Running: 5, Settled: 5, Generation: 7},
		},
		"more pods while they are replaced": {
			"apps", "Deployment", `{"generation":7,"observedGeneration":7,"replicas":6}`, healthy,
			reservations.Report{Running: 5, Settled: 5, Generation: 7},
		},
		"some pods are refused": {
			"apps", "Deployment", `{"generation":7,"observedGeneration":7,"replicas":2,"unavailableReplicas":3}`,
			unhealthy, reservations.Report{Running: 2, Settled: 5, Generation: 7},
		},
		"all pods are refused": {
			"apps", "Deployment", `{"generation":7,"observedGeneration":7,"unavailableReplicas":5}`, unhealthy,
			reservations.Report{Settled: 5, Generation: 7},
		},
		"the last change was not seen yet": {
			"apps", "Deployment", `{"generation":8,"observedGeneration":7,"replicas":2}`, unhealthy,
			reservations.Report{Running: 2, Generation: 8},
		},
		"a pod is its own": {
			"", "Pod", `{"phase":"Pending"}`, unhealthy, reservations.Report{Running: 5, Settled: 5},
		},
		"a job that nobody has looked at": {"batch", "Job", "", healthy, reservations.Report{}},
		"a job that is suspended": {
			"batch", "Job", `{"generation":1,"conditions":[{"type":"Suspended","status":"True"}]}`, healthy,
			reservations.Report{Settled: 5, Generation: 1},
		},
		"a job in the middle": {
			"batch", "Job", `{"active":2,"succeeded":1,"failed":1}`, healthy,
			reservations.Report{Running: 4, Settled: 5},
		},
		"a job that needed fewer": {
			"batch", "Job", `{"succeeded":3,"conditions":[{"type":"Complete","status":"True"}]}`, healthy,
			reservations.Report{Running: 5, Settled: 5},
		},
		"a job that failed": {
			"batch", "Job", `{"failed":1,"conditions":[{"type":"Failed","status":"True"}]}`, unhealthy,
			reservations.Report{Running: 5, Settled: 5},
		},
		"a job of another kind": {
			"example.com", "Batch", `{"active":2,"succeeded":1}`, unknown, reservations.Report{Running: 3, Settled: 5},
		},
		"no numbers, healthy": {
			"example.com", "Gate", `{"open":true}`, healthy, reservations.Report{Running: 5, Settled: 5},
		},
		"no numbers, unhealthy":    {"example.com", "Gate", `{"open":false}`, unhealthy, numberless},
		"no numbers, nobody knows": {"example.com", "Gate", `{"open":false}`, unknown, numberless},
		"no status, nobody knows":  {"example.com", "Gate", "", unknown, numberless},
		"no status yet":            {"example.com", "Gate", "", unhealthy, reservations.Report{}},
		"numbers that are texts": {
			"argoproj.io", "Rollout", `{"observedGeneration":"2","replicas":4}`, unknown,
			reservations.Report{Running: 4, Settled: 5},
		},
		"a status that is no object": {"example.com", "Gate", `[]`, unhealthy, reservations.Report{}},
	} {
		if got := reportOf(reporting(c.group, c.kind, c.status, c.health), 5, false, false); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestReportsOfUnits(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		health workv1alpha1.ResourceHealth
		want   reservations.Report
	}{
		"healthy": {
			`{"state":"RUNNING"}`, workv1alpha1.ResourceHealthy, reservations.Report{Running: 1, Settled: 1},
		},
		"the number of one of its parts": {
			`{"replicas":7}`, workv1alpha1.ResourceUnhealthy, reservations.Report{Numberless: true, Settled: 1},
		},
		"no controller has looked": {"", workv1alpha1.ResourceUnhealthy, reservations.Report{}},
	} {
		if got := reportOf(reporting("example.com", "Graph", c.status, c.health), 1, true, false); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestReportsOnTheWay is about Works of whose last change nothing is known, or that it has no effect.
func TestReportsOnTheWay(t *testing.T) {
	numbers := func() *workv1alpha1.Work {
		return reporting("apps", "Deployment", `{"generation":7,"observedGeneration":7,"replicas":2}`,
			workv1alpha1.ResourceHealthy)
	}
	health := func() *workv1alpha1.Work {
		return reporting("example.com", "Gate", `{"open":true}`, workv1alpha1.ResourceHealthy)
	}
	for name, c := range map[string]struct {
		work     *workv1alpha1.Work
		change   func(*workv1alpha1.Work)
		outdated bool
		want     reservations.Report
	}{
		"not applied yet": {
			numbers(), func(w *workv1alpha1.Work) { w.Generation++ }, false,
			reservations.Report{Running: 2, Generation: 7},
		},
		"healthy before, not applied yet": {
			health(), func(w *workv1alpha1.Work) { w.Generation++ }, false, reservations.Report{Numberless: true},
		},
		"suspended": {numbers(), suspends, false, reservations.Report{Running: 2, Generation: 7}},
		"refused": {
			numbers(), func(w *workv1alpha1.Work) { applies(w, metav1.ConditionFalse, 3) }, false,
			reservations.Report{Running: 2, Settled: 5, Generation: 7},
		},
		"an earlier change was refused": {
			numbers(), func(w *workv1alpha1.Work) { applies(w, metav1.ConditionFalse, 2) }, false,
			reservations.Report{Running: 2, Generation: 7},
		},
		"healthy before, refused": {
			health(), func(w *workv1alpha1.Work) { applies(w, metav1.ConditionFalse, 3) }, false,
			reservations.Report{Numberless: true, Settled: 5},
		},
		"refused from the start": {
			&workv1alpha1.Work{}, func(w *workv1alpha1.Work) { applies(w, metav1.ConditionFalse, 0) }, false,
			reservations.Report{Settled: 5},
		},
		"not heard of": {
			&workv1alpha1.Work{}, func(*workv1alpha1.Work) {}, false, reservations.Report{},
		},
		"its change cannot be made": {
			numbers(), func(*workv1alpha1.Work) {}, true, reservations.Report{Running: 2, Settled: 5, Generation: 7},
		},
		"healthy, change cannot be made": {
			health(), func(*workv1alpha1.Work) {}, true, reservations.Report{Numberless: true, Settled: 5},
		},
	} {
		c.change(c.work)
		if got := reportOf(c.work, 5, false, c.outdated); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
