package growth

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func part(name string, replicas int32, each int64) core.Component {
	return core.Component{Name: name, Replicas: replicas, Request: request(each)}
}

// unit has an item of components wait for member m.
func unit(name string, components ...core.Component) func(*Input) {
	return func(in *Input) {
		in.Items = append(in.Items, Item{
			Name: name, Replicas: 1, Components: components, Clusters: []string{"m"}, MaxClusters: 1,
		})
	}
}

func TestUnits(t *testing.T) {
	noLarge := pool("large", func(p *Pool) { p.Ceiling = 0 })
	// b is another member with two free nodes of 4 cores.
	b := func(in *Input) {
		in.Members = append(in.Members,
			Member{
				Name: "b", Joined: true, Room: &core.Room{
					Free: cores(8), Nodes: []core.Node{{Count: 2, Free: cores(4)}},
				},
			})
		for i := range in.Items {
			in.Items[i].Clusters = []string{"b", "m"}
		}
	}
	fast := map[string]string{"disk": "fast"}
	onFast := core.Component{Name: "f", Replicas: 1, Request: request(2), Nodes: &core.NodeClaim{Selector: fast}}
	for name, tc := range map[string]struct {
		in      Input
		want    string
		refused string
		waiting int64
	}{
		"machines for all components": {
			world(nothing, unit("u", part("a", 2, 2), part("b", 1, 4))), "EnlargePool m/small 3-3", "", 1,
		},
		"not split where it is in the way": {world(nothing, unit("u", part("a", 2, 3)), func(in *Input) {
			in.Members[0].Room = &core.Room{Free: cores(4), Nodes: []core.Node{{Count: 2, Free: cores(2)}}}
		}), "EnlargePool m/small 3-3", "", 1},
		"what is free counts": {world(nothing, unit("u", part("a", 2, 2), part("b", 1, 4)), func(in *Input) {
			in.Members[0].Room = &core.Room{Free: cores(4), Nodes: []core.Node{{Count: 1, Free: cores(4)}}}
		}), "EnlargePool m/small 2-3", "", 1},
		"free for all of them": {world(nothing, unit("u", part("a", 2, 2), part("b", 1, 4)), b), "", "", 0},
		"not over two members": {
			world(nothing, unit("u", part("a", 2, 4), part("b", 2, 4)), b, noLarge), "EnlargePool m/small 5-5", "", 1,
		},
		"a large machine for one of them": {
			world(nothing, unit("u", part("a", 1, 12), part("b", 1, 4))), "EnlargePool m/large 1-2", "", 1,
		},
		"two pools for two components": {
			world(nothing, unit("u", part("a", 1, 4), onFast), pool("large", func(p *Pool) { p.Node.Labels = fast }),
				func(in *Input) { in.Machines[1].Capacity = cores(3) }),
			"EnlargePool m/large 1-2, EnlargePool m/small 2-3", "", 1,
		},
		"two pools where one isn't enough": {
			world(nothing, unit("u", part("a", 3, 4)), pool("small", func(p *Pool) { p.Ceiling = 2 }),
				pool("large", func(p *Pool) { p.Ceiling = 2 }), func(in *Input) { in.Machines[1].Capacity = cores(5) }),
			"EnlargePool m/large 2-2, EnlargePool m/small 2-3", "", 1,
		},
		"all or nothing": {
			world(nothing, unit("u", part("a", 1, 4), part("b", 2, 4)), pool("small", func(p *Pool) { p.Ceiling = 3 }),
				noLarge), "", "u: no machines for its components together: component b: pool m/small may have 3 " +
				"machines", 0,
		},
		"within the limits": {
			world(nothing, unit("u", part("a", 3, 4)), noLarge, func(in *Input) { in.Limits.Machines = 2 }), "",
			"limits.machines is 2", 0,
		},
		"step by step": {
			world(nothing, unit("u", part("a", 3, 4)), noLarge, func(in *Input) { in.Limits.Step = 1 }),
			"EnlargePool m/small 2-3", "u: 1 of the 3 machines that its components need: limits.step is 1", 1,
		},
		"the next step": {
			world(nothing, enlarged(time.Minute, 4), unit("u", part("a", 3, 4)), noLarge), "EnlargePool m/small 7-7",
			"", 1,
		},
		"what is on its way": {
			world(nothing, enlarged(time.Minute, 3), unit("u", part("a", 2, 4))), "", "", 1,
		},
		"kept until the last one is there": {world(nothing, enlarged(14*time.Minute, 4), unit("u", part("a", 2, 4)),
			func(in *Input) {
				in.Members[0].Room = &core.Room{Free: cores(4), Nodes: []core.Node{{Count: 1, Free: cores(4)}}}
			}), "", "", 1},
		"cool-down": {
			world(nothing, enlarged(10*time.Second, 5), unit("u", part("a", 3, 4))), "",
			"u waits: pool m/small was enlarged less than 30s ago", 0,
		},
		"too large for any": {
			world(nothing, unit("u", part("a", 1, 1), part("b", 1, 17))), "", "component b: pool m/large cannot run it",
			0,
		},
		"a shoot": {
			world(template, nothing, unit("u", part("a", 2, 4), part("b", 1, 8)),
				func(in *Input) { newShoot(&in.Items[0]) }), "CreateShoot extra-1", "", 1,
		},
		"not one that begins with too few": {
			world(template, nothing, unit("u", part("a", 3, 4), part("b", 1, 8)),
				func(in *Input) { newShoot(&in.Items[0]) }), "",
			"that a shoot of the template begins with cannot run all", 0,
		},
		"one shoot for two": {
			world(template, nothing, unit("u", part("a", 1, 8)), unit("v", part("a", 1, 8)),
				func(in *Input) { newShoot(&in.Items[0]); newShoot(&in.Items[1]) }), "CreateShoot extra-1", "", 2,
		},
		"before what is smaller": {world(unit("u", part("a", 2, 4))), "EnlargePool m/small 5-5", "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			out := Decide(tc.in)
			if got := summary(out); got != tc.want || out.Waiting != tc.waiting {
				t.Errorf("got %q, %d waiting, want %q, %d (%v)", got, out.Waiting, tc.want, tc.waiting, out.Refused)
			}
			if refused := strings.Join(out.Refused, "\n"); !strings.Contains(refused, tc.refused) ||
				tc.refused == "" && refused != "" {
				t.Errorf("refused %q, want %q", refused, tc.refused)
			}
			for i := range tc.in.Items {
				slices.Reverse(tc.in.Items[i].Components)
			}
			if !reflect.DeepEqual(out, Decide(tc.in)) {
				t.Error("components in another order give another answer")
			}
		})
	}
}

// A unit that is not refused has room in one member once the machines are there, as the placement of objects reckons;
// one that is refused would have none if every pool were as large as it may be.
func TestUnitsHaveRoomInTheEnd(t *testing.T) {
	grew, refused := 0, 0
	for seed := range uint64(2000) {
		m := newModel(t, seed)
		m.in.Limits, m.in.Template = Limits{Machines: 1000, Step: 1000}, nil
		m.pools(func(_ *Member, p *Pool, key string) {
			m.used[key] = nil
			for range p.Nodes {
				m.used[key] = append(m.used[key], m.r.Int64N(eachCores+1))
			}
		})
		u := m.unit()
		m.in.Items = []Item{u}
		m.show()
		out := Decide(m.in)
		switch {
		case len(out.Refused) > 0:
			refused++
			if name := m.room(u, func(p *Pool) int64 { return max(p.Nodes, p.Ceiling) }); name != "" {
				t.Fatalf("seed %d: refused although %s could have room: %v", seed, name, out.Refused)
			}
		default:
			for _, a := range out.Actions {
				grew++
				i := slices.IndexFunc(m.in.Members, func(member Member) bool { return member.Name == a.Shoot })
				m.change(&m.in.Members[i], a)
			}
			if m.room(u, func(p *Pool) int64 { return max(p.Nodes, p.Minimum) }) == "" {
				t.Fatalf("seed %d: no member has room for %+v after %+v", seed, u.Components, out.Actions)
			}
		}
	}
	if grew == 0 || refused == 0 {
		t.Errorf("%d grew, %d were refused: both have to be seen", grew, refused)
	}
}

// room names a member that has room for a unit with so many nodes in its pools.
func (m *model) room(u Item, nodes func(*Pool) int64) string {
	var b core.Binding
	b.SetOf(u.Components)
	for _, member := range m.in.Members {
		room := core.Room{Free: member.Room.Free, Nodes: slices.Clone(member.Room.Nodes)}
		for j := range member.Pools {
			p := &member.Pools[j]
			more := core.Node{Count: nodes(p) - p.Nodes, Free: cores(eachCores)}
			room.Free, room.Nodes = room.Free.Plus(more.Free.Times(more.Count)), append(room.Nodes, more)
		}
		if core.NewSnapshot([]core.Cluster{{Name: member.Name, Room: &room}}).Estimate(member.Name, b) > 0 {
			return member.Name
		}
	}
	return ""
}
