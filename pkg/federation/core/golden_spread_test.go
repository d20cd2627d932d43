package core

import (
	"strings"
	"testing"
)

// The rows of pkg/scheduler/core/spreadconstraint/group_clusters_test.go, Test_CalcGroupScore, as decisions: a third
// region is better than both groups, so that the choice of two regions is one between them. A cluster scores 100 if it
// has the object, with no replica of it. The row on static weights is left out: there, that scheduler ignores spread
// constraints.
func TestGoldenGroupScores(t *testing.T) {
	tests := []struct {
		name         string
		strategy     Strategy
		replicas     int32
		first        []int64
		firstScored  int
		second       []int64
		secondScored int
		firstWins    bool
	}{
		{
			"1: more clusters have room for all", Duplicated, 20, []int64{30, 30, 30, 30, 30}, 2,
			[]int64{30, 30, 30, 10, 10}, 5, true,
		},
		{
			"2: as many have room, scores decide", Duplicated, 20, []int64{30, 30, 30, 10, 10}, 2,
			[]int64{30, 30, 30, 10, 10}, 5, false,
		},
		{
			"3: only one group has room", Aggregated, 100, []int64{30, 30, 30, 10, 10}, 2, []int64{10, 10, 10, 5, 5}, 5,
			true,
		},
		{
			"4: neither has room, the larger wins", DynamicWeight, 100, []int64{10, 10, 10, 10, 5}, 2,
			[]int64{10, 10, 10, 5, 5}, 5, true,
		},
		{
			"6: both have room, scores decide", Aggregated, 100, []int64{100, 100, 100, 100, 100}, 0,
			[]int64{50, 50, 50, 50, 50}, 5, false,
		},
		{
			"worked: surplus does not count", DynamicWeight, 100, []int64{40, 40, 40, 40, 40}, 5,
			[]int64{100, 100, 100, 100, 100}, 0, true,
		},
		{
			"worked: room before locality", DynamicWeight, 100, []int64{10, 10, 10, 10, 5}, 5, []int64{40, 30, 10, 10},
			0, false,
		},
		{
			"worked: four with room before one", Duplicated, 50, []int64{60, 70, 40, 30, 10}, 5,
			[]int64{60, 60, 60, 60}, 0, false,
		},
	}
	for _, tc := range tests {
		var clusters []Cluster
		b := workload(tc.replicas, Placement{Strategy: tc.strategy})
		add := func(region string, room []int64, scored int) {
			for i, pods := range room {
				name := region + string(rune('0'+i))
				clusters = append(clusters, member(name, withRoom(pods), inRegion(region)))
				if i < scored {
					b.Previous = append(b.Previous, Target{Cluster: name})
				}
			}
		}
		add("a", tc.first, tc.firstScored)
		add("b", tc.second, tc.secondScored)
		// Not more room than is needed, so that replicas go to the other region as well.
		top := int64(12)
		if tc.strategy == Duplicated {
			top = 1000
		}
		add("top", []int64{top, top, top, top, top}, 5)
		b.Placement.Spread = []SpreadConstraint{spreadOver(FieldRegion, 2, 2), spreadOver(FieldCluster, 2, 20)}
		d := Decide(NewSnapshot(clusters), b)
		if targets := text(d.Targets); d.Failure != nil || strings.Contains(targets, "a0") != tc.firstWins {
			t.Errorf("%s: got %s, %v", tc.name, targets, d.Failure)
		}
	}
}

// Choice by cluster, section 3 of the walk in pkg/scheduler/core/spreadconstraint/select_clusters_by_cluster.go: the
// first by order, and then from the last of them, those are exchanged that have less room than one that was left out.
func TestGoldenByCluster(t *testing.T) {
	const order = "m1:40 m2:30 m3:60 m4:80"
	tests := []struct {
		name     string
		strategy Strategy
		previous string
		least    int
		most     int
		replicas int32
		want     string
	}{
		{"the first ones fit", DynamicWeight, "", 1, 2, 140, "m3 m4"},
		{"duplicated ignores room", Duplicated, "m1:0 m2:0", 1, 2, 120, "m1 m2"},
		{"those that have it are enough", DynamicWeight, "m1:0 m2:0", 1, 2, 70, "m1 m2"},
		{"the last of them is exchanged", DynamicWeight, "m1:0 m2:0", 1, 2, 100, "m1 m4"},
		{"both are exchanged", DynamicWeight, "m1:0 m2:0", 1, 2, 140, "m3 m4"},
		{"all together have not enough", DynamicWeight, "m1:0 m2:0", 1, 2, 200, "no room"},
		{"more than there are", Duplicated, "", 7, 7, 30, "no fit"},
		{"fewer than allowed", Duplicated, "", 1, 9, 1, "m1 m2 m3 m4"},
		{"none is allowed", Duplicated, "", 0, 0, 1, "no fit"},
	}
	for _, tc := range tests {
		b := workload(tc.replicas, Placement{
			Strategy: tc.strategy, Spread: []SpreadConstraint{spreadOver(FieldCluster, tc.least, tc.most)},
		})
		b.Previous = numbersOf(t, tc.previous)
		d := Decide(roomFor(t, order), b)
		got := outcomeOf(d)
		if d.Failure == nil {
			var names []string
			for _, target := range d.Targets {
				names = append(names, target.Cluster)
			}
			got = strings.Join(names, " ")
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}
