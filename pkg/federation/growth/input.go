package growth

import (
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Machine is a machine type that may be had.
type Machine struct {
	Type string
	// Capacity is what an empty node has for pods.
	Capacity core.Resources
	// Cost of an hour, in thousandths of the currency.
	Cost int64
}

// Limits bound what is had at a time.
type Limits struct {
	Machines int64
	// Cost of an hour, in thousandths of the currency; nil: no bound.
	Cost *int64
	// Step is the largest number of machines that are added at once.
	Step int64
	// Shoots is the largest number of shoots that are created.
	Shoots int
}

// Item is an object that waits for room.
type Item struct {
	// Name is shown in reasons.
	Name string
	// Replicas that have no place.
	Replicas int64
	Request  core.Resources
	Nodes    *core.NodeClaim
	// Components of an object that is placed as a unit, all of them in one cluster. Then Replicas is 1, and Request and
	// Nodes mean nothing.
	Components []core.Component
	// Clusters that would take it if they had room.
	Clusters []string
	// MaxClusters bounds how many of them it may be spread over; 0: no bound.
	MaxClusters int
	// NewShoot tells that a shoot of the template would take it.
	NewShoot bool
	// Useless says why neither would help; empty if they would.
	Useless string
}

// Member is a cluster of the fleet, with its shoot in the garden if it has one.
type Member struct {
	Name string
	// Room is what the fleet knows of its free resources.
	Room  *core.Room
	Pools []Pool
	// Grown tells that the shoot was created for this growth.
	Grown bool
	// Joined tells that the fleet has the cluster already.
	Joined bool
	// Created is when the shoot was created.
	Created time.Time
	// Used tells that something of the fleet needs a grown shoot.
	Used bool
	// UnusedSince is when it was seen unused first; zero if it wasn't before now.
	UnusedSince time.Time
	// LeavingSince is when it was closed for new objects; zero if it is open.
	LeavingSince time.Time
	// Deleting shoots are on their way.
	Deleting bool
}

// Pool is a worker pool of a shoot.
type Pool struct {
	Name string
	// MachineType is that of its machines.
	MachineType string
	// Node is how its nodes look; Count and Free mean nothing.
	Node core.Node
	// Nodes is how many there are now. Trusted tells that this is sure, so that no node of the member is left out.
	Nodes   int64
	Trusted bool
	// Minimum and Maximum are those of now.
	Minimum, Maximum int64
	// Ceiling is the largest maximum that it may be enlarged to; 0: it may not.
	Ceiling int64
	// Blocked says why it may not be changed although it is selected.
	Blocked string
	// Record is what was done to it for this growth before.
	Record *Record
}

// Record is what was done to a pool, and how it was before.
type Record struct {
	Minimum, Maximum, Nodes int64
	SetMinimum, SetMaximum  int64
	Since                   time.Time
}

// added is how many machines there may be because of the record: those that are held, and those above the maximum of
// before.
func (r *Record) added() int64 {
	return max(0, r.SetMinimum-max(r.Minimum, r.Nodes), r.SetMaximum-r.Maximum)
}

// Template of new shoots.
type Template struct {
	// Prefix of the names.
	Prefix string
	// Pools as a new shoot has them; Minimum is what it begins with.
	Pools []Pool
}

// Input is all that a decision depends on.
type Input struct {
	Now      time.Time
	Machines []Machine
	Limits   Limits
	// CoolDown is how long after something was added nothing more is.
	CoolDown time.Duration
	// Idle is how long something is kept that isn't needed. Less than zero: for ever.
	Idle time.Duration
	// Ending gives everything back as soon as nothing uses it.
	Ending bool
	// Template is nil where no shoots may be created.
	Template *Template
	// Taken are names that new shoots cannot have, besides those of the members.
	Taken   []string
	Members []Member
	Items   []Item
}

// Kind says what an action does.
type Kind string

// The kinds of actions.
const (
	// EnlargePool raises minimum, and maximum if need be.
	EnlargePool Kind = "EnlargePool"
	// LowerMinimum lets the shoot's autoscaler remove what is not used.
	LowerMinimum Kind = "LowerMinimum"
	// RestorePool brings the maximum of before back: no more nodes than that are there.
	RestorePool Kind = "RestorePool"
	// LeavePool forgets the record: somebody else has changed the pool.
	LeavePool Kind = "LeavePool"
	// CreateShoot creates a shoot of the template.
	CreateShoot Kind = "CreateShoot"
	// DrainShoot closes a created shoot for new objects.
	DrainShoot Kind = "DrainShoot"
	// KeepShoot opens it again.
	KeepShoot Kind = "KeepShoot"
	// DeleteShoot deletes a created shoot that nothing uses.
	DeleteShoot Kind = "DeleteShoot"
)

// Action is one thing to do.
type Action struct {
	Kind        Kind
	Shoot, Pool string
	// Minimum and Maximum that the pool gets.
	Minimum, Maximum int64
	// Record is what is to be kept of it; nil: none any more.
	Record *Record
	// Machines that are added.
	Machines int64
	Reason   string
}

// Output is what is to be done and why not more.
type Output struct {
	Actions []Action
	// Refused says why something that waits gets no machines.
	Refused []string
	// Waiting is the number of replicas for which machines are on their way.
	Waiting int64
	// Machines, Shoots and Cost are what is had once the actions are carried out.
	Machines int64
	Shoots   int
	Cost     int64
}
