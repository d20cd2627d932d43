package core

import (
	"testing"
)

func TestGoldenStaticWeight(t *testing.T) {
	const origin = "pkg/scheduler/core/assignment_test.go Test_assignByStaticWeightStrategy: "
	tests := []struct {
		name     string
		clusters string
		weights  string
		replicas int32
		want     string
	}{
		{"weight 3:2:1", "m1:0 m2:0 m3:0", "m1:3 m2:2 m3:1", 12, "m1:6 m2:4 m3:2"},
		{"default weight", "m1:0 m2:0 m3:0", "", 12, "m1:4 m2:4 m3:4"},
		// v1.12.0 has no such row and gives the same.
		{"weight 3:2:1, 13", "m1:0 m2:0 m3:0", "m1:3 m2:2 m3:1", 13, "m1:7 m2:4 m3:2"},
		// v1.12.0: 8, 4, 2.
		{"weight 3:2:1, 14", "m1:0 m2:0 m3:0", "m1:3 m2:2 m3:1", 14, "m1:7 m2:5 m3:2"},
		{"no replicas", "m1:0 m2:0", "m1:1 m2:1", 0, "m1:0 m2:0"},
		{"a cluster without weight is left out", "m1:0 m2:0", "m1:1", 2, "m1:2"},
		{"the largest of several weights counts", "m1:0 m2:0", "m1:1 m2:1 m1:2", 3, "m1:2 m2:1"},
	}
	for _, tc := range tests {
		b := workload(tc.replicas, Placement{Strategy: StaticWeight, Weights: weighing(t, tc.weights)})
		if got := outcomeOf(Decide(roomFor(t, tc.clusters), b)); got != tc.want {
			t.Errorf("%s%s: got %s, want %s", origin, tc.name, got, tc.want)
		}
	}
}

// The stories of pkg/scheduler/core/generic_scheduler_test.go, Test_DistributionOfReplicas: 13 decisions, the second of
// each story after the first. v1.12.0 (Test_EvenDistributionOfReplicas) accepts several results, those that keep what
// was, and gives 4,2,1,1 for 8 over 2:1:1:1.
func TestGoldenStaticWeightStories(t *testing.T) {
	type step struct {
		replicas int32
		weights  string
		want     string
	}
	tests := map[string][]step{
		"3 over 1:1":             {{3, "m1:1 m2:1", "m1:2 m2:1"}},
		"from 3 to 5 over 1:1:1": {{3, "m1:1 m2:1 m3:1", "m1:1 m2:1 m3:1"}, {5, "m1:1 m2:1 m3:1", "m1:2 m2:2 m3:1"}},
		"from 7 to 8 over 2:1:1:1": {
			{7, "m1:2 m2:1 m3:1 m4:1", "m1:3 m2:2 m3:1 m4:1"}, {8, "m1:2 m2:1 m3:1 m4:1", "m1:3 m2:2 m3:2 m4:1"},
		},
		"from 9 to 8 over 2:1:1:1": {
			{9, "m1:2 m2:1 m3:1 m4:1", "m1:3 m2:2 m3:2 m4:2"}, {8, "m1:2 m2:1 m3:1 m4:1", "m1:3 m2:2 m3:2 m4:1"},
		},
		"from 1:1:1:1 to 2:1:1:1": {
			{6, "m1:1 m2:1 m3:1 m4:1", "m1:2 m2:2 m3:1 m4:1"}, {6, "m1:2 m2:1 m3:1 m4:1", "m1:3 m2:1 m3:1 m4:1"},
		},
		"a cluster joins": {
			{5, "m1:1 m2:1 m3:1", "m1:2 m2:2 m3:1"}, {5, "m1:1 m2:1 m3:1 m4:1", "m1:2 m2:1 m3:1 m4:1"},
		},
		"a cluster leaves": {
			{6, "m1:1 m2:1 m3:1 m4:1", "m1:2 m2:2 m3:1 m4:1"}, {6, "m1:1 m2:1 m3:1", "m1:2 m2:2 m3:2"},
		},
	}
	for name, steps := range tests {
		var previous []Target
		for i, s := range steps {
			b := workload(s.replicas, Placement{Strategy: StaticWeight, Weights: weighing(t, s.weights)})
			b.Previous = previous
			d := Decide(roomFor(t, s.weights), b)
			if got := outcomeOf(d); got != s.want {
				t.Errorf("%s, step %d: got %s, want %s", name, i+1, got, s.want)
			}
			previous = d.Targets
		}
	}
}
