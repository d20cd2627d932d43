package growth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// option is a pool that could be enlarged for an item.
type option struct {
	member, pool int
	// per is how many replicas one machine takes.
	per  int64
	cost int64
}

// add has machines added for replicas of an item: of the pools that fit, those on which the rest is cheapest come
// first; a shoot is created for what no pool can take. It gives the number of replicas that will have a place.
func (d *decision) add(item Item, targets []int, left int64) int64 {
	if d.cool != "" {
		d.refuse("%s waits: %s", item.Name, d.cool)
		return 0
	}
	options, reasons := d.options(item, targets)
	byCost(options, left)
	var placed int64
	for _, o := range options {
		if placed == left {
			return placed
		}
		n, why := d.allowed(o, machinesFor(left-placed, o.per))
		if why != "" {
			reasons = append(reasons, why)
		}
		if n > 0 {
			d.take(o, n, item)
			placed += d.takeComing(item, targets, left-placed)
		}
	}
	if placed < left {
		if why := d.addShoot(item); why != "" {
			reasons = append(reasons, why)
		} else {
			placed += d.takeComing(item, nil, left-placed)
		}
	}
	if placed < left {
		slices.Sort(reasons)
		d.refuse("%s: no machines for %d of %d replicas: %s", item.Name, left-placed, item.Replicas, joined(reasons))
	}
	return placed
}

// byCost has that pool come first whose machines for so many replicas are cheapest.
func byCost(options []option, replicas int64) {
	slices.SortStableFunc(options, func(a, b option) int {
		na, nb := machinesFor(replicas, a.per), machinesFor(replicas, b.per)
		return cmp.Or(cmp.Compare(na*a.cost, nb*b.cost), cmp.Compare(na, nb))
	})
}

// joined reasons in one text.
func joined(reasons []string) string { return strings.Join(shortened(slices.Compact(reasons)), "; ") }

const maxReasons = 5

func shortened(reasons []string) []string {
	if len(reasons) == 0 {
		return []string{"neither pools nor shoots that would help may be had (spec.pools, spec.shoots)"}
	}
	if len(reasons) <= maxReasons {
		return reasons
	}
	return append(slices.Clone(reasons[:maxReasons]), fmt.Sprintf("and %d more", len(reasons)-maxReasons))
}

func machinesFor(replicas, per int64) int64 { return (replicas + per - 1) / per }

// options are the pools of the targets that could be enlarged, in the order of names, and why others can't.
func (d *decision) options(item Item, targets []int) (options []option, reasons []string) {
	for _, i := range targets {
		m := &d.members[i]
		for j := range m.Pools {
			p := &m.Pools[j]
			if p.Ceiling == 0 {
				continue
			}
			per := d.perMachine(p, item)
			if why := d.against(m, p, [2]int{i, j}, per); why != "" {
				reasons = append(reasons, fmt.Sprintf("pool %s/%s %s", m.Name, p.Name, why))
				continue
			}
			options = append(options, option{member: i, pool: j, per: per, cost: d.machines[p.MachineType].Cost})
		}
	}
	return options, reasons
}

// against says why a pool is not enlarged for an item.
func (d *decision) against(m *Member, p *Pool, at [2]int, per int64) string {
	_, known := d.machines[p.MachineType]
	switch {
	case p.Blocked != "":
		return p.Blocked
	case !m.Joined:
		return "is of a shoot that has not joined yet"
	case d.left[at]:
		return "was changed by somebody else a moment ago"
	case !known:
		return fmt.Sprintf("has machine type %q, which spec.machines does not list", p.MachineType)
	case p.Nodes > p.Maximum:
		return fmt.Sprintf("has %d nodes, more than its maximum: some are about to go", p.Nodes)
	case per == 0:
		return fmt.Sprintf("cannot run it on an empty node of type %s", p.MachineType)
	case p.Record != nil && p.Minimum > p.Nodes && d.in.Now.Sub(p.Record.Since) > ArrivalTimeout:
		return fmt.Sprintf("was asked for %d machines more than %s ago that have not come", p.Minimum-p.Nodes,
			ArrivalTimeout)
	}
	return ""
}

// allowed is how many of n machines may be added to a pool, and what stands against the rest.
func (d *decision) allowed(o option, n int64) (int64, string) {
	p := &d.members[o.member].Pools[o.pool]
	name := d.members[o.member].Name + "/" + p.Name
	return d.bound(n, o.cost, map[string]int64{
		fmt.Sprintf("pool %s may have %d machines", name,
			p.Ceiling): p.Ceiling - floor(p) - d.added[[2]int{o.member, o.pool}],
	})
}

// floor is the number of machines that a pool has or was asked for.
func floor(p *Pool) int64 { return max(p.Minimum, p.Nodes) }

// bound n by bounds and by the limits of the growth; the reason is that of the tightest.
func (d *decision) bound(n, cost int64, bounds map[string]int64) (int64, string) {
	limits := d.in.Limits
	bounds[fmt.Sprintf("limits.machines is %d", limits.Machines)] = limits.Machines - d.out.Machines
	bounds[fmt.Sprintf("limits.step is %d: more later", d.in.Limits.Step)] = d.step
	if limits.Cost != nil && cost > 0 {
		text := fmt.Sprintf("limits.costPerHour is %s, %s is used, and a machine costs %s", money(*limits.Cost),
			money(d.out.Cost), money(cost))
		bounds[text] = max(0, *limits.Cost-d.out.Cost) / cost
	}
	why := ""
	for _, text := range sortedKeys(bounds) {
		if most := max(0, bounds[text]); most < n {
			n, why = most, text
		}
	}
	return n, why
}

func sortedKeys(m map[string]int64) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// money shows thousandths.
func money(n int64) string { return fmt.Sprintf("%d.%03d", n/1000, n%1000) }

// take adds machines to a pool.
func (d *decision) take(o option, n int64, item Item) {
	at := [2]int{o.member, o.pool}
	p := &d.members[o.member].Pools[o.pool]
	before := d.held(o.member, o.pool)
	d.added[at] += n
	d.reason[at] = append(d.reason[at], fmt.Sprintf("%d for %s", n, item.Name))
	more := d.held(o.member, o.pool) - before
	d.have(p.MachineType, more)
	d.step -= n
	for range n {
		d.nodes = append(d.nodes, node{member: o.member, pool: o.pool, free: d.machines[p.MachineType].Capacity})
	}
}

// held is how many machines count for a pool, those that this decision adds included.
func (d *decision) held(i, j int) int64 {
	p := &d.members[i].Pools[j]
	n := d.added[[2]int{i, j}]
	switch {
	case d.members[i].Grown && n == 0:
		return max(p.Maximum, p.Nodes)
	case d.members[i].Grown:
		return max(p.Maximum, floor(p)+n)
	case n == 0 && p.Record == nil:
		return 0
	case n == 0:
		return p.Record.added()
	}
	return d.recordWith(p, n).added()
}

// recordWith is the record of a pool with n machines more.
func (d *decision) recordWith(p *Pool, n int64) *Record {
	record := Record{Minimum: p.Minimum, Maximum: p.Maximum, Nodes: p.Nodes}
	if p.Record != nil {
		record = *p.Record
		if p.Nodes > p.Minimum {
			// Nodes that came otherwise, as the shoot's autoscaler wanted them, don't count: only those that the
			// minimum held do.
			record.Nodes = max(record.Nodes, p.Nodes-max(0, p.Minimum-max(record.Minimum, record.Nodes)))
		}
	}
	record.SetMinimum = floor(p) + n
	record.SetMaximum = max(p.Maximum, record.SetMinimum)
	record.Since = d.in.Now
	return &record
}

func (d *decision) enlarge(i, j int, n int64) Action {
	m, p := &d.members[i], &d.members[i].Pools[j]
	record := d.recordWith(p, n)
	return Action{
		Kind: EnlargePool, Shoot: m.Name, Pool: p.Name, Minimum: record.SetMinimum, Maximum: record.SetMaximum,
		Record: record, Machines: n,
		Reason: fmt.Sprintf("machines of type %s: %s", p.MachineType,
			strings.Join(shortened(d.reason[[2]int{i, j}]), ", ")),
	}
}

// addShoot creates a shoot for an item, if one may be created, or says what stands against it; nothing does where there
// is no template.
func (d *decision) addShoot(item Item) string {
	t := d.in.Template
	switch {
	case t == nil:
		return ""
	case !item.NewShoot:
		return "a shoot of the template would not take it"
	case d.reopen():
		return "a shoot that was to be given back is kept"
	case d.out.Shoots >= d.in.Limits.Shoots:
		return fmt.Sprintf("shoots.maximum is %d", d.in.Limits.Shoots)
	case len(d.shoots) > 0:
		return "another shoot is created first"
	}
	machines, cost, helps := int64(0), int64(0), false
	var begins []core.Node
	for j := range t.Pools {
		p := &t.Pools[j]
		machine, known := d.machines[p.MachineType]
		if !known {
			return fmt.Sprintf("the template's pool %s has machine type %q, which spec.machines does not list", p.Name,
				p.MachineType)
		}
		machines, cost = machines+p.Maximum, cost+p.Maximum*machine.Cost
		helps = helps || p.Minimum > 0 && d.perMachine(p, item) > 0
		begins = append(begins, d.empty(p, p.Minimum))
	}
	switch {
	case item.Components != nil && !d.holds(theCreated, d.expected(theCreated, begins...), item.Components):
		return "the machines that a shoot of the template begins with cannot run all of its components"
	case item.Components == nil && !helps:
		return "no machine of the template can run it"
	}
	// A shoot counts with all machines that it may have, whatever the step is.
	if d.out.Machines+machines > d.in.Limits.Machines {
		return fmt.Sprintf("limits.machines is %d, and a shoot has up to %d", d.in.Limits.Machines, machines)
	}
	if limit := d.in.Limits.Cost; limit != nil && d.out.Cost+cost > *limit {
		return fmt.Sprintf("limits.costPerHour is %s, %s is used, and a shoot costs up to %s", money(*limit),
			money(d.out.Cost), money(cost))
	}
	d.createShoot(item, machines, cost)
	return ""
}

// reopen keeps a shoot that is about to be given back instead of creating one.
func (d *decision) reopen() bool {
	for i := range d.members {
		if m := &d.members[i]; m.Grown && m.Joined && !m.Deleting && !m.LeavingSince.IsZero() {
			d.wanted[i] = true
			return true
		}
	}
	return false
}

func (d *decision) createShoot(item Item, machines, cost int64) {
	name := d.freeName()
	d.out.Machines, d.out.Cost, d.out.Shoots = d.out.Machines+machines, d.out.Cost+cost, d.out.Shoots+1
	for j := range d.in.Template.Pools {
		p := &d.in.Template.Pools[j]
		for range min(p.Minimum, maxComing) {
			d.nodes = append(d.nodes, node{member: theCreated, pool: j, free: d.machines[p.MachineType].Capacity})
		}
	}
	d.shoots = append(d.shoots, Action{
		Kind: CreateShoot, Shoot: name, Machines: machines,
		Reason: "no worker pool can be enlarged enough for " + item.Name,
	})
}

// freeName is the one with the smallest number that nothing has.
func (d *decision) freeName() string {
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s-%d", d.in.Template.Prefix, i)
		has := func(m Member) bool { return m.Name == name }
		if !slices.Contains(d.in.Taken, name) && !slices.ContainsFunc(d.members, has) {
			return name
		}
	}
}
