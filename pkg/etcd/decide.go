package etcd

import (
	"fmt"
	"slices"
	"strings"
)

// dataState is what a data directory holds before etcd starts.
type dataState string

const (
	dataNone    dataState = "none"
	dataDamaged dataState = "damaged"
	dataIntact  dataState = "intact"
	// dataDiffering is intact, and not what a quorum of the others has.
	dataDiffering dataState = "different from that of the others"
)

// identity is whose data it is, as far as the data tells; zero what it does not.
type identity struct {
	cluster, member uint64
	// alone says that the data knows of no other member than its own, nor of a change of that.
	alone bool
	// several says that it knows other members.
	several bool
	// removed are the members that the cluster has removed, as far as the data knows.
	removed []uint64
	// replaced are the clusters whose data was replaced by this one's, of a point in time.
	replaced []uint64
}

// holding is whether a member has data.
type holding string

const (
	// holdsUnknown is that of a member which does not answer.
	holdsUnknown holding = "unknown"
	holdsNothing holding = "nothing"
	holdsData    holding = "data"
)

// cluster is what a quorum of members agrees on.
type cluster struct {
	id      uint64
	members []listedMember
	// replaced are the clusters whose data was replaced by this one's, of a point in time.
	replaced []uint64
	// settled says that the point in time, which the member's options ask for, was restored or refused.
	settled bool
}

// listedMember is one that the cluster knows.
type listedMember struct {
	id       uint64
	name     string
	peerURLs []string
	learner  bool
}

// observation is all that a member knows before its etcd starts.
type observation struct {
	self    Member
	members []Member
	data    dataState
	own     identity
	// asksToRestore says that the options ask for a point in time.
	asksToRestore bool
	// holdings of the other members, by name, and whose data that is, where they tell.
	holdings   map[string]holding
	identities map[string]identity
	// cluster is nil if the other members have no quorum. As this member does not run, those who have one have all
	// that was ever acknowledged.
	cluster *cluster
}

// action is what a member does next.
type action string

const (
	// actWait does nothing, and observes again.
	actWait action = "wait"
	// actStart goes on with the data that is there.
	actStart action = "start"
	// actBegin makes data for the only member of a new cluster, of backups if there are any.
	actBegin action = "begin"
	// actLeave has the cluster forget an identity of this member that it can never have again.
	actLeave action = "leave"
	// actJoin has the cluster add this member as a learner, without data.
	actJoin action = "join"
)

// decision is an action and why it is taken.
type decision struct {
	action action
	// leaves is the ID that is to be removed.
	leaves  uint64
	because string
	// lost says that it waits for a quorum, restored that it waits until the first member has restored a point in time.
	lost, restored bool
}

func wait(because string, arguments ...any) decision {
	return decision{action: actWait, because: fmt.Sprintf(because, arguments...)}
}

func waitForQuorum(because string, arguments ...any) decision {
	d := wait(because, arguments...)
	d.lost = true
	return d
}

// decide returns what a member does that has found so much out. It never guesses:
//
//   - Only the first member ever begins a cluster, without data of its own, and only when each of the others has
//     answered that it has no data either. A member that does not answer may have data.
//   - Where others have a quorum, they are right: a member whose data is lost, damaged, different, or of an identity
//     that they do not know joins them anew, with another identity.
//   - Without a quorum, data that is not damaged is started, since it may be what the quorum lacks; but not data that
//     knows of no other member while another has data: by itself it would be a second cluster. What others have counts
//     for nothing if this data has come of it: if it says that they were removed, or that theirs was replaced.
//   - Data of a member that was removed is not started. Where a point in time is being restored, it waits until that is
//     done; then the member joins anew.
//   - All else waits, for others or for a person.
func decide(o observation) decision {
	switch {
	case o.cluster != nil:
		return o.beside(*o.cluster)
	case o.data == dataIntact, o.data == dataDiffering:
		return o.resume()
	case len(o.those(holdsData)) > 0:
		return waitForQuorum("the data is %s and %s have data, but no quorum", o.lossOf(), list(o.those(holdsData)))
	case len(o.those(holdsUnknown)) > 0:
		return waitForQuorum("the data is %s and %s, which may have data, do not answer", o.lossOf(),
			list(o.those(holdsUnknown)))
	case o.data == dataDamaged:
		return waitForQuorum("the data is damaged, and no other member has any")
	case o.self != o.members[0]:
		return wait("%s has to begin the cluster", o.members[0].Name)
	default:
		return decision{action: actBegin, because: "no member has data"}
	}
}

func (o observation) lossOf() string {
	if o.data == dataNone {
		return "gone or was never there"
	}
	return string(o.data)
}

// those are the other members that hold so much, in order.
func (o observation) those(holds holding) []string {
	var names []string
	for _, m := range o.members {
		if m != o.self && o.holdings[m.Name] == holds {
			names = append(names, m.Name)
		}
	}
	return names
}

func list(names []string) string { return strings.Join(names, " and ") }

// resume decides about intact data while the others have no quorum.
func (o observation) resume() decision {
	if o.own.isRemoved() {
		return waitForQuorum("the other members have removed this one, and have no quorum")
	}
	if !o.own.alone {
		return decision{action: actStart, because: "the data is intact"}
	}
	if o.self != o.members[0] {
		return wait("the data is that of an etcd with a single member, which only %s may go on with; move it away",
			o.members[0].Name)
	}
	isOutlived := func(name string) bool { return o.own.outlives(o.identities[name]) }
	if others := slices.DeleteFunc(o.those(holdsData), isOutlived); len(others) > 0 {
		return waitForQuorum("the data is that of an etcd with a single member, but %s have data too, and no quorum: "+
			"the data may be of a time before they joined", list(others))
	}
	return decision{action: actStart, because: "the data is that of a single member, which others are to join"}
}

// beside decides while the others have a quorum.
func (o observation) beside(c cluster) decision {
	isOther := o.data != dataNone && o.own.cluster != 0 && o.own.cluster != c.id
	if isOther && !slices.Contains(c.replaced, o.own.cluster) {
		return wait("the data is of cluster %x, the other members are cluster %x; move away what is not needed",
			o.own.cluster, c.id)
	}
	known := func(m listedMember) bool { return m.id == o.own.member }
	if o.data == dataIntact && !isOther && !o.own.alone && slices.ContainsFunc(c.members, known) {
		return decision{action: actStart, because: "the data is intact, and the other members know it"}
	}
	for _, m := range c.members {
		if o.isOwn(m) {
			because := fmt.Sprintf("the data of member %x is %s", m.id, o.lossBeside())
			return decision{action: actLeave, leaves: m.id, because: because}
		}
	}
	if o.asksToRestore && !c.settled && !isOther && o.data == dataIntact && o.self != o.members[0] {
		waits := wait("%s has removed this member to restore a point in time; it joins again after that",
			o.members[0].Name)
		waits.restored = true
		return waits
	}
	return o.join(c)
}

func (o observation) lossBeside() string {
	if o.data == dataIntact {
		return "of an identity that it has no longer"
	}
	return o.lossOf()
}

// isOwn tells whether a member that the cluster knows was this one.
func (o observation) isOwn(m listedMember) bool {
	return m.name == o.self.Name || slices.Contains(m.peerURLs, o.self.PeerURL) ||
		(o.data != dataNone && o.own.member != 0 && m.id == o.own.member)
}

// join decides once the cluster knows nothing of this member.
func (o observation) join(c cluster) decision {
	for _, m := range c.members {
		isConfigured := func(other Member) bool { return slices.Equal(m.peerURLs, []string{other.PeerURL}) }
		switch {
		case m.learner:
			return wait("member %x is still a learner", m.id)
		case !slices.ContainsFunc(o.members, isConfigured):
			return wait("member %x (%s) is at %v, which none of --members is", m.id, m.name, m.peerURLs)
		}
	}
	return decision{action: actJoin, because: "the other members have a quorum, and do not know this one"}
}
