package growth

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// model is a small world in which decisions are carried out: machines come after a while, what waits is placed on them,
// and the shoots' autoscalers remove what is not used, and have machines made for pods that are not the fleet's.
type model struct {
	t  *testing.T
	r  *rand.Rand
	in Input
	// used are the cores that are taken on the nodes of a pool, by node.
	used map[string][]int64
	// waiting are the cores that a pod of a member's own waits for, making the pool that its autoscaler has a machine
	// made in for it; both by member.
	waiting map[string]int64
	making  map[string]string
	// original is what pools were before the fleet touched them.
	original map[string][2]int64
	log      []string
}

const eachCores = 4 // of a machine

func newModel(t *testing.T, seed uint64) *model {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &model{
		t: t, r: r, used: map[string][]int64{}, original: map[string][2]int64{}, waiting: map[string]int64{},
		making: map[string]string{},
	}
	cost := r.Int64N(4000)
	m.in = Input{
		Now: now, Machines: []Machine{
			{"small", cores(eachCores), r.Int64N(500)}, {"dear", cores(eachCores), 500 + r.Int64N(500)},
		},
		Limits:   Limits{Machines: r.Int64N(15), Cost: &cost, Step: 1 + r.Int64N(5), Shoots: r.IntN(3)},
		CoolDown: time.Duration(r.IntN(60)) * time.Second, Idle: time.Duration(1+r.IntN(10)) * time.Minute,
		Template: &Template{
			Prefix: "new", Pools: []Pool{{Name: "w", MachineType: "small", Minimum: 1, Maximum: 1 + r.Int64N(2)}},
		},
	}
	for i := range 1 + r.IntN(3) {
		member := Member{Name: fmt.Sprintf("m%d", i), Joined: true}
		for j := range 1 + r.IntN(2) {
			p := Pool{
				Name: fmt.Sprintf("p%d", j), MachineType: []string{"small", "dear"}[r.IntN(2)], Trusted: true,
				Minimum: r.Int64N(3), Ceiling: r.Int64N(8),
			}
			p.Maximum, p.Nodes = p.Minimum+r.Int64N(3), p.Minimum
			member.Pools = append(member.Pools, p)
			key := member.Name + "/" + p.Name
			m.used[key] = make([]int64, p.Nodes)
			m.original[key] = [2]int64{p.Minimum, p.Maximum}
		}
		m.in.Members = append(m.in.Members, member)
	}
	return m
}

func (m *model) pools(each func(member *Member, p *Pool, key string)) {
	for i := range m.in.Members {
		for j := range m.in.Members[i].Pools {
			p := &m.in.Members[i].Pools[j]
			each(&m.in.Members[i], p, m.in.Members[i].Name+"/"+p.Name)
		}
	}
}

// show has the input say what the world is like.
func (m *model) show() {
	for i := range m.in.Members {
		member := &m.in.Members[i]
		member.Room, member.Used = &core.Room{}, false
		if cores := m.waiting[member.Name]; cores > 0 {
			member.Room.Pending = request(cores)
		}
	}
	m.pools(func(member *Member, p *Pool, key string) {
		p.Nodes = int64(len(m.used[key]))
		for _, used := range m.used[key] {
			free := cores(eachCores).Minus(request(used))
			member.Room.Free = member.Room.Free.Plus(free)
			member.Room.Nodes = append(member.Room.Nodes, core.Node{Count: 1, Free: free})
			member.Used = member.Used || used > 0
		}
	})
	for i := range m.in.Members {
		switch member := &m.in.Members[i]; {
		case member.Used:
			member.UnusedSince = time.Time{}
		case member.UnusedSince.IsZero():
			member.UnusedSince = m.in.Now
		}
	}
}

// live lets time pass: machines come, waiting replicas are placed, some end, autoscalers work.
func (m *model) live() {
	m.in.Now = m.in.Now.Add(time.Duration(5+m.r.IntN(60)) * time.Second)
	for i := range m.in.Members {
		if member := &m.in.Members[i]; !member.Joined && m.r.IntN(3) == 0 {
			member.Joined = true
		}
	}
	m.in.Members = slices.DeleteFunc(m.in.Members,
		func(member Member) bool { return member.Deleting && m.r.IntN(2) == 0 })
	m.pools(func(member *Member, p *Pool, key string) {
		if !member.Joined {
			return
		}
		for int64(len(m.used[key])) < p.Minimum && m.r.IntN(3) == 0 {
			m.used[key] = append(m.used[key], 0)
		}
		for k := len(m.used[key]) - 1; k >= 0; k-- {
			if m.r.IntN(40) == 0 {
				m.used[key][k] = 0
			}
			if m.used[key][k] == 0 && int64(len(m.used[key])) > p.Minimum && p.Maximum > p.Minimum && m.r.IntN(2) == 0 {
				m.used[key] = slices.Delete(m.used[key], k, k+1)
			}
		}
		for k := range m.used[key] {
			m.occupy(member, &m.used[key][k])
		}
	})
	for i := range m.in.Members {
		m.start(&m.in.Members[i])
		m.serve(&m.in.Members[i])
	}
	m.in.Items = slices.DeleteFunc(m.in.Items, func(i Item) bool { return i.Replicas <= 0 || m.r.IntN(50) == 0 })
	if m.r.IntN(4) == 0 && len(m.in.Items) < 5 {
		m.ask()
	}
	for i := range m.in.Items {
		m.in.Items[i].Clusters = m.open()
	}
}

func (m *model) open() []string {
	var names []string
	for i := range m.in.Members {
		if member := &m.in.Members[i]; member.Joined && !member.Deleting && member.LeavingSince.IsZero() {
			names = append(names, member.Name)
		}
	}
	return names
}

func (m *model) ask() {
	if m.r.IntN(4) == 0 {
		m.in.Items = append(m.in.Items, m.unit())
		return
	}
	m.in.Items = append(m.in.Items, Item{
		Name: fmt.Sprintf("i%d", m.r.Uint32()), Replicas: 1 + m.r.Int64N(8),
		Request: request(1 + m.r.Int64N(eachCores+1)), Clusters: m.open(), NewShoot: m.r.IntN(2) == 0,
	})
}

// unit is an item of components.
func (m *model) unit() Item {
	i := Item{
		Name: fmt.Sprintf("u%d", m.r.Uint32()), Replicas: 1, Clusters: m.open(), MaxClusters: 1,
		NewShoot: m.r.IntN(2) == 0,
	}
	for c := range 1 + m.r.IntN(3) {
		i.Components = append(i.Components,
			core.Component{
				Name: fmt.Sprint(c), Replicas: 1 + m.r.Int32N(3), Request: request(1 + m.r.Int64N(eachCores)),
			})
	}
	return i
}

// start has a member take units that it has room for as a whole.
func (m *model) start(member *Member) {
	if !member.Joined || member.Deleting || !member.LeavingSince.IsZero() {
		return
	}
	for i := range m.in.Items {
		if item := &m.in.Items[i]; item.Components != nil && item.Replicas > 0 && m.r.IntN(3) == 0 &&
			m.run(member, item.Components) {
			item.Replicas--
		}
	}
}

// serve is what people run in a member past the fleet: now and then a pod, which starts where there is room, and else
// on a machine that the autoscaler has made within the maximum of a pool, or gives up some time.
func (m *model) serve(member *Member) {
	name := member.Name
	if member.Grown {
		return // What people run there is no use of the shoot.
	}
	switch {
	case m.waiting[name] == 0 && m.r.IntN(20) == 0:
		m.waiting[name] = 1 + m.r.Int64N(eachCores)
	case m.waiting[name] > 0 && m.r.IntN(20) == 0:
		m.waiting[name], m.making[name] = 0, ""
	}
	wanted := m.waiting[name]
	if wanted > 0 && m.run(member, []core.Component{{Replicas: 1, Request: request(wanted)}}) {
		m.waiting[name], m.making[name] = 0, ""
	}
	if m.waiting[name] == 0 {
		return
	}
	for j := range member.Pools {
		p := &member.Pools[j]
		key := name + "/" + p.Name
		switch {
		case m.making[name] == key && m.r.IntN(3) == 0:
			m.used[key] = append(m.used[key], m.waiting[name])
			m.waiting[name], m.making[name] = 0, ""
			return
		case m.making[name] == "" && int64(len(m.used[key])) >= p.Minimum && int64(len(m.used[key])) < p.Maximum:
			m.making[name] = key
		}
	}
}

// run puts components on the nodes of a member, the largest first, if there is room for all.
func (m *model) run(member *Member, components []core.Component) bool {
	var each []int64
	for _, c := range components {
		each = append(each, slices.Repeat([]int64{c.Request.CPU / 1000}, int(c.Replicas))...)
	}
	slices.Sort(each)
	slices.Reverse(each)
	after := map[string][]int64{}
	for _, p := range member.Pools {
		after[member.Name+"/"+p.Name] = slices.Clone(m.used[member.Name+"/"+p.Name])
	}
	for _, wanted := range each {
		if !put(after, wanted) {
			return false
		}
	}
	maps.Copy(m.used, after)
	return true
}

func put(nodes map[string][]int64, wanted int64) bool {
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		for k := range nodes[key] {
			if nodes[key][k]+wanted <= eachCores {
				nodes[key][k] += wanted
				return true
			}
		}
	}
	return false
}

func (m *model) occupy(member *Member, used *int64) {
	if member.Deleting || !member.LeavingSince.IsZero() {
		return
	}
	for i := range m.in.Items {
		item := &m.in.Items[i]
		if each := item.Request.CPU / 1000; item.Replicas > 0 && item.Components == nil && *used+each <= eachCores &&
			m.r.IntN(3) > 0 {
			*used += each
			item.Replicas--
		}
	}
}

// carryOut does what was decided, or is killed in between.
func (m *model) carryOut(out Output) {
	for _, a := range out.Actions {
		m.log = append(m.log, fmt.Sprintf("%s %+v", m.in.Now.Format(time.TimeOnly), a))
		if m.r.IntN(10) == 0 {
			return
		}
		if a.Kind == CreateShoot {
			m.create(a)
			continue
		}
		i := slices.IndexFunc(m.in.Members, func(x Member) bool { return x.Name == a.Shoot })
		member := &m.in.Members[i]
		switch a.Kind {
		case DrainShoot:
			member.LeavingSince = m.in.Now
		case KeepShoot:
			member.LeavingSince = time.Time{}
		case DeleteShoot:
			if member.Used || !member.Grown {
				m.fail("a shoot that is used, or not the fleet's, is deleted: %s", a.Shoot)
			}
			member.Deleting = true
		default:
			m.change(member, a)
		}
	}
}

func (m *model) create(a Action) {
	member := Member{Name: a.Shoot, Grown: true, Created: m.in.Now}
	for _, p := range m.in.Template.Pools {
		p.Trusted = true
		p.Ceiling = 4
		member.Pools = append(member.Pools, p)
		key := a.Shoot + "/" + p.Name
		m.used[key] = nil
		m.original[key] = [2]int64{p.Minimum, p.Maximum}
	}
	m.in.Members = append(m.in.Members, member)
}

func (m *model) change(member *Member, a Action) {
	p := &member.Pools[slices.IndexFunc(member.Pools, func(p Pool) bool { return p.Name == a.Pool })]
	key := member.Name + "/" + p.Name
	if a.Kind == RestorePool && int64(len(m.used[key])) > a.Maximum {
		m.fail("%s gets a maximum of %d with %d nodes", key, a.Maximum, len(m.used[key]))
	}
	if a.Kind == RestorePool && m.making[member.Name] == key && int64(len(m.used[key])) == a.Maximum &&
		m.in.Now.Sub(p.Record.Since) <= ArrivalTimeout {
		m.fail("%s gets a maximum of %d although its autoscaler is having one machine more made", key, a.Maximum)
	}
	if a.Kind == EnlargePool && a.Maximum > max(p.Ceiling, p.Maximum) {
		m.fail("%s gets %d machines, above its ceiling %d", key, a.Maximum, p.Ceiling)
	}
	if a.Kind == LowerMinimum && !m.in.Ending && m.in.Now.Sub(p.Record.Since) < m.in.Idle {
		m.fail("%s is given back after %s", key, m.in.Now.Sub(p.Record.Since))
	}
	p.Minimum, p.Maximum, p.Record = a.Minimum, a.Maximum, a.Record
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	for _, line := range m.log {
		m.t.Log(line)
	}
	m.t.Fatalf(format, args...)
}

// check what always holds, from the world and not from what decisions say of themselves.
func (m *model) check() {
	var machines, cost int64
	shoots := 0
	for _, member := range m.in.Members {
		if member.Grown {
			shoots++
		}
	}
	m.pools(func(member *Member, p *Pool, key string) {
		before := m.original[key]
		n := p.Maximum - before[1]
		if member.Grown {
			n = p.Maximum
		}
		machines, cost = machines+n, cost+n*m.in.Machines[map[string]int{"small": 0, "dear": 1}[p.MachineType]].Cost
	})
	if machines > m.in.Limits.Machines || cost > *m.in.Limits.Cost || shoots > m.in.Limits.Shoots {
		m.fail("%d machines, %d shoots at a cost of %d: limits are %+v, cost %d", machines, shoots, cost, m.in.Limits,
			*m.in.Limits.Cost)
	}
}

// checkHeld: a minimum is kept, for a while, for what waits and could run on the machines that it holds.
func (m *model) checkHeld(out Output) {
	adds := slices.ContainsFunc(out.Actions,
		func(a Action) bool { return a.Kind == EnlargePool || a.Kind == CreateShoot })
	for _, a := range out.Actions {
		if a.Kind != LowerMinimum {
			continue
		}
		member := &m.in.Members[slices.IndexFunc(m.in.Members, func(x Member) bool { return x.Name == a.Shoot })]
		p := &member.Pools[slices.IndexFunc(member.Pools, func(p Pool) bool { return p.Name == a.Pool })]
		if m.in.Now.Sub(p.Record.Since) > ArrivalTimeout {
			continue
		}
		for _, item := range m.in.Items {
			switch {
			case item.Components != nil || item.Request.CPU > eachCores*1000 ||
				!slices.Contains(item.Clusters, member.Name):
			case !adds && m.places(item, true) < item.Replicas:
				m.fail("%s/%s is given back while %s waits for more", member.Name, p.Name, item.Name)
			case len(m.in.Items) == 1 && m.firstWithRoom(item) == member.Name:
				m.fail("%s/%s is given back before %s has got its place there", member.Name, p.Name, item.Name)
			}
		}
	}
}

// places for an item at most: in what is free, and on machines that pools may be waiting for.
func (m *model) places(item Item, coming bool) int64 {
	var sum int64
	each := item.Request.CPU / 1000
	m.pools(func(member *Member, p *Pool, key string) {
		if !slices.Contains(item.Clusters, member.Name) && !(item.NewShoot && member.Grown) {
			return
		}
		for _, used := range m.used[key] {
			sum += (eachCores - used) / each
		}
		if coming {
			sum += max(0, p.Minimum-int64(len(m.used[key]))) * (eachCores / each)
		}
	})
	return sum
}

// firstWithRoom is the member that the only item which waits gets its first place in; empty if none has room.
func (m *model) firstWithRoom(item Item) string {
	item.NewShoot = false
	for _, name := range slices.Sorted(slices.Values(item.Clusters)) {
		item.Clusters = []string{name}
		if m.places(item, false) > 0 {
			return name
		}
	}
	return ""
}

// shuffled is the same input in another order.
func (m *model) shuffled() Input {
	in := m.in
	in.Items, in.Machines, in.Members = slices.Clone(in.Items), slices.Clone(in.Machines), slices.Clone(in.Members)
	m.r.Shuffle(len(in.Items), func(i, j int) { in.Items[i], in.Items[j] = in.Items[j], in.Items[i] })
	m.r.Shuffle(len(in.Machines), func(i, j int) { in.Machines[i], in.Machines[j] = in.Machines[j], in.Machines[i] })
	m.r.Shuffle(len(in.Members), func(i, j int) { in.Members[i], in.Members[j] = in.Members[j], in.Members[i] })
	return in
}

// Whatever happens: limits hold, nothing that is used is taken, nothing is given back too early or while it is waited
// for, and in the end all is as it was.
func TestLongRuns(t *testing.T) {
	runs := uint64(200)
	if testing.Short() {
		runs = 50
	}
	kinds := map[Kind]int{}
	for seed := range runs {
		m := newModel(t, seed)
		for range 150 {
			m.live()
			m.show()
			out := Decide(m.in)
			if again := Decide(m.shuffled()); !reflect.DeepEqual(out, again) {
				m.fail("another order, another decision: %+v and %+v", out, again)
			}
			for _, a := range out.Actions {
				kinds[a.Kind]++
			}
			m.checkHeld(out)
			m.carryOut(out)
			m.check()
		}
		m.end(kinds)
	}
	for _, kind := range []Kind{
		EnlargePool, LowerMinimum, RestorePool, CreateShoot, DrainShoot, KeepShoot, DeleteShoot,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no run had %s: %v", kind, kinds)
		}
	}
}

// end: nothing is used any more, and what waits does so for ever, or nothing waits; then everything is given back.
func (m *model) end(kinds map[Kind]int) {
	m.in.Limits.Machines = 0
	stuck := m.r.IntN(2) == 0
	for range 400 {
		m.in.Now = m.in.Now.Add(time.Minute)
		for key := range m.used {
			clear(m.used[key])
		}
		m.in.Items = nil
		clear(m.waiting)
		m.live()
		m.in.Items = nil
		clear(m.waiting)
		clear(m.making)
		if stuck {
			m.stick()
		}
		m.show()
		out := Decide(m.in)
		for _, a := range out.Actions {
			if a.Kind == EnlargePool || a.Kind == CreateShoot {
				m.fail("growth although nothing may be had: %+v", a)
			}
			kinds[a.Kind]++
		}
		m.carryOut(out)
	}
	for _, member := range m.in.Members {
		if member.Grown {
			m.fail("shoot %s is still there", member.Name)
		}
	}
	m.pools(func(_ *Member, p *Pool, key string) {
		if before := m.original[key]; p.Record != nil || p.Minimum != before[0] || p.Maximum != before[1] {
			m.fail("%s has %d-%d, not %v as before; record %+v", key, p.Minimum, p.Maximum, before, p.Record)
		}
	})
}

// stick has an object wait that is never placed, though there is room and it could run on any machine, and pods of the
// members' own that no machine is large enough for.
func (m *model) stick() {
	item := Item{Name: "stuck", Replicas: 1 + m.r.Int64N(20), Request: request(1)}
	for i := range m.in.Members {
		if member := &m.in.Members[i]; !member.Grown {
			item.Clusters = append(item.Clusters, member.Name)
			m.waiting[member.Name] = eachCores + 1
		}
	}
	m.in.Items = []Item{item}
}

// FuzzDecide: no numbers lead to a crash, or beyond the limits.
func FuzzDecide(f *testing.F) {
	f.Add(int64(3), int64(2000), int64(4000), int64(200), int64(10), int64(5), int64(1), int64(3), int64(2), int64(8),
		int64(600))
	f.Add(int64(-1), int64(1<<62), int64(-5), int64(1<<62), int64(1<<62), int64(-1), int64(-3), int64(1<<31),
		int64(1<<40), int64(1<<31), int64(-1))
	f.Fuzz(func(t *testing.T,
		replicas, each, capacity, cost, machines, step, minimum, maximum, nodes, ceiling, since int64) {
		limit := cost
		maximum = max(minimum, maximum)
		clamp := func(n int64) int64 { return min(max(n, 0), 1<<31) }
		in := Input{
			Now: now, Machines: []Machine{{"small", core.Resources{CPU: capacity, Memory: capacity, Pods: 110}, cost}},
			Idle:   time.Minute,
			Limits: Limits{Machines: clamp(machines), Step: min(clamp(step), 1000), Cost: &limit, Shoots: 1},
			Template: &Template{
				Prefix: "n", Pools: []Pool{
					{
						Name: "w", MachineType: "small", Minimum: min(clamp(minimum), 1000),
						Maximum: min(clamp(minimum), 1000),
					},
				},
			},
			Items: []Item{
				{
					Name: "i", Replicas: min(replicas, 1<<31), Request: core.Resources{CPU: each, Memory: each},
					Clusters: []string{"m"}, NewShoot: true,
				},
				{Name: "u", Replicas: 1, Clusters: []string{"m"}, NewShoot: true, Components: []core.Component{
					{Name: "a", Replicas: int32(replicas), Request: core.Resources{CPU: each, Memory: each}},
					{Name: "b", Replicas: 1, Request: core.Resources{CPU: each / 2}},
				}},
			},
			Members: []Member{{Name: "m", Joined: true, Room: &core.Room{}, Pools: []Pool{{
				Name: "p", MachineType: "small", Minimum: clamp(minimum), Maximum: clamp(maximum), Nodes: clamp(nodes),
				Ceiling: clamp(ceiling),
				Record: &Record{
					Minimum: clamp(minimum) / 2, Maximum: clamp(maximum) / 2, SetMinimum: clamp(minimum),
					SetMaximum: clamp(maximum),
					Since:      now.Add(-time.Duration(clamp(since)) * time.Second),
				},
			}}}},
		}
		before := in.Members[0].Pools[0].Record.added()
		out := Decide(in)
		for _, a := range out.Actions {
			if a.Machines > 0 && out.Machines > in.Limits.Machines && out.Machines > before {
				t.Errorf("%d machines of %d: %+v", out.Machines, in.Limits.Machines, a)
			}
			if a.Kind == EnlargePool && (a.Minimum > a.Maximum ||
				a.Maximum > max(in.Members[0].Pools[0].Ceiling, clamp(maximum))) {
				t.Errorf("beyond the ceiling: %+v", a)
			}
		}
	})
}
