package core

import (
	"testing"
)

// The rows on overflow tiers of pkg/scheduler/core/common_test.go, TestAssignReplicas and TestSelectClusters; v1.12.0
// has no such tiers.
func TestGoldenOverflowTiers(t *testing.T) {
	terms := []Term{
		{Name: "affinity1", Affinity: Affinity{Names: []string{"m1"}}, Overflow: []Affinity{{Names: []string{"m2"}}}},
	}
	one := []SpreadConstraint{spreadOver(FieldCluster, 1, 1)}
	tests := []struct {
		name     string
		room     string
		previous string
		spread   []SpreadConstraint
		replicas int32
		want     string
	}{
		{"the first has room for all", "m1:10 m2:10", "", nil, 5, "m1:5"},
		{"what it has no room for goes to the next tier", "m1:2 m2:10", "", nil, 5, "m1:2 m2:3"},
		{"all tiers are full", "m1:2 m2:2", "", nil, 10, "no room"},
		{"what runs there counts as its room", "m1:2 m2:10", "m1:3", nil, 8, "m1:5 m2:3"},
		{"worked: the first tier is empty", "m2:10", "", nil, 5, "m2:5"},
		{"worked: both tiers get their share of room only", "m1:0 m2:5", "", nil, 5, "m2:5"},
		{"one cluster is chosen: that of the first tier", "m1:9 m2:10", "", one, 5, "m1:5"},
	}
	for _, tc := range tests {
		b := workload(tc.replicas, Placement{Terms: terms, Strategy: DynamicWeight, Spread: tc.spread})
		b.PreviousTerm, b.Previous = "affinity1", numbersOf(t, tc.previous)
		if got := outcomeOf(Decide(roomFor(t, tc.room), b)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}
