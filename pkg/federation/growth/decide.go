package growth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

const (
	// ArrivalTimeout is how long machines that were asked for are reckoned with.
	ArrivalTimeout = 15 * time.Minute
	// ShootTimeout is the same for those of a new shoot.
	ShootTimeout = 30 * time.Minute
	// DrainTime is how long a shoot is closed for new objects before it is deleted: what was decided before shows by
	// then.
	DrainTime = time.Minute
	// maxCost is the most that a machine can cost, so that sums are right.
	maxCost = 1_000_000_000_000
)

// Decide says what to do. The same input gives the same output, in whatever order its lists are.
func Decide(in Input) Output {
	d := newDecision(in)
	d.settle()
	d.count()
	d.place()
	d.giveBack()
	return d.output()
}

// node is a machine that is on its way, or that would be had.
type node struct {
	member, pool int
	free         core.Resources
}

// theCreated stands for the shoot that the decision creates where otherwise the number of a member does.
const theCreated = -1

// decision is one that is being made.
type decision struct {
	in       Input
	machines map[string]Machine
	members  []Member
	promised map[string]core.Resources
	// nodes are those on their way, first the ones that were asked for before.
	nodes []node
	// added are machines that this decision adds, by member and pool.
	added  map[[2]int]int64
	reason map[[2]int][]string
	// needed are the pools and members that something is waiting for.
	needed map[[2]int]bool
	wanted map[int]bool
	// left pools are changed by this decision otherwise.
	left    map[[2]int]bool
	shoots  []Action
	actions []Action
	refused []string
	out     Output
	step    int64
	cool    string
}

func newDecision(in Input) *decision {
	d := &decision{
		in: in, machines: map[string]Machine{}, members: slices.Clone(in.Members),
		promised: map[string]core.Resources{},
		added:    map[[2]int]int64{}, reason: map[[2]int][]string{}, needed: map[[2]int]bool{}, wanted: map[int]bool{},
		left: map[[2]int]bool{},
	}
	for _, m := range in.Machines {
		m.Cost = min(max(m.Cost, 0), maxCost)
		d.machines[m.Type] = m
	}
	slices.SortFunc(d.members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for i := range d.members {
		d.members[i].Pools = slices.Clone(d.members[i].Pools)
		slices.SortFunc(d.members[i].Pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	}
	return d
}

// settle leaves alone what others have changed: from then on it is theirs.
func (d *decision) settle() {
	for i := range d.members {
		for j := range d.members[i].Pools {
			p := &d.members[i].Pools[j]
			if p.Record == nil || p.Minimum == p.Record.SetMinimum && p.Maximum == p.Record.SetMaximum {
				continue
			}
			d.left[[2]int{i, j}] = true
			d.actions = append(d.actions, Action{
				Kind: LeavePool, Shoot: d.members[i].Name, Pool: p.Name, Minimum: p.Minimum, Maximum: p.Maximum,
				Reason: fmt.Sprintf("minimum and maximum are %d and %d, not %d and %d as the fleet left them: "+
					"somebody else has changed the pool, and it is theirs",
					p.Minimum, p.Maximum, p.Record.SetMinimum, p.Record.SetMaximum),
			})
			p.Record = nil
		}
	}
}

// count adds up what is had, and what is on its way.
func (d *decision) count() {
	d.step = max(1, d.in.Limits.Step)
	for i := range d.members {
		m := &d.members[i]
		if m.Grown {
			d.out.Shoots++
			d.heat(m.Created, "shoot "+m.Name+" was created")
		}
		for j := range m.Pools {
			p := &m.Pools[j]
			if m.Grown {
				d.have(p.MachineType, max(p.Maximum, p.Nodes))
			} else if p.Record != nil {
				d.have(p.MachineType, p.Record.added())
			}
			if p.Record != nil && p.Minimum > p.Record.Minimum {
				d.heat(p.Record.Since, fmt.Sprintf("pool %s/%s was enlarged", m.Name, p.Name))
			}
			d.expect(i, j)
		}
	}
}

func (d *decision) have(machineType string, n int64) {
	d.out.Machines += n
	d.out.Cost += n * d.machines[machineType].Cost
}

// heat notes when something was added.
func (d *decision) heat(at time.Time, what string) {
	if left := d.in.CoolDown - d.in.Now.Sub(at); left > 0 && !at.IsZero() {
		d.cool = fmt.Sprintf("%s less than %s ago (spec.coolDownSeconds)", what, d.in.CoolDown)
	}
}

// expect reckons with machines of a pool that are on their way, for a while.
func (d *decision) expect(i, j int) {
	m, p := &d.members[i], &d.members[i].Pools[j]
	machine, known := d.machines[p.MachineType]
	if !known || m.Deleting || !m.LeavingSince.IsZero() {
		return
	}
	for range min(d.coming(m, p), maxComing) {
		d.nodes = append(d.nodes, node{member: i, pool: j, free: machine.Capacity})
	}
}

// maxComing bounds what is reckoned with of one pool.
const maxComing = 10_000

// coming is how many machines of a pool were asked for that are not there.
func (d *decision) coming(m *Member, p *Pool) int64 {
	since, timeout := time.Time{}, ArrivalTimeout
	switch {
	case p.Record != nil:
		since = p.Record.Since
	case m.Grown:
		since, timeout = m.Created, ShootTimeout
	}
	if since.IsZero() || d.in.Now.Sub(since) > timeout {
		return 0
	}
	return max(0, p.Minimum-p.Nodes)
}

// place finds room for all items, the largest request first: in what is free, in what is on its way, and in what may be
// added.
func (d *decision) place() {
	items := slices.Clone(d.in.Items)
	for i := range items {
		if len(items[i].Components) > 0 {
			items[i].Request = core.RequestOf(items[i].Components)
		}
	}
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(
			-cmp.Compare(d.size(a.Request), d.size(b.Request)), -cmp.Compare(a.Replicas, b.Replicas),
			strings.Compare(a.Name, b.Name),
		)
	})
	for _, item := range items {
		item.Request.Pods = max(1, item.Request.Pods)
		d.placeItem(item)
	}
}

// size of a request is its largest share of the largest machine, in millionths.
func (d *decision) size(r core.Resources) int64 {
	var cpu, memory int64 = 1, 1
	for _, m := range d.in.Machines {
		cpu, memory = max(cpu, m.Capacity.CPU), max(memory, m.Capacity.Memory)
	}
	return int64(max(float64(r.CPU)/float64(cpu), float64(r.Memory)/float64(memory)) * 1e6)
}

func (d *decision) placeItem(item Item) {
	switch {
	case d.in.Ending:
		d.refuse("%s: the FleetGrowth is being deleted", item.Name)
		return
	case item.Useless != "":
		d.refuse("%s: %s", item.Name, item.Useless)
		return
	case len(item.Components) > 0:
		d.placeUnit(item)
		return
	}
	targets := d.targets(item)
	left := item.Replicas
	for _, i := range targets {
		if n := d.takeFree(i, item, left); n > 0 {
			left -= n
			d.hold(i, item)
		}
	}
	before := left
	left -= d.takeComing(item, targets, left)
	if left > 0 {
		left -= d.add(item, targets, left)
	}
	if left > 0 {
		for _, i := range targets {
			d.hold(i, item)
		}
	}
	d.out.Waiting += before - left
}

// hold the minimum of pools that were enlarged a while ago at most: an item has no place on the machines that came
// until the fleet has decided anew, and may not be able to use them yet.
func (d *decision) hold(i int, item Item) {
	for j := range d.members[i].Pools {
		p := &d.members[i].Pools[j]
		if p.Record != nil && d.in.Now.Sub(p.Record.Since) <= ArrivalTimeout && d.perMachine(p, item) > 0 {
			d.needed[[2]int{i, j}] = true
		}
	}
}

// targets are the members that may take an item, in the order of names; of those that are too many, the ones with most
// room.
func (d *decision) targets(item Item) []int {
	var result []int
	for i := range d.members {
		m := &d.members[i]
		if !m.Deleting && m.LeavingSince.IsZero() &&
			(slices.Contains(item.Clusters, m.Name) || item.NewShoot && d.comes(m)) {
			result = append(result, i)
		}
	}
	if item.MaxClusters <= 0 || len(result) <= item.MaxClusters {
		return result
	}
	potential := map[int]int64{}
	for _, i := range result {
		potential[i] = min(item.Replicas, d.potential(i, item))
	}
	slices.SortStableFunc(result, func(a, b int) int { return -cmp.Compare(potential[a], potential[b]) })
	result = result[:item.MaxClusters]
	slices.Sort(result)
	return result
}

// comes tells whether a shoot was created a short while ago: it takes what a new one would take, and may not be ready
// for it yet.
func (d *decision) comes(m *Member) bool {
	return m.Grown && d.in.Now.Sub(m.Created) < ShootTimeout
}

// potential is how many replicas a member could take if all of its pools were enlarged.
func (d *decision) potential(i int, item Item) int64 {
	m := &d.members[i]
	sum := core.Estimate(m.Room, item.Request, item.Nodes, d.promised[m.Name])
	for j := range m.Pools {
		p := &m.Pools[j]
		sum += d.perMachine(p, item) * max(0, p.Minimum-p.Nodes, p.Ceiling-p.Nodes)
	}
	return sum
}

// takeFree takes what the member has free.
func (d *decision) takeFree(i int, item Item, left int64) int64 {
	m := &d.members[i]
	n := min(left, core.Estimate(m.Room, item.Request, item.Nodes, d.promised[m.Name]))
	if n > 0 {
		d.promised[m.Name] = d.promised[m.Name].Plus(item.Request.Times(n))
		d.wanted[i] = true
	}
	return n
}

// takeComing takes of machines that are on their way, in their order.
func (d *decision) takeComing(item Item, targets []int, left int64) int64 {
	var sum int64
	for k := range d.nodes {
		if sum == left {
			break
		}
		n := &d.nodes[k]
		if n.member != theCreated && !slices.Contains(targets, n.member) || n.member == theCreated && !item.NewShoot {
			continue
		}
		fits := min(left-sum, d.fits(n.free, d.poolOf(n), item))
		if fits <= 0 {
			continue
		}
		n.free = n.free.Minus(item.Request.Times(fits))
		sum += fits
		if n.member != theCreated {
			d.needed[[2]int{n.member, n.pool}], d.wanted[n.member] = true, true
		}
	}
	return sum
}

func (d *decision) poolOf(n *node) *Pool {
	if n.member == theCreated {
		return &d.in.Template.Pools[n.pool]
	}
	return &d.members[n.member].Pools[n.pool]
}

// fits counts the replicas that fit into one node of a pool that has so much free.
func (d *decision) fits(free core.Resources, p *Pool, item Item) int64 {
	like := p.Node
	like.Count, like.Free = 1, free
	return core.Estimate(&core.Room{Free: free, Nodes: []core.Node{like}}, item.Request, item.Nodes, core.Resources{})
}

// perMachine is how many replicas an empty machine of a pool takes.
func (d *decision) perMachine(p *Pool, item Item) int64 {
	machine, known := d.machines[p.MachineType]
	if !known {
		return 0
	}
	return d.fits(machine.Capacity, p, item)
}

func (d *decision) refuse(format string, args ...any) {
	d.refused = append(d.refused, fmt.Sprintf(format, args...))
}

func (d *decision) output() Output {
	for i := range d.members {
		for j := range d.members[i].Pools {
			if n := d.added[[2]int{i, j}]; n > 0 {
				d.actions = append(d.actions, d.enlarge(i, j, n))
			}
		}
	}
	d.out.Actions = append(d.actions, d.shoots...)
	slices.Sort(d.refused)
	d.out.Refused = slices.Compact(d.refused)
	return d.out
}
