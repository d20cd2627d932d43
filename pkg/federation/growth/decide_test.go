package growth

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

const gib = 1 << 30

var now = time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)

func cores(n int64) core.Resources {
	return core.Resources{CPU: n * 1000, Memory: n * 2 * gib, Pods: 110}
}

// request asks for cores and as much memory as goes with them.
func request(n int64) core.Resources {
	return core.Resources{CPU: n * 1000, Memory: n * 2 * gib, Pods: 1}
}

// world has a member with a pool of small machines (4 cores, 0.2 an hour) and one of large ones (16 cores, 0.9).
func world(changes ...func(*Input)) Input {
	in := Input{
		Now:      now,
		Machines: []Machine{{"small", cores(4), 200}, {"large", cores(16), 900}},
		Limits:   Limits{Machines: 20, Step: 10, Shoots: 2},
		CoolDown: 30 * time.Second, Idle: 10 * time.Minute,
		Members: []Member{{Name: "m", Joined: true, Room: &core.Room{}, Pools: []Pool{
			{Name: "large", MachineType: "large", Minimum: 0, Maximum: 2, Ceiling: 8, Trusted: true},
			{Name: "small", MachineType: "small", Minimum: 1, Maximum: 3, Nodes: 1, Ceiling: 8, Trusted: true},
		}}},
		Items: []Item{{Name: "ns/a", Replicas: 3, Request: request(2), Clusters: []string{"m"}}},
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func item(name string, replicas, each int64, change ...func(*Item)) func(*Input) {
	return func(in *Input) {
		i := Item{Name: name, Replicas: replicas, Request: request(each), Clusters: []string{"m"}}
		for _, c := range change {
			c(&i)
		}
		in.Items = append(in.Items, i)
	}
}

func nothing(in *Input) { in.Items = nil }

func pool(name string, change func(*Pool)) func(*Input) {
	return func(in *Input) {
		for j := range in.Members[0].Pools {
			if p := &in.Members[0].Pools[j]; p.Name == name {
				change(p)
			}
		}
	}
}

func template(in *Input) {
	in.Template = &Template{Prefix: "extra", Pools: []Pool{{Name: "w", MachineType: "large", Minimum: 1, Maximum: 1}}}
}

// enlarged is what the fleet made of pool small some time ago: 2 machines more than the one it had.
func enlarged(ago time.Duration, nodes int64) func(*Input) {
	return pool("small", func(p *Pool) {
		p.Minimum, p.Maximum, p.Nodes = 5, 5, nodes
		p.Record = &Record{Minimum: 1, Maximum: 3, Nodes: 1, SetMinimum: 5, SetMaximum: 5, Since: now.Add(-ago)}
	})
}

// free is one machine.
func free(in *Input) { in.Members[0].Room.Free = cores(4) }

// full pools get no more machines.
func full(in *Input) {
	for j := range in.Members[0].Pools {
		p := &in.Members[0].Pools[j]
		p.Ceiling = min(p.Ceiling, p.Minimum)
	}
}

// pending pods wait for a node.
func pending(in *Input) { in.Members[0].Room.Pending = request(2) }

func newShoot(i *Item) { i.Clusters, i.NewShoot = nil, true }

func grown(change func(*Member)) func(*Input) {
	return func(in *Input) {
		m := Member{Name: "extra-1", Grown: true, Joined: true, Created: now.Add(-time.Hour), Room: &core.Room{},
			Pools: []Pool{
				{Name: "w", MachineType: "large", Minimum: 1, Maximum: 1, Nodes: 1, Trusted: true},
			}}
		change(&m)
		in.Members = append(in.Members, m)
	}
}

// actions as text: kind, shoot/pool, minimum-maximum.
func summary(out Output) string {
	var lines []string
	for _, a := range out.Actions {
		line := string(a.Kind) + " " + a.Shoot
		if a.Pool != "" {
			line += "/" + a.Pool + " " + money(a.Minimum * 1000)[:1] + "-" + money(a.Maximum * 1000)[:1]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func TestDecide(t *testing.T) {
	claim := func(c *core.NodeClaim) func(*Item) { return func(i *Item) { i.Nodes = c } }
	cost := int64(500)
	for name, tc := range map[string]struct {
		in      Input
		want    string
		refused string
	}{
		"nothing waits":                   {world(nothing), "", ""},
		"the cheapest sufficient machine": {world(), "EnlargePool m/small 3-3", ""},
		"a large one is cheaper for much": {
			world(nothing, item("b", 8, 2), func(in *Input) { in.Machines[1].Cost = 700 }), "EnlargePool m/large 1-2",
			"",
		},
		"large requests first, the small ones beside them": {
			world(nothing, item("b", 1, 12), item("c", 2, 2)), "EnlargePool m/large 1-2", "",
		},
		"too large for any": {
			world(nothing, item("b", 1, 17)), "", "pool m/large cannot run it on an empty node of type large",
		},
		"what is free comes first": {
			world(func(in *Input) { in.Members[0].Room.Free = cores(2) }), "EnlargePool m/small 2-3", "",
		},
		"what is on its way counts": {world(enlarged(time.Minute, 1)), "", ""},
		"and more is asked for":     {world(enlarged(time.Minute, 4), item("b", 1, 4)), "EnlargePool m/small 7-7", ""},
		"not for ever": {
			world(enlarged(16*time.Minute, 1)), "LowerMinimum m/small 1-5, EnlargePool m/large 1-2", "",
		},
		"cool-down": {
			world(enlarged(10*time.Second, 5)), "", "ns/a waits: pool m/small was enlarged less than 30s ago",
		},
		"limit of machines": {
			world(func(in *Input) { in.Limits.Machines = 1 }), "EnlargePool m/small 2-3", "limits.machines is 1",
		},
		"limit of cost": {
			world(func(in *Input) { in.Limits.Cost = &cost }), "EnlargePool m/small 3-3", "",
		},
		"limit of cost reached": {
			world(nothing, item("b", 5, 2), func(in *Input) { in.Limits.Cost = &cost }), "EnlargePool m/small 3-3",
			"limits.costPerHour is 0.500, 0.000 is used, and a machine costs 0.200",
		},
		"step": {
			world(func(in *Input) { in.Limits.Step = 1 }), "EnlargePool m/small 2-3", "limits.step is 1",
		},
		"ceiling": {
			world(pool("small", func(p *Pool) { p.Ceiling = 2 }), pool("large", func(p *Pool) { p.Ceiling = 0 })),
			"EnlargePool m/small 2-3", "pool m/small may have 2 machines",
		},
		"not selected": {
			world(pool("small", func(p *Pool) { p.Ceiling = 0 })), "EnlargePool m/large 1-2", "",
		},
		"blocked": {
			world(pool("small", func(p *Pool) { p.Blocked = "is asleep" }),
				pool("large", func(p *Pool) { p.Ceiling = 0 })), "", "pool m/small is asleep",
		},
		"of an unknown machine type": {
			world(pool("small", func(p *Pool) { p.MachineType = "x" }), pool("large", func(p *Pool) { p.Ceiling = 0 })),
			"", `machine type "x"`,
		},
		"nodes that it must not use": {
			world(nothing, item("b", 1, 2, claim(&core.NodeClaim{Selector: map[string]string{"disk": "fast"}})),
				pool("large", func(p *Pool) { p.Node.Labels = map[string]string{"disk": "fast"} })),
			"EnlargePool m/large 1-2", "",
		},
		"taints that it does not tolerate": {
			world(pool("small", func(p *Pool) {
				p.Node.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
			})), "EnlargePool m/large 1-2", "",
		},
		"another member": {
			world(nothing, item("b", 1, 2, func(i *Item) { i.Clusters = []string{"other"} })), "",
			"neither pools nor shoots",
		},
		"useless": {
			world(nothing, item("b", 1, 2, func(i *Item) { i.Useless = "limited" })), "", "b: limited",
		},
		"a shoot when no pool can": {world(template, nothing, item("b", 2, 2, newShoot)), "CreateShoot extra-1", ""},
		"a pool before a shoot": {
			world(template, nothing, item("b", 2, 2, func(i *Item) { i.NewShoot = true })), "EnlargePool m/small 2-3",
			"",
		},
		"a shoot would not do": {
			world(template, nothing, item("b", 2, 2, func(i *Item) { i.Clusters = nil })), "",
			"a shoot of the template would not take it",
		},
		"a name that is free": {
			world(template, func(in *Input) { in.Taken = []string{"extra-1"} }, nothing, item("b", 2, 2, newShoot)),
			"CreateShoot extra-2", "",
		},
		"one shoot after the other": {
			world(template, nothing, item("b", 20, 2, newShoot), item("c", 20, 2, newShoot)), "CreateShoot extra-1",
			"another shoot is created first",
		},
		"a shoot on its way counts": {
			world(template, nothing, grown(func(m *Member) {
				m.Joined, m.Created, m.Pools[0].Nodes = false, now.Add(-time.Minute), 0
			}), item("b", 2, 2, func(i *Item) {
				i.Clusters, i.NewShoot = []string{"extra-1"}, true
			})), "", "",
		},
		"also if it has not joined": {
			world(template, nothing, grown(func(m *Member) {
				m.Joined, m.Created, m.Pools[0].Nodes = false, now.Add(-time.Minute), 0
			}), item("b", 2, 2, newShoot)), "", "",
		},
		"also while it is not ready": {
			world(template, nothing, grown(func(m *Member) {
				m.Created, m.Room.Free = now.Add(-time.Minute), cores(16)
			}), item("b", 2, 2, newShoot)), "", "",
		},
		"as many shoots as may be": {
			world(template, nothing, func(in *Input) { in.Limits.Shoots = 0 }, item("b", 2, 2, newShoot)), "",
			"shoots.maximum is 0",
		},
		"at most one cluster": {
			world(func(in *Input) { in.Items[0].MaxClusters = 1 }), "EnlargePool m/small 3-3", "",
		},
		"somebody else's change wins": {
			world(nothing, enlarged(time.Hour, 5), pool("small", func(p *Pool) { p.Maximum = 9 })),
			"LeavePool m/small 5-9", "",
		},
		"kept for a while":          {world(nothing, enlarged(9*time.Minute, 5)), "", ""},
		"minimum first":             {world(nothing, enlarged(10*time.Minute, 5)), "LowerMinimum m/small 1-5", ""},
		"not while something waits": {world(nothing, enlarged(14*time.Minute, 3), item("b", 1, 2)), "", ""},
		"not before what waits has got its place": {
			world(nothing, enlarged(14*time.Minute, 5), free, item("b", 1, 2)), "", "",
		},
		"not while what waits cannot use it yet": {
			world(nothing, enlarged(14*time.Minute, 5), full, item("b", 1, 2)), "", "pool m/small may have 5 machines",
		},
		"not kept for what waits for ever": {
			world(nothing, enlarged(16*time.Minute, 5), full, item("b", 1, 2)), "LowerMinimum m/small 1-5",
			"pool m/small may have 5 machines",
		},
		"not kept for what could not use it": {
			world(nothing, enlarged(14*time.Minute, 5), full, item("b", 1, 5)), "LowerMinimum m/small 1-5",
			"cannot run it on an empty node",
		},
		"never": {
			world(nothing, enlarged(time.Hour, 5), func(in *Input) { in.Idle = -1 }), "", "",
		},
		"never, but at the end": {
			world(nothing, enlarged(time.Second, 5), func(in *Input) { in.Idle, in.Ending = -1, true }),
			"LowerMinimum m/small 1-5", "",
		},
		"maximum when nodes are gone": {world(nothing, lowered(3, true)), "RestorePool m/small 1-3", ""},
		"not while they are used":     {world(nothing, lowered(4, true)), "", ""},
		"not if nodes may be missing": {world(nothing, lowered(3, false)), "", ""},
		"not while pods wait there":   {world(nothing, lowered(3, true), pending), "", ""},
		"not if they wait for ever": {
			world(nothing, lowered(3, true), pending, pool("small", func(p *Pool) {
				p.Record.Since = now.Add(-16 * time.Minute)
			})), "RestorePool m/small 1-3", "",
		},
		"at the end whatever waits": {
			world(nothing, lowered(3, true), pending, func(in *Input) { in.Ending = true }), "RestorePool m/small 1-3",
			"",
		},
		"enlarged again": {
			world(nothing, lowered(3, true), item("b", 1, 2)), "EnlargePool m/small 4-5", "",
		},
		"a shoot that is used": {world(nothing, grown(func(m *Member) { m.Used = true })), "", ""},
		"unused for a moment": {
			world(nothing, grown(func(m *Member) { m.UnusedSince = now.Add(-time.Minute) })), "", "",
		},
		"unused": {
			world(nothing, grown(func(m *Member) { m.UnusedSince = now.Add(-time.Hour) })), "DrainShoot extra-1", "",
		},
		"unused but of use": {
			world(nothing, grown(func(m *Member) { m.UnusedSince, m.Room.Free = now.Add(-time.Hour), cores(16) }),
				item("b", 1, 2, func(i *Item) { i.Clusters = []string{"extra-1"} })), "", "",
		},
		"closed": {
			world(nothing, grown(func(m *Member) {
				m.UnusedSince, m.LeavingSince = now.Add(-time.Hour), now.Add(-time.Second)
			})), "", "",
		},
		"closed for a while": {
			world(nothing, grown(func(m *Member) {
				m.UnusedSince, m.LeavingSince = now.Add(-time.Hour), now.Add(-time.Minute)
			})), "DeleteShoot extra-1", "",
		},
		"used after all": {
			world(nothing, grown(func(m *Member) { m.Used, m.LeavingSince = true, now.Add(-time.Minute) })),
			"KeepShoot extra-1", "",
		},
		"kept instead of a new one": {
			world(template, nothing, grown(func(m *Member) { m.LeavingSince = now.Add(-time.Minute) }),
				item("b", 1, 2, newShoot)), "KeepShoot extra-1", "is kept",
		},
		"on its way out": {world(nothing, grown(func(m *Member) { m.Deleting = true })), "", ""},
		"the end": {
			world(nothing, grown(func(m *Member) {}), func(in *Input) { in.Ending = true }), "DrainShoot extra-1", "",
		},
		"no growth at the end": {world(func(in *Input) { in.Ending = true }), "", "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			out := Decide(tc.in)
			if got := summary(out); got != tc.want {
				t.Errorf("got %q, want %q (%v)", got, tc.want, out.Refused)
			}
			if refused := strings.Join(out.Refused, "\n"); !strings.Contains(refused, tc.refused) ||
				tc.refused == "" && refused != "" {
				t.Errorf("refused %q, want %q", refused, tc.refused)
			}
			if !reflect.DeepEqual(out, Decide(tc.in)) {
				t.Error("the same twice gives another answer")
			}
		})
	}
}

// lowered is pool small after its minimum was lowered.
func lowered(nodes int64, trusted bool) func(*Input) {
	return func(in *Input) {
		enlarged(time.Minute, nodes)(in)
		pool("small", func(p *Pool) { p.Minimum, p.Record.SetMinimum, p.Trusted = 1, 1, trusted })(in)
	}
}
