package core

import (
	"testing"
)

// The rows of pkg/scheduler/core: assignment_test.go (Test_dynamicScale, Test_dynamicScaleUp),
// division_algorithm_test.go (Test_dynamicDivideReplicas). Clusters that are gone are not in the snapshot.
func TestGoldenDivisionByRoom(t *testing.T) {
	const (
		scale   = "Test_dynamicScale"
		scaleUp = "Test_dynamicScaleUp"
		divided = "Test_dynamicDivideReplicas"
	)
	tests := []struct {
		origin    string
		strategy  Strategy
		available string
		previous  string
		replicas  int32
		want      string
		// v112 is what v1.12.0 gives, if that is something else.
		v112 string
	}{
		{scale, DynamicWeight, "m1:1 m2:1 m3:1", "m1:2 m2:4 m3:6", 6, "m1:1 m2:2 m3:3", ""},
		{scale, DynamicWeight, "m1:10 m2:10 m3:10", "m1:2 m2:4 m3:6", 24, "m1:6 m2:8 m3:10", ""},
		{scale, DynamicWeight, "m1:1 m2:1 m3:1", "m1:2 m2:4 m3:6", 24, "no room", ""},
		{scale, Aggregated, "m1:1 m2:1 m3:1", "m1:4 m2:8", 6, "m2:6", ""},
		{scale, Aggregated, "m1:100 m2:100", "m1:4 m2:8", 8, "m2:8", ""},
		{scale, Aggregated, "m1:4 m2:6 m3:8", "m1:4 m2:8", 24, "m1:7 m2:12 m3:5", ""},
		{scale, Aggregated, "m1:6 m2:6 m3:20", "m1:4 m2:8", 24, "m1:10 m2:14", ""},
		{scale, Aggregated, "m1:1 m2:1 m3:1", "m1:4 m2:8", 24, "no room", ""},
		{
			scale + ", m2 gone, m4 new", Aggregated, "m1:4 m3:8 m4:12", "m1:4 m2:8", 24, "m1:7 m3:7 m4:10",
			"m1:8 m3:6 m4:10 or others",
		},

		{scaleUp, DynamicWeight, "m1:6 m2:8 m3:10", "", 12, "m1:3 m2:4 m3:5", ""},
		{scaleUp, DynamicWeight, "m1:8 m2:8 m3:10", "", 12, "m1:4 m2:4 m3:4", "m1:4 m2:3 m3:5 or m1:3 m2:4 m3:5"},
		{scaleUp, DynamicWeight, "m1:3 m2:3 m3:3", "", 12, "no room", ""},
		{scaleUp, Aggregated, "m1:6 m2:8 m3:10", "", 12, "m2:5 m3:7", ""},
		{scaleUp, Aggregated, "m1:12 m2:8 m3:10", "", 12, "m1:12", ""},
		{scaleUp, Aggregated, "m1:3 m2:3 m3:3", "", 12, "no room", ""},
		{scaleUp + ", m3 gone, m2 new", DynamicWeight, "m1:3 m2:3", "m1:6 m3:6", 12, "m1:9 m2:3", ""},

		{divided, DynamicWeight, "m1:18 m2:12 m3:6", "", 12, "m1:6 m2:4 m3:2", ""},
		{divided, DynamicWeight, "m1:20 m2:12 m3:6", "", 12, "m1:6 m2:4 m3:2", "m1:7 m2:4 m3:1"},
		{divided, DynamicWeight, "m1:6 m2:12 m3:6", "", 12, "m1:3 m2:6 m3:3", ""},
		{divided, Aggregated, "m1:6 m2:12 m3:6", "", 12, "m2:12", ""},
		{divided, Aggregated, "m1:6 m2:6 m3:6", "", 12, "m1:6 m2:6", ""},

		{"Test_assignByDynamicStrategy_UnschedulableErrorPreserved", DynamicWeight, "m1:3", "", 10, "no room", ""},
	}
	for _, tc := range tests {
		b := workload(tc.replicas, Placement{Strategy: tc.strategy})
		b.Previous = numbersOf(t, tc.previous)
		if got := outcomeOf(Decide(roomFor(t, tc.available), b)); got != tc.want {
			t.Errorf("%s: %d over %s after %q: got %s, want %s (v1.12.0: %s)", tc.origin, tc.replicas, tc.available,
				tc.previous, got, tc.want, tc.v112)
		}
	}
}

// The worked examples of how a request from scratch and a steady division differ: pkg/scheduler/core/assignment.go.
func TestGoldenFreshAndSteady(t *testing.T) {
	tests := []struct {
		name      string
		strategy  Strategy
		fresh     bool
		available string
		previous  string
		replicas  int32
		want      string
	}{
		{"steady: nothing changes", DynamicWeight, false, "m1:2 m2:10", "m1:12", 12, "m1:12"},
		{"fresh: what runs counts as room", DynamicWeight, true, "m1:2 m2:10", "m1:12", 12, "m1:7 m2:5"},
		{
			"fresh, aggregated: the roomiest first, wherever it was", Aggregated, true, "m1:2 m2:30", "m1:12", 12,
			"m2:12",
		},
		{"fresh without room", DynamicWeight, true, "m1:2 m2:1", "m1:3", 12, "no room"},
		{"steady: more is there than would fit", DynamicWeight, false, "m1:0 m2:3", "m1:9", 12, "m1:9 m2:3"},
	}
	for _, tc := range tests {
		b := workload(tc.replicas, Placement{Strategy: tc.strategy})
		b.Previous, b.Fresh = numbersOf(t, tc.previous), tc.fresh
		if got := outcomeOf(Decide(roomFor(t, tc.available), b)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// Numbers of pkg/estimator/client/general_test.go, in the units of Room. The rows on resource models are not here:
// models are translated before the core sees a cluster.
func TestGoldenEstimate(t *testing.T) {
	const gi = 1 << 30
	usual := &summary{
		Allocatable: Resources{CPU: 4000, Memory: 8 * gi, Pods: 100},
		Allocated:   Resources{CPU: 1000, Memory: 2 * gi, Pods: 20},
	}
	half := Resources{CPU: 500, Memory: gi}
	tests := []struct {
		origin  string
		room    *summary
		request Resources
		want    int64
	}{
		{"TestMaxAvailableReplicas: single cluster with resources", usual, half, 6},
		{"TestMaxAvailableReplicas: cluster with no resources", nil, Resources{CPU: 1000}, 0},
		{"TestMaxAvailableReplicas: assumed workloads reduce replicas", &summary{
			Allocatable: usual.Allocatable, Allocated: usual.Allocated,
			Allocating: Resources{CPU: 1000, Memory: 2 * gi, Pods: 2},
		}, half, 4},
		{"TestMaxAvailableReplicasGeneral: nil resource summary", nil, Resources{}, 0},
		{
			"TestMaxAvailableReplicasGeneral: no allowed pods",
			&summary{Allocatable: Resources{Pods: 10}, Allocated: Resources{Pods: 10}}, Resources{}, 0,
		},
		{
			"TestMaxAvailableReplicasGeneral: nil replica requirements", &summary{Allocatable: Resources{Pods: 10}},
			Resources{}, 10,
		},
		{"TestMaxAvailableReplicasGeneral: basic resource estimation", usual, half, 6},
		{
			"TestGetAllowedPodNumber: normal case",
			&summary{
				Allocatable: Resources{Pods: 100}, Allocated: Resources{Pods: 40}, Allocating: Resources{Pods: 10},
			}, Resources{}, 50,
		},
		{"TestGetAllowedPodNumber: no allocatable pods", &summary{Allocated: Resources{Pods: 10}}, Resources{}, 0},
		{
			"TestGetAllowedPodNumber: over allocation",
			&summary{
				Allocatable: Resources{Pods: 100}, Allocated: Resources{Pods: 90}, Allocating: Resources{Pods: 20},
			}, Resources{}, 0,
		},
		{"TestGetMaximumReplicasBasedOnClusterSummary: insufficient memory", &summary{
			Allocatable: Resources{CPU: 4000, Memory: 2 * gi, Pods: 10},
			Allocated:   Resources{CPU: 1000, Memory: 3 * gi / 2},
		}, half, 0},
		{"worked example: pods 85, CPU 16", &summary{
			Allocatable: Resources{CPU: 16000, Pods: 110}, Allocated: Resources{CPU: 6000, Pods: 20},
			Allocating: Resources{CPU: 2000, Pods: 5},
		}, Resources{CPU: 500}, 16},
		{
			"worked example: no more than fits into 32 bits", &summary{Allocatable: Resources{Pods: 1 << 40}},
			Resources{}, 1<<31 - 1,
		},
	}
	for _, tc := range tests {
		if got := Estimate(tc.room.room(), tc.request, nil, Resources{}); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.origin, got, tc.want)
		}
	}
}

// Numbers of component sets in the same file.
func TestGoldenSets(t *testing.T) {
	const gi = 1 << 30
	tenCPUs := &summary{Allocatable: Resources{CPU: 10000, Memory: 8 * gi, Pods: 100}}
	used := &summary{Allocatable: tenCPUs.Allocatable, Allocated: Resources{Memory: 2 * gi, Pods: 20}}
	flink := []Component{
		{Name: "jobmanager", Replicas: 1, Request: Resources{CPU: 1000}},
		{Name: "taskmanager", Replicas: 2, Request: Resources{CPU: 1500}},
	}
	mixed := []Component{
		{Name: "jobmanager", Replicas: 1, Request: Resources{CPU: 1000, Memory: 2 * gi}},
		{Name: "taskmanager", Replicas: 2, Request: Resources{CPU: 2000, Memory: 2 * gi}},
	}
	gpu := map[string]int64{"nvidia.com/gpu": 1}
	tests := []struct {
		origin     string
		room       *summary
		components []Component
		assumed    Resources
		want       int64
	}{
		{"General: nil resource summary", nil, flink, Resources{}, 0},
		{
			"General: no allowed pods", &summary{Allocatable: Resources{Pods: 10}, Allocated: Resources{Pods: 10}},
			flink, Resources{}, 0,
		},
		{"General: basic resource estimation", used, flink, Resources{}, 2},
		{"General: resource estimation with mixed components", used, mixed, Resources{}, 1},
		{"General: estimation limited by pod count",
			&summary{Allocatable: Resources{CPU: 100000, Memory: 1 << 40, Pods: 3}},
			[]Component{{Name: "small", Replicas: 3, Request: Resources{CPU: 10, Memory: 1 << 20}}}, Resources{}, 1},
		{"General: custom resource estimation with GPUs",
			&summary{
				Allocatable: Resources{
					CPU: 40000, Memory: 64 * gi, Pods: 20, Other: map[string]int64{"nvidia.com/gpu": 8},
				},
			},
			[]Component{{Name: "gpu-worker", Replicas: 2, Request: Resources{CPU: 4000, Memory: 8 * gi, Other: gpu}}},
			Resources{}, 4},
		{"AssumedWorkloadDeduction: baseline unchanged", tenCPUs, flink, Resources{}, 2},
		{"AssumedWorkloadDeduction: deducts CPU", tenCPUs, flink, RequestOf(flink), 1},
		{
			"AssumedWorkloadDeduction: exhausts all CPU",
			&summary{Allocatable: Resources{CPU: 8000, Memory: 8 * gi, Pods: 100}}, flink,
			Resources{CPU: 8000, Pods: 4}, 0,
		},
		{
			"AssumedWorkloadDeduction: exhausts pod budget", &summary{Allocatable: Resources{CPU: 100000, Pods: 3}},
			flink, Resources{Pods: 3}, 0,
		},
	}
	for _, tc := range tests {
		b := Binding{}
		b.SetOf(tc.components)
		s := NewSnapshot([]Cluster{{Name: "m", Room: tc.room.room()}}).WithPromises(Promises{"m": tc.assumed})
		if got := s.Estimate("m", b); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.origin, got, tc.want)
		}
	}
}

// summary is what the published API says of a cluster's resources.
type summary struct{ Allocatable, Allocated, Allocating Resources }

func (s *summary) room() *Room {
	if s == nil {
		return nil
	}
	return &Room{Free: s.Allocatable.Minus(s.Allocated.Plus(s.Allocating)), Pending: s.Allocating}
}
