package core

import (
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func member(name string, change ...func(*Cluster)) Cluster {
	c := Cluster{Name: name, APIs: NewAPIs(deployment)}
	for _, f := range change {
		f(&c)
	}
	return c
}

func withRoom(pods int64) func(*Cluster) {
	return func(c *Cluster) { c.Room = &Room{Free: Resources{Pods: pods}} }
}

func tainted(effect corev1.TaintEffect) func(*Cluster) {
	return func(c *Cluster) { c.Taints = []corev1.Taint{{Key: "down", Effect: effect}} }
}

func inRegion(region string) func(*Cluster) { return func(c *Cluster) { c.Region = region } }

func labelled(key, value string) func(*Cluster) {
	return func(c *Cluster) { c.Labels = labels.Set{key: value} }
}

func workload(replicas int32, p Placement) Binding {
	return Binding{Kind: deployment, Workload: true, Replicas: replicas, Placement: p}
}

func naming(names ...string) []Term {
	return []Term{{Affinity: Affinity{Path: "spec.placement.clusterAffinity", Names: names}}}
}

func text(targets []Target) string {
	var parts []string
	for _, t := range targets {
		parts = append(parts, fmt.Sprintf("%s:%d", t.Cluster, t.Replicas))
	}
	return strings.Join(parts, " ")
}

func reasonOf(d Decision, cluster string) Reason {
	for _, r := range d.Reasons() {
		if r.Cluster == cluster {
			return r
		}
	}
	return Reason{}
}

func TestDecideFilters(t *testing.T) {
	previous := []Target{{"m1", 2}}
	tests := map[string]struct {
		cluster Cluster
		change  func(*Binding)
		want    ReasonCode
	}{
		"fits": {member("m1"), nil, Fits},
		"excluded although named": {
			member("m1"), func(b *Binding) { b.Placement.Terms[0].Exclude = []string{"m1"} }, AffinityMismatch,
		},
		"not named": {member("m9"), nil, AffinityMismatch},
		"label missing": {
			member("m1"), func(b *Binding) { b.Placement.Terms[0].Labels = labels.Set{"a": "b"}.AsSelector() },
			AffinityMismatch,
		},
		"label there": {
			member("m1", labelled("a", "b")),
			func(b *Binding) { b.Placement.Terms[0].Labels = labels.Set{"a": "b"}.AsSelector() }, Fits,
		},
		"API missing":                  {Cluster{Name: "m1"}, nil, APINotServed},
		"API gone but object is there": {Cluster{Name: "m1"}, func(b *Binding) { b.Previous = previous }, Fits},
		"tainted":                      {member("m1", tainted(corev1.TaintEffectNoSchedule)), nil, TaintNotTolerated},
		"tainted with NoExecute":       {member("m1", tainted(corev1.TaintEffectNoExecute)), nil, TaintNotTolerated},
		"preferably not":               {member("m1", tainted(corev1.TaintEffectPreferNoSchedule)), nil, Fits},
		"tainted but object is there": {
			member("m1", tainted(corev1.TaintEffectNoSchedule)), func(b *Binding) { b.Previous = previous }, Fits,
		},
		"taint tolerated": {member("m1", tainted(corev1.TaintEffectNoSchedule)), func(b *Binding) {
			b.Placement.Tolerations = []corev1.Toleration{{Key: "down", Operator: corev1.TolerationOpExists}}
		}, Fits},
		"other taint tolerated": {member("m1", tainted(corev1.TaintEffectNoSchedule)), func(b *Binding) {
			b.Placement.Tolerations = []corev1.Toleration{{Key: "up", Operator: corev1.TolerationOpExists}}
		}, TaintNotTolerated},
		"being evicted": {member("m1"), func(b *Binding) { b.Evicted = []string{"m1"} }, BeingEvicted},
		"being deleted": {
			member("m1", func(c *Cluster) { c.Deleting = true }), func(b *Binding) { b.Previous = previous },
			ClusterDeleting,
		},
		"region wanted but unknown": {
			member("m1"), func(b *Binding) { b.Placement.Spread = []SpreadConstraint{{Field: FieldRegion}} },
			PropertyMissing,
		},
		"in the region": {member("m1", inRegion("eu")), func(b *Binding) {
			b.Placement.Terms[0].Fields = []FieldRequirement{{Field: FieldRegion, Values: []string{"eu"}}}
		}, Fits},
		"not in the region": {member("m1", inRegion("us")), func(b *Binding) {
			b.Placement.Terms[0].Fields = []FieldRequirement{{Field: FieldRegion, Values: []string{"eu"}}}
		}, AffinityMismatch},
		"in one of the excluded zones": {member("m1", func(c *Cluster) { c.Zones = []string{"a", "b"} }),
			func(b *Binding) {
				b.Placement.Terms[0].Fields = []FieldRequirement{{Field: FieldZone, Not: true, Values: []string{"b"}}}
			}, AffinityMismatch},
		"in none of the excluded zones": {member("m1"), func(b *Binding) {
			b.Placement.Terms[0].Fields = []FieldRequirement{{Field: FieldZone, Not: true, Values: []string{"b"}}}
		}, Fits},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := workload(2, Placement{Terms: naming("m1")})
			if tc.change != nil {
				tc.change(&b)
			}
			d := Decide(NewSnapshot([]Cluster{tc.cluster}), b)
			if got := reasonOf(d, tc.cluster.Name).Code; got != tc.want {
				t.Errorf("got %q (%s), want %q", got, d.Explain(), tc.want)
			}
			if (d.Failure == nil) != (tc.want == Fits) {
				t.Errorf("failure %v", d.Failure)
			}
		})
	}
}

func TestDecideStaticWeight(t *testing.T) {
	equal := []Weight{{Affinity{Names: []string{"member1"}}, 1}, {Affinity{Names: []string{"member2"}}, 1}}
	s := NewSnapshot([]Cluster{member("member2"), member("member1"), member("member3")})
	tests := map[string]struct {
		replicas  int32
		placement Placement
		uid       string
		want      string
	}{
		"one each": {
			2, Placement{Terms: naming("member1", "member2"), Strategy: StaticWeight, Weights: equal}, oddUID,
			"member1:1 member2:1",
		},
		"the odd one by name": {
			3, Placement{Terms: naming("member1", "member2"), Strategy: StaticWeight, Weights: equal}, evenUID,
			"member1:2 member2:1",
		},
		"the odd one by name, descending": {
			3, Placement{Terms: naming("member1", "member2"), Strategy: StaticWeight, Weights: equal}, oddUID,
			"member1:1 member2:2",
		},
		"no weights are equal weights": {3, Placement{Strategy: StaticWeight}, "", "member1:1 member2:1 member3:1"},
		"clusters without weight are out": {
			4, Placement{Strategy: StaticWeight, Weights: equal}, "", "member1:2 member2:2",
		},
		"nobody has a weight": {
			3, Placement{Strategy: StaticWeight, Weights: []Weight{{Affinity{Names: []string{"x"}}, 5}}}, "",
			"member1:1 member2:1 member3:1",
		},
		"the largest weight counts": {
			4, Placement{
				Terms: naming("member1", "member2"), Strategy: StaticWeight,
				Weights: append([]Weight{{Affinity{Names: []string{"member1"}}, 3}}, equal...),
			}, "", "member1:3 member2:1",
		},
		"fewer replicas than clusters":    {1, Placement{Strategy: StaticWeight}, "", "member1:1"},
		"no replicas keep their clusters": {0, Placement{Strategy: StaticWeight}, "", "member1:0 member2:0 member3:0"},
		"spread over one cluster": {
			2, Placement{
				Terms: naming("member1", "member2"), Strategy: StaticWeight,
				Spread: []SpreadConstraint{{Field: FieldCluster, Min: 1, Max: atMost(1)}},
			}, "", "member1:2",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := workload(tc.replicas, tc.placement)
			b.UID = tc.uid
			if got := text(Decide(s, b).Targets); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDecideDuplicated(t *testing.T) {
	s := NewSnapshot([]Cluster{member("m1"), member("m2"), member("m3")})
	if got := text(Decide(s, workload(2, Placement{Terms: naming("m1", "m2")})).Targets); got != "m1:2 m2:2" {
		t.Error(got)
	}
	if got := text(Decide(s, Binding{Kind: deployment}).Targets); got != "m1:0 m2:0 m3:0" {
		t.Error("an object without replicas goes everywhere:", got)
	}
	if got := text(Decide(NewSnapshot(nil), workload(2, Placement{})).Targets); got != "" {
		t.Error("no clusters:", got)
	}
}

func TestLackOfRoomKeepsWhatIsPlaced(t *testing.T) {
	s := NewSnapshot([]Cluster{member("m1", withRoom(1))})
	b := workload(5, Placement{Strategy: DynamicWeight})
	b.Previous = []Target{{"m1", 2}}
	d := Decide(s, b)
	if d.Failure == nil || d.Failure.Kind != NoRoom || text(d.Targets) != "m1:2" {
		t.Errorf("got %+v", d)
	}
}

func TestTermsAreTriedInOrder(t *testing.T) {
	s := NewSnapshot([]Cluster{member("m1", tainted(corev1.TaintEffectNoSchedule)), member("m2")})
	first := Term{Name: "first", Affinity: Affinity{Names: []string{"m1"}}}
	second := Term{Name: "second", Affinity: Affinity{Names: []string{"m2"}}}
	b := workload(1, Placement{Terms: []Term{first, second}})
	if d := Decide(s, b); d.Term != "second" || text(d.Targets) != "m2:1" {
		t.Errorf("got %+v", d)
	}
	b.PreviousTerm = "second"
	b.Placement.Terms[1].Names = []string{"nowhere"}
	if d := Decide(s, b); d.Failure == nil || len(d.Targets) != 0 {
		t.Errorf("exhausted terms withdraw the object: %+v", d)
	}
}

// While replicas go over to an earlier term step by step, a change of their number moves no others: the clusters of the
// term that they leave keep theirs.
func TestBetweenTermsWhatRunsStays(t *testing.T) {
	terms := []Term{
		{Name: "near", Affinity: Affinity{Names: []string{"m1"}}},
		{Name: "far", Affinity: Affinity{Names: []string{"m2", "m3"}}},
	}
	for name, test := range map[string]struct {
		room, previous string
		replicas       int32
		change         func(*Binding)
		want, term     string
	}{
		"more go to the term": {"m1:50 m2:50 m3:50", "m1:10 m2:20", 40, nil, "m1:20 m2:20", "near"},
		"fewer":               {"m1:50 m2:50 m3:50", "m1:10 m2:20", 15, nil, "m1:5 m2:10", "near"},
		"no room in the term": {"m1:0 m2:50 m3:0", "m1:10 m2:20", 40, nil, "m1:10 m2:30", "far"},
		"all were there":      {"m1:50 m2:50 m3:50", "m2:20", 30, nil, "m1:10 m2:20", "near"},
		"the term is left for good": {
			"m1:50 m2:50 m3:50", "m1:10 m2:20", 40, func(b *Binding) { b.BetweenTerms = false }, "m1:40", "near",
		},
		"from scratch": {
			"m1:50 m2:50 m3:50", "m1:10 m2:20", 40, func(b *Binding) { b.Fresh = true }, "m1:40", "near",
		},
		"evicted": {
			"m1:50 m2:50 m3:50", "m1:10 m2:20", 40, func(b *Binding) { b.Evicted = []string{"m2"} }, "m1:40", "near",
		},
		"weights are of the term alone": {
			"m1:50 m2:50 m3:50", "m1:10 m2:20", 40, func(b *Binding) { b.Placement.Strategy = StaticWeight }, "m1:40",
			"near",
		},
		"clusters are chosen from the term alone": {
			"m1:50 m2:50 m3:50", "m1:10 m2:20", 40,
			func(b *Binding) { b.Placement.Spread = []SpreadConstraint{spreadOver(FieldCluster, 1, 1)} }, "m1:40", "near",
		},
		"evenly": {
			"m1:50 m2:50 m3:50", "m1:10 m2:20", 40, func(b *Binding) { b.Placement.Strategy = Even }, "m1:20 m2:20",
			"near",
		},
	} {
		b := workload(test.replicas, Placement{Terms: terms, Strategy: Aggregated})
		b.PreviousTerm, b.Previous, b.BetweenTerms = "near", numbersOf(t, test.previous), true
		if test.change != nil {
			test.change(&b)
		}
		d := Decide(roomFor(t, test.room), b)
		if got := outcomeOf(d); got != test.want || d.Term != test.term {
			t.Errorf("%s: got %s of term %s, want %s of term %s", name, got, d.Term, test.want, test.term)
		}
	}
}

func TestUnknownClustersAreExplained(t *testing.T) {
	d := Decide(NewSnapshot([]Cluster{member("member1")}), workload(2, Placement{Terms: naming("member1", "membre2")}))
	want :=
		"placed on member1; membre2: spec.placement.clusterAffinity.clusterNames[1]: the fleet has no cluster of " +
			"this name; it has member1"
	if got := d.Explain(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAClusterThatIsChosenAndGetsNothingIsNotCalledLeftOut(t *testing.T) {
	b := workload(1, Placement{Strategy: DynamicWeight, Spread: []SpreadConstraint{spreadOver(FieldCluster, 1, 2)}})
	d := Decide(roomFor(t, "m1:9 m2:5 m3:1"), b)
	if got := reasonOf(d, "m2").Code; got != NoReplicaAllotted {
		t.Errorf("m2: got %s", got)
	}
	if got := reasonOf(d, "m3").Code; got != SpreadLimit {
		t.Errorf("m3: got %s", got)
	}
}

// TestExplainTellsOfIdlePromises: room that is promised to what does not start looks free to people.
func TestExplainTellsOfIdlePromises(t *testing.T) {
	clusters := []Cluster{
		member("m1", withRoom(6)), member("m2", withRoom(4)),
		member("m3", withRoom(50), tainted(corev1.TaintEffectNoSchedule)), member("m4"),
	}
	aggregated := Placement{Strategy: Aggregated}
	previous := func(b Binding, targets ...Target) Binding {
		b.Previous = targets
		return b
	}
	limited := aggregated
	limited.Limits = []Limit{{Max: new(int32(3))}}
	one := Placement{
		Strategy: Aggregated, Spread: []SpreadConstraint{
			{Path: "spec.placement.spreadConstraints[0]", Field: FieldCluster, Max: new(1)},
		},
	}
	unit := workload(1, one)
	unit.SetOf([]Component{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 3}})
	tests := map[string]struct {
		idle    Promises
		binding Binding
		want    string
	}{
		"nothing is promised": {
			nil, workload(20, aggregated), "the clusters that fit have room for 10 of 20 replicas; m3: ",
		},
		"part of what is free": {
			Promises{"m1": {Pods: 2}, "m2": {Pods: 1}}, workload(10, aggregated),
			"the clusters that fit have room for 7 of 10 replicas; room for 3 more is promised to replicas of other " +
				"objects that were sent there and do not start; m3: ",
		},
		"no more than is wanted": {
			Promises{"m1": {Pods: 6}, "m2": {Pods: 4}}, workload(2, aggregated),
			"the clusters that fit have room for 0 of 2 replicas; room for 2 more is promised",
		},
		"by clusters that don't fit": {
			Promises{"m3": {Pods: 9}, "m4": {Pods: 9}}, workload(20, aggregated),
			"the clusters that fit have room for 10 of 20 replicas; m3: ",
		},
		"perhaps to itself": {
			Promises{"m1": {Pods: 2}}, previous(workload(20, aggregated), Target{"m1", 2}),
			"the clusters that fit have room for 10 of 20 replicas; m3: ",
		},
		"to others, beside itself": {
			Promises{"m1": {Pods: 5}}, previous(workload(20, aggregated), Target{"m1", 2}),
			"the clusters that fit have room for 7 of 20 replicas; room for 3 more is promised",
		},
		"more than it may have": {
			Promises{"m1": {Pods: 3}, "m2": {Pods: 2}}, workload(10, limited),
			"the clusters that fit have room for 5 of 10 replicas; room for 1 more is promised",
		},
		"in one cluster": {
			Promises{"m1": {Pods: 6}, "m2": {Pods: 1}}, workload(4, one),
			"spec.placement.spreadConstraints[0]: 1 clusters have room for 3 of 4 replicas; room for 4 more is " +
				"promised",
		},
		"for a unit": {
			Promises{"m1": {Pods: 2}}, unit,
			"spec.placement.spreadConstraints[0]: 1 clusters have room for 0 of 1 sets of components; room for 1 " +
				"more is promised",
		},
		"where room doesn't count": {
			Promises{"m1": {Pods: 6}}, workload(10, Placement{Strategy: StaticWeight, Limits: limited.Limits}),
			"spec.placement.replicaScheduling.limits: the clusters that were chosen may have 9 of 10 replicas; m3: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(NewSnapshot(clusters).WithPromises(tc.idle).WithIdle(tc.idle), tc.binding)
			if got := d.Explain(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestExplainLeavesOutWhatMayStart: a promise that is kept before long is nothing to tell people.
func TestExplainLeavesOutWhatMayStart(t *testing.T) {
	s := NewSnapshot([]Cluster{member("m1", withRoom(6))}).WithPromises(Promises{"m1": {Pods: 5}})
	b := workload(4, Placement{Strategy: Aggregated})
	if got, want := Decide(s, b).Explain(), "the clusters that fit have room for 1 of 4 replicas"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Decide(s.WithIdle(Promises{"m1": {Pods: 2}}), b).Explain(),
		"the clusters that fit have room for 1 of 4 replicas; room for 2 more is promised"; !strings.HasPrefix(got,
		want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestExplainGroupsClusters(t *testing.T) {
	s := NewSnapshot([]Cluster{member("m1"), member("m2"), member("m3", tainted(corev1.TaintEffectNoSchedule))})
	d := Decide(s, workload(2, Placement{Terms: naming("m3")}))
	want :=
		"no cluster fits: 0 of 3; m1, m2: spec.placement.clusterAffinity.clusterNames does not list it; m3: taint " +
			"down:NoSchedule is not tolerated"
	if got := d.Explain(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestEstimate(t *testing.T) {
	room := func(cpu, pods int64) *Room {
		allocatable, pending := Resources{CPU: 16000, Pods: 110}, Resources{CPU: 2000, Pods: 5}
		return &Room{Free: allocatable.Minus(Resources{CPU: cpu, Pods: pods}.Plus(pending)), Pending: pending}
	}
	nodes := func(nodes ...Node) *Room {
		r := &Room{Nodes: nodes}
		for _, n := range nodes {
			r.Free = r.Free.Plus(n.Free.Times(n.Count))
		}
		return r
	}
	small := Node{Count: 4, Free: Resources{CPU: 1500, Pods: 10}}
	gpu := Node{
		Count: 1, Free: Resources{CPU: 8000, Pods: 10, Other: map[string]int64{"gpu": 2}},
		Labels: labels.Set{"gpu": "yes"},
	}
	tests := map[string]struct {
		room     *Room
		request  Resources
		claim    *NodeClaim
		promised Resources
		want     int64
	}{
		"nothing known":            {nil, Resources{}, nil, Resources{}, 0},
		"by CPU":                   {room(6000, 20), Resources{CPU: 500}, nil, Resources{}, 16},
		"by pods":                  {room(0, 108), Resources{CPU: 1}, nil, Resources{}, 0},
		"no requests":              {room(6000, 20), Resources{}, nil, Resources{}, 85},
		"several pods per replica": {room(6000, 20), Resources{Pods: 10}, nil, Resources{}, 8},
		"unknown resource": {
			room(0, 0), Resources{Other: map[string]int64{"gpu": 1}}, nil, Resources{}, 0,
		},
		"more asked than is free": {room(15000, 0), Resources{CPU: 1}, nil, Resources{}, 0},
		"promised to others":      {room(6000, 20), Resources{CPU: 500}, nil, Resources{CPU: 1000, Pods: 1}, 14},
		"in one piece":            {nodes(small), Resources{CPU: 1000}, nil, Resources{}, 4},
		"larger than any hole":    {nodes(small), Resources{CPU: 2000}, nil, Resources{}, 0},
		"on nodes that have it": {
			nodes(small, gpu), Resources{CPU: 1000, Other: map[string]int64{"gpu": 1}}, nil, Resources{}, 2,
		},
		"on nodes with a label": {
			nodes(small, gpu), Resources{CPU: 1000}, &NodeClaim{Selector: map[string]string{"gpu": "yes"}}, Resources{},
			8,
		},
		"pods that wait for a node too": {
			&Room{Free: Resources{CPU: 5000, Pods: 39}, Pending: Resources{CPU: 1000, Pods: 1}, Nodes: []Node{small}},
			Resources{CPU: 1000}, nil, Resources{}, 3,
		},
		"on nodes, some promised": {nodes(small), Resources{CPU: 1000}, nil, Resources{CPU: 2000, Pods: 2}, 2},
		"only tainted nodes": {
			nodes(Node{
				Count: 1, Free: Resources{CPU: 1000, Pods: 1},
				Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			}),
			Resources{}, nil, Resources{}, 0,
		},
		"tainted nodes, tolerated": {
			nodes(Node{
				Count: 1, Free: Resources{CPU: 1000, Pods: 1},
				Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			}),
			Resources{}, &NodeClaim{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			Resources{}, 1,
		},
		"node affinity": {nodes(small, gpu), Resources{CPU: 1000},
			&NodeClaim{Affinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "gpu", Operator: corev1.NodeSelectorOpDoesNotExist},
					},
				},
			}}}, Resources{}, 4},
		"a lie": {
			&Room{
				Free:  Resources{CPU: 1 << 62, Pods: 1 << 62},
				Nodes: []Node{{Count: 1 << 62, Free: Resources{CPU: 1 << 62, Pods: 1 << 62}}},
			}, Resources{
				CPU: 1,
			}, nil, Resources{}, math.MaxInt32,
		},
	}
	for name, tc := range tests {
		if got := Estimate(tc.room, tc.request, tc.claim, tc.promised); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestDecisionsDoNotDependOnTheOrderOfClusters(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for _, strategy := range []Strategy{Duplicated, StaticWeight, DynamicWeight, Aggregated, Even} {
		var clusters []Cluster
		for i := range 20 {
			clusters = append(clusters, member(fmt.Sprintf("m%02d", i), withRoom(rng.Int63n(5)+3),
				inRegion(fmt.Sprint("r", i%4))))
		}
		b := workload(17, Placement{Strategy: strategy, Spread: []SpreadConstraint{
			{Field: FieldRegion, Min: 2, Max: atMost(3)}, {Field: FieldCluster, Min: 4, Max: atMost(9)},
		}})
		want := Decide(NewSnapshot(clusters), b)
		for range 20 {
			rng.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
			if got := Decide(NewSnapshot(clusters), b); !reflect.DeepEqual(got.Targets, want.Targets) ||
				got.Explain() != want.Explain() {
				t.Fatalf("strategy %d: %s\nbut before: %s", strategy, got.Explain(), want.Explain())
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	var clusters []Cluster
	apis := NewAPIs(deployment) // clusters that serve the same share it
	for i := range 100 {
		clusters = append(clusters, member(fmt.Sprintf("m%03d", i), withRoom(100), func(c *Cluster) { c.APIs = apis }))
	}
	s := NewSnapshot(clusters)
	for name, strategy := range map[string]Strategy{
		"duplicated": Duplicated, "static": StaticWeight, "dynamic": DynamicWeight, "aggregated": Aggregated,
		"even": Even,
	} {
		b.Run(name, func(b *testing.B) {
			binding := workload(200, Placement{Strategy: strategy})
			for b.Loop() {
				Decide(s, binding)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
