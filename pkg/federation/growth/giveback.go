package growth

import "fmt"

// giveBack has go what was added and nothing needs.
func (d *decision) giveBack() {
	if d.in.Idle < 0 && !d.in.Ending {
		return
	}
	for i := range d.members {
		m := &d.members[i]
		if m.Grown && d.giveBackShoot(i) {
			continue
		}
		for j := range m.Pools {
			if p := &m.Pools[j]; p.Record != nil && d.added[[2]int{i, j}] == 0 {
				d.giveBackPool(i, j)
			}
		}
	}
}

// giveBackPool lowers the minimum first: the shoot's autoscaler knows what is used and removes the rest, so nothing
// that is used is taken. The maximum follows when there are no more nodes than before.
func (d *decision) giveBackPool(i, j int) {
	m, p := &d.members[i], &d.members[i].Pools[j]
	r := p.Record
	if p.Minimum > r.Minimum {
		if !d.in.Ending && (d.needed[[2]int{i, j}] || d.in.Now.Sub(r.Since) < d.in.Idle) {
			return
		}
		lowered := *r
		lowered.SetMinimum, lowered.Since = r.Minimum, d.in.Now
		action := Action{
			Kind: LowerMinimum, Shoot: m.Name, Pool: p.Name, Minimum: r.Minimum, Maximum: p.Maximum, Record: &lowered,
			Machines: r.Minimum - p.Minimum,
			Reason: fmt.Sprintf("nothing waits for its machines; the cluster-autoscaler of the shoot removes those "+
				"of its %d that are not used", p.Nodes),
		}
		if r.SetMaximum == r.Maximum {
			action.Record = nil
		}
		d.actions = append(d.actions, action)
		d.discount(i, j, action.Record)
		return
	}
	if p.Maximum != r.Maximum && (!p.Trusted || p.Nodes > r.Maximum || d.mayGrowItself(m, r)) {
		return
	}
	d.actions = append(d.actions, Action{
		Kind: RestorePool, Shoot: m.Name, Pool: p.Name, Minimum: r.Minimum, Maximum: r.Maximum,
		Reason: fmt.Sprintf("it has %d nodes, so it gets back the maximum that it had", p.Nodes),
	})
	d.discount(i, j, nil)
}

// mayGrowItself tells whether the cluster-autoscaler of a shoot may be having machines made that are no nodes yet, for
// pods that wait there: with a lower maximum they would be taken away again. What waits for longer, they don't help.
func (d *decision) mayGrowItself(m *Member, r *Record) bool {
	return !d.in.Ending && m.Room != nil && !m.Room.Pending.IsZero() && d.in.Now.Sub(r.Since) <= ArrivalTimeout
}

// discount what a pool doesn't count for any more.
func (d *decision) discount(i, j int, now *Record) {
	p := &d.members[i].Pools[j]
	if d.members[i].Grown {
		return
	}
	less := p.Record.added()
	if now != nil {
		less -= now.added()
	}
	d.have(p.MachineType, -less)
}

// giveBackShoot closes a shoot that nothing uses, and deletes it a while later. It is true when the shoot is on its
// way.
func (d *decision) giveBackShoot(i int) bool {
	m := &d.members[i]
	if m.Deleting {
		return true
	}
	act := func(kind Kind, reason string) {
		d.actions = append(d.actions, Action{Kind: kind, Shoot: m.Name, Reason: reason})
	}
	leaving := !m.LeavingSince.IsZero()
	needed := d.wanted[i]
	for j := range m.Pools {
		needed = needed || d.needed[[2]int{i, j}] || d.added[[2]int{i, j}] > 0
	}
	idle := d.in.Ending || !m.UnusedSince.IsZero() && d.in.Now.Sub(m.UnusedSince) >= d.in.Idle &&
		d.in.Now.Sub(m.Created) >= d.in.Idle
	switch {
	case m.Used || needed:
		if leaving {
			act(KeepShoot, "it is used again")
		}
	case leaving && d.in.Now.Sub(m.LeavingSince) >= DrainTime, !m.Joined && idle && d.late(m):
		act(DeleteShoot, "nothing uses it")
		return true
	case leaving:
	case idle && m.Joined:
		act(DrainShoot, "nothing uses it; it is deleted unless that changes")
	}
	return leaving
}

// late tells that a shoot that has not joined is not waited for any more.
func (d *decision) late(m *Member) bool {
	return d.in.Ending || d.in.Now.Sub(m.Created) > ShootTimeout
}
