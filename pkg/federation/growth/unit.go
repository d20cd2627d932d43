package growth

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// placeUnit finds room for an item of components: in one member for all of them, or nowhere. Of the members that need
// more machines for it, the one where these are cheapest gets them.
func (d *decision) placeUnit(item Item) {
	item.MaxClusters = 0 // Any of them may be the one.
	item.Components = d.largestFirst(item.Components)
	targets := d.targets(item)
	for _, i := range targets {
		if d.holds(i, d.members[i].Room, item.Components) {
			d.occupy(i, item)
			return
		}
	}
	coming := targets
	if item.NewShoot && len(d.shoots) > 0 {
		coming = append(slices.Clone(targets), theCreated)
	}
	for _, i := range coming {
		if d.holds(i, d.expected(i), item.Components) {
			d.occupy(i, item)
			d.keep(i)
			d.out.Waiting += item.Replicas
			return
		}
	}
	plan, reasons := d.cheapest(item, targets)
	switch {
	case plan != nil:
		d.carryOut(plan, item)
		return
	case d.cool != "":
		d.refuse("%s waits: %s", item.Name, d.cool)
		return
	}
	why := d.addShoot(item)
	if why == "" && len(d.shoots) > 0 {
		d.occupy(theCreated, item)
		d.out.Waiting += item.Replicas
		return
	}
	if why != "" {
		reasons = append(reasons, why)
	}
	slices.Sort(reasons)
	d.refuse("%s: no machines for its components together: %s", item.Name, joined(reasons))
}

// largestFirst, so that the same components are treated alike in whatever order they are.
func (d *decision) largestFirst(components []core.Component) []core.Component {
	return slices.SortedFunc(slices.Values(components), func(a, b core.Component) int {
		return cmp.Or(-cmp.Compare(d.size(a.Request), d.size(b.Request)), strings.Compare(a.Name, b.Name))
	})
}

// holds asks of a room in a member what the placement of objects will ask: whether a set of all components fits.
func (d *decision) holds(i int, room *core.Room, components []core.Component) bool {
	promises := core.Promises{}
	if i != theCreated {
		promises[""] = d.promised[d.members[i].Name]
	}
	var set core.Binding
	set.SetOf(components)
	return core.NewSnapshot([]core.Cluster{{Room: room}}).WithPromises(promises).Estimate("", set) > 0
}

// expected is the room of a member with the machines that are on their way, and with more of one pool.
func (d *decision) expected(i int, more ...core.Node) *core.Room {
	var room core.Room
	if i != theCreated && d.members[i].Room != nil {
		room = *d.members[i].Room
	}
	nodes := slices.Clone(room.Nodes)
	if len(nodes) == 0 && !room.Free.IsZero() {
		nodes = append(nodes, core.Node{Count: 1, Free: room.Free})
	}
	var last *node
	for k := range d.nodes {
		n := &d.nodes[k]
		switch {
		case n.member != i:
		case last != nil && last.pool == n.pool && equal(last.free, n.free):
			more[len(more)-1].Count++
		default:
			like := d.poolOf(n).Node
			like.Count, like.Free = 1, n.free
			last, more = n, append(more, like)
		}
	}
	for _, n := range more {
		room.Free = room.Free.Plus(n.Free.Times(n.Count))
	}
	room.Nodes = append(nodes, more...)
	return &room
}

func equal(a, b core.Resources) bool {
	return a.CPU == b.CPU && a.Memory == b.Memory && a.Storage == b.Storage && a.Pods == b.Pods &&
		maps.Equal(a.Other, b.Other)
}

// empty machines of a pool.
func (d *decision) empty(p *Pool, count int64) core.Node {
	like := p.Node
	like.Count, like.Free = count, d.machines[p.MachineType].Capacity
	return like
}

// occupy takes the room of all components in a member, or as much of it as there is: in what is free, then in what is
// on its way.
func (d *decision) occupy(i int, item Item) {
	for _, c := range item.Components {
		part := partOf(item, c)
		left := part.Replicas
		if i == theCreated {
			d.takeComing(part, nil, left)
			continue
		}
		part.NewShoot = false
		left -= d.takeFree(i, part, left)
		d.takeComing(part, []int{i}, left)
	}
	if i != theCreated {
		d.wanted[i] = true
	}
}

// partOf is a component as if it were an item.
func partOf(item Item, c core.Component) Item {
	c.Request.Pods = max(1, c.Request.Pods)
	return Item{
		Name: item.Name, Replicas: max(0, int64(c.Replicas)), Request: c.Request, Nodes: c.Nodes,
		NewShoot: item.NewShoot,
	}
}

// keep the machines of a member that were added before: a unit waits until the last of those that it needs are there.
func (d *decision) keep(i int) {
	if i == theCreated {
		return
	}
	d.wanted[i] = true
	for j := range d.members[i].Pools {
		d.needed[[2]int{i, j}] = true
	}
}

// addition is a number of machines of a pool.
type addition struct {
	option
	n int64
}

// unitPlan is what a member needs for a unit.
type unitPlan struct {
	member    int
	additions []addition
	machines  int64
	cost      int64
}

// cheapest is the plan of the member for which the machines that it lacks cost the least.
func (d *decision) cheapest(item Item, targets []int) (best *unitPlan, reasons []string) {
	for _, i := range targets {
		plan, why := d.planUnit(i, item)
		reasons = append(reasons, why...)
		if plan != nil && (best == nil ||
			cmp.Or(cmp.Compare(plan.cost, best.cost), cmp.Compare(plan.machines, best.machines)) < 0) {
			best = plan
		}
	}
	return best, reasons
}

// planUnit finds the machines with which a member would have room for all components, going through them one after the
// other. It is nil if there are none within the limits; the step is none: it only says how many come at once.
func (d *decision) planUnit(i int, item Item) (*unitPlan, []string) {
	trial := d.copied()
	trial.step = math.MaxInt64
	plan := &unitPlan{member: i}
	for k, c := range item.Components {
		set := item.Components[:k+1]
		if trial.holds(i, trial.expected(i), set) {
			continue
		}
		more, reasons := trial.addFor(i, partOf(item, c), set)
		if more == nil {
			for r := range reasons {
				reasons[r] = fmt.Sprintf("component %s: %s", c.Name, reasons[r])
			}
			return nil, reasons
		}
		plan.additions = append(plan.additions, more...)
	}
	for _, a := range plan.additions {
		plan.machines, plan.cost = plan.machines+a.n, plan.cost+a.n*a.cost
	}
	return plan, nil
}

// copied is a decision that machines can be added to in trial.
func (d *decision) copied() *decision {
	c := *d
	c.added, c.reason, c.nodes = maps.Clone(d.added), maps.Clone(d.reason), slices.Clip(d.nodes)
	return &c
}

// addFor adds machines until a set fits whose last component is part: of the one pool that is cheapest for it, or of
// all one after the other if none has enough.
func (d *decision) addFor(i int, part Item, set []core.Component) ([]addition, []string) {
	options, reasons := d.options(part, []int{i})
	byCost(options, part.Replicas)
	var best *addition
	for _, o := range options {
		if a, enough := d.enough(o, set); enough && (best == nil || a.n*a.cost < best.n*best.cost) {
			best = &a
		}
	}
	if best != nil {
		d.take(best.option, best.n, part)
		return []addition{*best}, nil
	}
	var result []addition
	for _, o := range options {
		a, enough := d.enough(o, set)
		if a.n > 0 {
			d.take(o, a.n, part)
			result = append(result, a)
		}
		if enough {
			return result, nil
		}
		if _, why := d.allowed(o, 1); why != "" {
			reasons = append(reasons, why)
		}
	}
	return nil, reasons
}

// enough is how many machines of a pool it takes for a set to fit, or as many as may be had.
func (d *decision) enough(o option, set []core.Component) (addition, bool) {
	p := &d.members[o.member].Pools[o.pool]
	most, _ := d.allowed(o, maxComing)
	n := sort.Search(int(most)+1, func(n int) bool {
		return d.holds(o.member, d.expected(o.member, d.empty(p, int64(n))), set)
	})
	return addition{o, min(int64(n), most)}, int64(n) <= most
}

// carryOut adds the machines of a plan, as many as may be added now; the rest is added later.
func (d *decision) carryOut(plan *unitPlan, item Item) {
	var now int64
	for _, a := range plan.additions {
		if n := min(a.n, d.step); n > 0 && d.cool == "" {
			d.take(a.option, n, item)
			now += n
		}
	}
	d.occupy(plan.member, item)
	d.keep(plan.member)
	switch {
	case d.cool != "":
		d.refuse("%s waits: %s", item.Name, d.cool)
	case now < plan.machines:
		d.refuse("%s: %d of the %d machines that its components need: limits.step is %d: more later", item.Name, now,
			plan.machines, d.in.Limits.Step)
	}
	if now > 0 {
		d.out.Waiting += item.Replicas
	}
}
