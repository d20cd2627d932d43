package core

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// unit wants one cluster for all components, which are given as "name:replicas*millicores".
func unit(t *testing.T, components string, p Placement) Binding {
	t.Helper()
	b := Binding{Kind: deployment, Placement: p}
	b.Placement.Spread = append(b.Placement.Spread, spreadOver(FieldCluster, 1, 1))
	b.SetOf(componentsOf(t, components))
	return b
}

func componentsOf(t *testing.T, text string) []Component {
	t.Helper()
	var components []Component
	for _, field := range strings.Fields(text) {
		c := Component{}
		name, numbers, _ := strings.Cut(field, ":")
		if _, err := fmt.Sscanf(numbers, "%d*%d", &c.Replicas, &c.Request.CPU); err != nil {
			t.Fatalf("%q: %v", field, err)
		}
		c.Name = name
		components = append(components, c)
	}
	return components
}

// withCPU has room for many pods.
func withCPU(millicores int64) func(*Cluster) {
	return func(c *Cluster) { c.Room = &Room{Free: Resources{Pods: 100, CPU: millicores}} }
}

func TestAUnitGoesToOneClusterThatHoldsAllOfIt(t *testing.T) {
	divided, fleet := Placement{Strategy: Aggregated}, []Cluster{
		member("m1", withCPU(3000)), member("m2", withCPU(9000)), member("m3", withCPU(20000)), member("m4"),
	}
	const flink = "jobmanager:1*1000 taskmanager:2*1500" // 4 CPUs
	on := func(cluster string) func(*Binding) {
		return func(b *Binding) { b.Previous = []Target{{cluster, 1}} }
	}
	tests := []struct {
		name       string
		components string
		placement  Placement
		change     func(*Binding)
		want       string
	}{
		{"where most sets fit", flink, divided, nil, "m3:1"},
		{"where it is, as long as there is no reason to leave", flink, divided, on("m2"), "m2:1"},
		{"where it is, also when it would not fit there a second time", flink, divided, on("m1"), "m1:1"},
		{
			"not where it is being moved away from", flink, divided,
			func(b *Binding) { on("m3")(b); b.Evicted = []string{"m3"} }, "m2:1",
		},
		{"nowhere, if no single cluster holds it", "worker:11*2000", divided, nil, "no room"},
		{"with a component that has no replicas", "a:0*90000 b:1*20000", divided, nil, "m3:1"},
		{"when divided evenly, where nothing speaks against it", flink, Placement{Strategy: Even}, nil, "m4:1"},
		{
			"by weight, whatever the room", flink, Placement{Strategy: StaticWeight, Weights: weighing(t, "m1:2 m2:1")},
			nil, "m1:1",
		},
		{"duplicated, where most sets fit", flink, Placement{}, nil, "m3:1"},
		{"duplicated, also where there is no room", "worker:11*2000", Placement{Terms: naming("m1")}, nil, "m1:1"},
		{"to an overflow tier when the main one is full", flink, Placement{Strategy: Aggregated, Terms: []Term{{
			Affinity: Affinity{Names: []string{"m1"}}, Overflow: []Affinity{{Names: []string{"m2"}}},
		}}}, nil, "m2:1"},
	}
	for _, tc := range tests {
		b := unit(t, tc.components, tc.placement)
		if tc.change != nil {
			tc.change(&b)
		}
		if d := Decide(NewSnapshot(fleet), b); outcomeOf(d) != tc.want {
			t.Errorf("%s: got %s, want %s\n%s", tc.name, outcomeOf(d), tc.want, d.Explain())
		}
	}
}

func TestAUnitWithoutRoomSaysThatSetsAreCounted(t *testing.T) {
	b := unit(t, "worker:4*1000", Placement{Strategy: DynamicWeight})
	d := Decide(NewSnapshot([]Cluster{member("m1", withCPU(3999))}), b)
	if d.Failure == nil || !strings.HasSuffix(d.Failure.Message, "1 clusters have room for 0 of 1 sets of components") {
		t.Errorf("got %+v", d.Failure)
	}
}

func TestOnlyOneClusterMakesAUnit(t *testing.T) {
	unbounded := spreadOver(FieldCluster, 1, 1)
	unbounded.Max = nil
	tests := map[string]struct {
		constraints []SpreadConstraint
		want        bool
	}{
		"none":                 {nil, false},
		"one cluster":          {[]SpreadConstraint{spreadOver(FieldCluster, 1, 1)}, true},
		"one region":           {[]SpreadConstraint{spreadOver(FieldRegion, 1, 1)}, false},
		"two clusters":         {[]SpreadConstraint{spreadOver(FieldCluster, 2, 2)}, false},
		"one or two clusters":  {[]SpreadConstraint{spreadOver(FieldCluster, 1, 2)}, false},
		"one cluster at least": {[]SpreadConstraint{unbounded}, false},
		"one region and one cluster": {
			[]SpreadConstraint{spreadOver(FieldRegion, 1, 1), spreadOver(FieldCluster, 1, 1)}, true,
		},
	}
	for name, tc := range tests {
		if got := OneCluster(tc.constraints); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// nodesWith are nodes with so many millicores each.
func nodesWith(millicores ...int64) []Node {
	var nodes []Node
	for _, free := range millicores {
		nodes = append(nodes, Node{Count: 1, Free: Resources{CPU: free, Pods: 10}})
	}
	return nodes
}

// roomOf adds up nodes.
func roomOf(nodes []Node) *Room {
	room := &Room{Nodes: nodes}
	for _, n := range nodes {
		room.Free = room.Free.Plus(n.Free.Times(n.Count))
	}
	return room
}

func TestSetsFitNodeByNode(t *testing.T) {
	labelled := nodesWith(4000, 4000)
	labelled[1].Labels = labels.Set{"disk": "fast"}
	onFast := componentsOf(t, "a:1*4000")
	onFast[0].Nodes = &NodeClaim{Selector: map[string]string{"disk": "fast"}}
	tests := []struct {
		name       string
		nodes      []Node
		components []Component
		want       int64
	}{
		{"components share a node", nodesWith(4000), componentsOf(t, "a:1*1000 b:2*1500"), 1},
		{"each fits alone, both don't", nodesWith(2000, 2000), componentsOf(t, "a:1*2000 b:1*1500 c:1*1000"), 0},
		{"free in sum is not free in one piece", nodesWith(1000, 1000, 1000), componentsOf(t, "a:1*2000"), 0},
		{
			"the component that fits in few places goes first", nodesWith(3000, 1000),
			componentsOf(t, "a:1*1000 b:1*3000"), 1,
		},
		{"so does one that wants nodes of a kind", labelled, append(componentsOf(t, "b:1*1000"), onFast...), 1},
		{
			"many alike", []Node{{Count: 1000, Free: Resources{CPU: 8000, Pods: 20}}},
			componentsOf(t, "a:1*2000 b:3*2000"), 1000,
		},
		{
			"more than are worth counting", []Node{{Count: 1 << 20, Free: Resources{CPU: 1 << 40, Pods: 1 << 40}}},
			componentsOf(t, "a:2*1 b:3*1"), (1<<31 - 1) / 3,
		},
	}
	for _, tc := range tests {
		b := Binding{}
		b.SetOf(tc.components)
		got := NewSnapshot([]Cluster{{Name: "m", Room: roomOf(tc.nodes)}}).Estimate("m", b)
		if got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSetsLeaveRoomForWhatIsPromisedAndForPodsWithoutANode(t *testing.T) {
	b := Binding{}
	b.SetOf(componentsOf(t, "a:1*1000 b:2*1500"))
	room := roomOf(nodesWith(4000, 4000, 4000))
	room.Pending = Resources{CPU: 100, Pods: 1}
	s := NewSnapshot([]Cluster{{Name: "m", Room: room}}).WithPromises(Promises{"m": {CPU: 3900, Pods: 2}})
	if got := s.Estimate("m", b); got != 2 {
		t.Errorf("got %d, want 2: what waits and what is promised are one set", got)
	}
}

// What is promised fits: a search over all ways to put the pods on the nodes finds one. It is never more than the sums
// allow.
func TestSetsThatAreCountedFit(t *testing.T) {
	r := rand.New(rand.NewSource(18))
	counted, possible := int64(0), int64(0)
	for range cases(t, 3_000) {
		var nodes []Node
		for range 1 + r.Intn(3) {
			nodes = append(nodes, Node{
				Count: int64(1 + r.Intn(2)), Free: Resources{CPU: int64(r.Intn(6) * 500), Pods: int64(r.Intn(3))},
			})
		}
		b := Binding{}
		b.SetOf(randomComponents(r))
		if b.Request.Pods == 0 {
			continue
		}
		got := NewSnapshot([]Cluster{{Name: "m", Room: roomOf(nodes)}}).Estimate("m", b)
		best := int64(0)
		for placeable(nodes, b.Components, best+1) {
			best++
		}
		if got > best {
			t.Fatalf("%d sets of %+v are promised on %+v, %d fit", got, b.Components, nodes, best)
		}
		counted, possible = counted+got, possible+best
	}
	if counted*100 < possible*95 {
		t.Errorf("of %d sets that fit, %d are found", possible, counted)
	}
}

// placeable tries all ways.
func placeable(nodes []Node, components []Component, sets int64) bool {
	var free, pods []Resources
	for _, n := range nodes {
		for range n.Count {
			free = append(free, n.Free)
		}
	}
	for _, c := range components {
		for range int64(c.Replicas) * sets {
			pods = append(pods, onePodAtLeast(c.Request))
		}
	}
	slices.SortFunc(pods, func(a, b Resources) int { return int(b.CPU - a.CPU) })
	return placeAll(free, pods)
}

func placeAll(free, pods []Resources) bool {
	if len(pods) == 0 {
		return true
	}
	tried := map[string]bool{}
	for i := range free {
		if key := fmt.Sprint(free[i]); free[i].hold(&pods[0]) == 0 || tried[key] {
			continue
		} else {
			tried[key] = true
		}
		before := free[i]
		free[i] = before.Minus(pods[0])
		if placeAll(free, pods[1:]) {
			free[i] = before
			return true
		}
		free[i] = before
	}
	return false
}
