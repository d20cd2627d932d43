package core

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The edge cases that the published scheduler's issues and code list; those on time stamps are in the package that
// translates bindings, those on estimators and suspension in the controllers.
func TestGoldenEdges(t *testing.T) {
	pods := func(text string) Snapshot { return roomFor(t, text) }
	with := func(b Binding, change func(*Binding)) Binding { change(&b); return b }
	static := func(replicas int32, weights string) Binding {
		return workload(replicas, Placement{Strategy: StaticWeight, Weights: weighing(t, weights)})
	}
	dynamic := func(replicas int32) Binding { return workload(replicas, Placement{Strategy: DynamicWeight}) }
	down := NewSnapshot([]Cluster{member("m1", tainted(corev1.TaintEffectNoExecute)), member("m2")})
	tests := []struct {
		name     string
		snapshot Snapshot
		binding  Binding
		want     string
	}{
		{"1: no clusters", pods(""), static(3, ""), "no fit"},
		{"1: one cluster", pods("m1:1"), static(3, ""), "m1:3"},
		{"1: all weights equal", pods("m1:0 m2:0 m3:0"), static(6, "m1:5 m2:5 m3:5"), "m1:2 m2:2 m3:2"},
		{"1: a weight of 0 is none", pods("m1:0 m2:0"), static(6, "m1:5 m2:0"), "m1:6"},
		{"2: no replicas, static", pods("m1:0 m2:0"), static(0, "m1:1 m2:1"), "m1:0 m2:0"},
		{"2: no replicas, dynamic", pods("m1:5 m2:5"), dynamic(0), "m1:0 m2:0"},
		{"3: fewer replicas than clusters", pods("m1:0 m2:0 m3:0"), static(2, ""), "m1:1 m2:1"},
		{"4: as many replicas as there are numbers, large weights", pods("m1:0 m2:0"),
			workload(math.MaxInt32, Placement{Strategy: StaticWeight, Weights: []Weight{
				{Affinity{Names: []string{"m1"}}, math.MaxInt64}, {Affinity{Names: []string{"m2"}}, math.MaxInt64},
			}}), "m1:1073741824 m2:1073741823"},
		{"5: a rule matches nobody", pods("m1:0 m2:0"), static(4, "m1:1 m2:1 m9:7"), "m1:2 m2:2"},
		{"5: no rule matches anybody", pods("m1:0 m2:0"), static(4, "m8:3 m9:7"), "m1:2 m2:2"},
		{"6: rules of the same cluster", pods("m1:0 m2:0"), static(4, "m1:1 m1:3 m2:1"), "m1:3 m2:1"},
		{
			"7: a cluster left", pods("m1:9 m2:9"),
			with(dynamic(6), func(b *Binding) { b.Previous = numbersOf(t, "m1:2 m2:2 m3:2") }), "m1:3 m2:3",
		},
		{
			"7: a cluster joined", pods("m1:9 m2:9 m3:9"),
			with(dynamic(6), func(b *Binding) { b.Previous = numbersOf(t, "m1:3 m2:3") }), "m1:3 m2:3",
		},
		{"8: a target is being deleted",
			NewSnapshot([]Cluster{
				member("m1", withRoom(9), func(c *Cluster) { c.Deleting = true }), member("m2", withRoom(9)),
			}),
			with(dynamic(6), func(b *Binding) { b.Previous = numbersOf(t, "m1:6") }), "m2:6"},
		{
			"9: more is there than fits", pods("m1:1 m2:1"),
			with(dynamic(6), func(b *Binding) { b.Previous = numbersOf(t, "m1:3 m2:3") }), "m1:3 m2:3",
		},
		{
			"10: from scratch", pods("m1:1 m2:9"),
			with(dynamic(6), func(b *Binding) { b.Previous, b.Fresh = numbersOf(t, "m1:5 m2:1"), true }), "m1:2 m2:4",
		},
		{"13: maxGroups 0", pods("m1:1"), spreadBinding(spreadOver(FieldCluster, 0, 0)), "no fit"},
		{
			"14: minGroups above the number of clusters", pods("m1:1 m2:1"),
			spreadBinding(spreadOver(FieldCluster, 3, 3)), "no fit",
		},
		{
			"16: regions that score the same", regions(1, 3),
			spreadBinding(spreadOver(FieldRegion, 1, 1), spreadOver(FieldCluster, 1, 1)), "r00m0:1",
		},
		{
			"17: more than 20 regions", regions(1, 25),
			spreadBinding(spreadOver(FieldRegion, 2, 2), spreadOver(FieldCluster, 2, 2)), "r00m0:1 r01m0:1",
		},
		{
			"18: clusters without a region", pods("m1:1"),
			spreadBinding(spreadOver(FieldRegion, 1, 1), spreadOver(FieldCluster, 1, 1)), "no fit",
		},
		{
			"20: excluded although named", pods("m1:1 m2:1"),
			workload(1, Placement{
				Terms: []Term{{Affinity: Affinity{Names: []string{"m1", "m2"}, Exclude: []string{"m1"}}}},
			}), "m2:1",
		},
		{
			"21: an empty affinity is everything", pods("m1:1 m2:1"), workload(1, Placement{Terms: []Term{{}}}),
			"m1:1 m2:1",
		},
		{
			"23: a taint on a target", down,
			with(workload(1, Placement{}), func(b *Binding) { b.Previous = numbersOf(t, "m1:1") }), "m1:1 m2:1",
		},
		{"23: a taint on another one", down, workload(1, Placement{}), "m2:1"},
		{
			"24: the API is gone from a target", NewSnapshot([]Cluster{{Name: "m1"}}),
			with(workload(1, Placement{}), func(b *Binding) { b.Previous = numbersOf(t, "m1:1") }), "m1:1",
		},
		{
			"25: the only cluster is being left", pods("m1:1"),
			with(workload(1, Placement{}), func(b *Binding) { b.Evicted = []string{"m1"} }), "no fit",
		},
		{"27: no summary", NewSnapshot([]Cluster{member("m1")}), dynamic(1), "no room"},
		{"28: no pod is free", pods("m1:0"), dynamic(1), "no room"},
		{
			"29: an unknown resource", pods("m1:9"),
			with(dynamic(1), func(b *Binding) { b.Request = Resources{Other: map[string]int64{"gpu": 1}} }), "no room",
		},
		{"30: no request", pods("m1:9"), dynamic(9), "m1:9"},
		{"31: more is allocated than there is", NewSnapshot([]Cluster{member("m1", func(c *Cluster) {
			c.Room = (&summary{Allocatable: Resources{Pods: 5}, Allocating: Resources{Pods: 7}}).room()
		})}), dynamic(1), "no room"},
		{
			"34: an odd UID", pods("m1:0 m2:0"), with(static(5, "m1:1 m2:1"), func(b *Binding) { b.UID = oddUID }),
			"m1:2 m2:3",
		},
		{
			"34: an even UID", pods("m1:0 m2:0"), with(static(5, "m1:1 m2:1"), func(b *Binding) { b.UID = evenUID }),
			"m1:3 m2:2",
		},
		{"34: no UID", pods("m1:0 m2:0"), static(5, "m1:1 m2:1"), "m1:3 m2:2"},
		{"35: fewer seats before the name", pods("m1:0 m2:0"), static(3, "m1:3 m2:1"), "m1:2 m2:1"},
		{"38: duplicated, one cluster is too small", pods("m1:1 m2:9"), workload(5, Placement{}), "m1:5 m2:5"},
		{
			"39: no workload, spread", pods("m1:1 m2:9"),
			Binding{Kind: deployment, Placement: Placement{Spread: []SpreadConstraint{spreadOver(FieldCluster, 1, 1)}}},
			"m1:0",
		},
	}
	for _, tc := range tests {
		if got := outcomeOf(Decide(tc.snapshot, tc.binding)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func spreadBinding(constraints ...SpreadConstraint) Binding {
	return workload(1, Placement{Spread: constraints})
}

// regions is a snapshot of so many clusters in each of so many regions.
func regions(each, count int) Snapshot {
	var clusters []Cluster
	for r := range count {
		for i := range each {
			clusters = append(clusters, member(fmt.Sprintf("r%02dm%d", r, i), withRoom(10),
				inRegion(fmt.Sprintf("r%02d", r))))
		}
	}
	return NewSnapshot(clusters)
}
