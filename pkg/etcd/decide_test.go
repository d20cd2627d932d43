package etcd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var configured = []Member{
	{"m-0", "https://m-0:2380"}, {"m-1", "https://m-1:2380"}, {"m-2", "https://m-2:2380"},
}

// voter is a configured member as the cluster lists it.
func voter(ordinal int, id uint64) listedMember {
	return listedMember{id: id, name: configured[ordinal].Name, peerURLs: []string{configured[ordinal].PeerURL}}
}

func learner(ordinal int, id uint64) listedMember {
	m := voter(ordinal, id)
	m.learner = true
	return m
}

func atURL(m listedMember, url string) listedMember {
	m.peerURLs = []string{url}
	return m
}

// observed is what one member knows: what the other two hold, in order.
func observed(ordinal int, data dataState, own identity, first, second holding, c *cluster) observation {
	o := observation{
		self: configured[ordinal], members: configured, data: data, own: own, holdings: map[string]holding{},
		cluster: c,
	}
	holds := []holding{first, second}
	for _, m := range configured {
		if m != o.self {
			o.holdings[m.Name], holds = holds[0], holds[1:]
		}
	}
	return o
}

func TestDecide(t *testing.T) {
	of := func(members ...listedMember) *cluster { return &cluster{id: 7, members: members} }
	single := identity{cluster: 7, member: 10, alone: true}
	notStarted := listedMember{id: 12, peerURLs: []string{"https://m-2:2380"}, learner: true}
	const unknown, nothing, data = holdsUnknown, holdsNothing, holdsData
	for _, test := range []struct {
		name string
		o    observation
		want action
		says string
	}{
		{"no member has data", observed(0, dataNone, identity{}, nothing, nothing, nil), actBegin, ""},
		{"no other answers", observed(0, dataNone, identity{}, unknown, unknown, nil), actWait, "m-1 and m-2"},
		{"one does not", observed(0, dataNone, identity{}, nothing, unknown, nil), actWait, "m-2, which may have data"},
		{"one has data", observed(0, dataNone, identity{}, nothing, data, nil), actWait, "m-2 have data, but"},
		{"the first is damaged", observed(0, dataDamaged, identity{}, nothing, nothing, nil), actWait, "damaged"},
		{"another has to begin", observed(1, dataNone, identity{}, nothing, nothing, nil), actWait, "m-0 has to begin"},
		{"two volumes are lost", observed(1, dataNone, identity{}, nothing, data, nil), actWait, "no quorum"},

		{"a single member grows", observed(0, dataIntact, single, nothing, nothing, nil), actStart, "to join"},
		{"it does not wait for others", observed(0, dataIntact, single, unknown, unknown, nil), actStart, ""},
		{"but it has grown before", observed(0, dataIntact, single, data, unknown, nil), actWait, "before they joined"},
		{"its volume is elsewhere", observed(1, dataIntact, single, nothing, nothing, nil), actWait, "only m-0 may"},
		{
			"all start at once", observed(1, dataIntact, identity{cluster: 7, member: 11}, unknown, unknown, nil),
			actStart, "",
		},

		{
			"a member comes back", observed(1, dataIntact, identity{cluster: 7, member: 11}, data, data,
				of(voter(0, 10), voter(1, 11), voter(2, 12))), actStart, "know it",
		},
		{
			"it was removed meanwhile", observed(1, dataIntact, identity{cluster: 7, member: 11}, data, data,
				of(voter(0, 10), voter(2, 12))), actJoin, "",
		},
		{
			"another has its place", observed(1, dataIntact, identity{cluster: 7, member: 11}, data, data,
				of(voter(0, 10), voter(1, 13), voter(2, 12))), actLeave, "d is of an identity",
		},
		{
			"its data is lost", observed(2, dataNone, identity{}, data, data,
				of(voter(0, 10), voter(1, 11), voter(2, 12))), actLeave, "c is gone",
		},
		{
			"that of the first is lost", observed(0, dataNone, identity{}, data, data,
				of(voter(0, 10), voter(1, 11), voter(2, 12))), actLeave, "a is gone",
		},
		{
			"its data is damaged", observed(2, dataDamaged, identity{cluster: 7, member: 12}, data, data,
				of(voter(0, 10), voter(1, 11), voter(2, 12))), actLeave, "c is damaged",
		},
		{
			"its data differs", observed(2, dataDiffering, identity{cluster: 7, member: 12}, data, data,
				of(voter(0, 10), voter(1, 11), voter(2, 12))), actLeave, "c is different from that of the others",
		},
		{
			"it differs, but the others have no quorum", observed(2, dataDiffering, identity{cluster: 7, member: 12},
				data, unknown, nil), actStart, "",
		},
		{
			"it was added and did not start", observed(2, dataNone, identity{}, data, data,
				of(voter(0, 10), voter(1, 11), notStarted)),
			actLeave, "",
		},
		{"it joins", observed(1, dataNone, identity{}, data, nothing, of(voter(0, 10))), actJoin, ""},
		{
			"one joins after the other", observed(2, dataNone, identity{}, data, data,
				of(voter(0, 10), learner(1, 11))), actWait, "still a learner",
		},
		{
			"the first does not say yet where it is", observed(1, dataNone, identity{}, data, nothing,
				of(atURL(voter(0, 10), advertisedPeerURL))), actWait, "none of --members",
		},
		{
			"it was elsewhere before", observed(1, dataNone, identity{}, data, nothing,
				of(voter(0, 10), atURL(voter(1, 11), "https://old:2380"))), actLeave, "",
		},
		{
			"a stranger is among them", observed(1, dataNone, identity{}, data, nothing,
				of(voter(0, 10), listedMember{id: 15, name: "x", peerURLs: []string{"https://x:2380"}})), actWait,
			"f (x) is at",
		},
		{
			"data of another cluster", observed(1, dataIntact, identity{cluster: 8, member: 11}, data, data,
				of(voter(0, 10), voter(2, 12))), actWait, "cluster 8",
		},
		{
			"data of before they joined", observed(0, dataIntact, single, data, data,
				of(voter(0, 10), voter(1, 11), voter(2, 12))), actLeave, "",
		},
	} {
		got := decide(test.o)
		if got.action != test.want || !strings.Contains(got.because, test.says) {
			t.Errorf("%s: got %s because %q, want %s because %q", test.name, got.action, got.because, test.want,
				test.says)
		}
	}
}

// While a point in time is restored, the first goes on beside data that has to make way, and nobody else does anything.
func TestDecideAroundARestore(t *testing.T) {
	const data = holdsData
	alone := identity{cluster: 7, member: 10, alone: true, removed: []uint64{11, 12}}
	restored := identity{cluster: 8, member: 20, alone: true, replaced: []uint64{7}}
	second, third := identity{cluster: 7, member: 11}, identity{cluster: 7, member: 12}
	holding := func(o observation, first, second identity) observation {
		names := o.those(data)
		o.identities = map[string]identity{names[0]: first, names[1]: second}
		return o
	}
	asking := func(o observation) observation {
		o.asksToRestore = true
		return o
	}
	first := func(own identity) observation { return observed(0, dataIntact, own, data, data, nil) }
	beside := func(own identity, c cluster) observation {
		return asking(observed(1, dataIntact, own, data, data, &c))
	}
	before := cluster{id: 7, members: []listedMember{voter(0, 10)}}
	settled := before
	settled.settled = true
	after := cluster{id: 8, members: []listedMember{voter(0, 20)}, replaced: []uint64{7}, settled: true}
	added := after
	added.members = []listedMember{voter(0, 20), {id: 21, peerURLs: []string{"https://m-1:2380"}, learner: true}}
	removed := second
	removed.removed = []uint64{12, 11}
	for _, test := range []struct {
		name string
		o    observation
		want action
		says string
	}{
		{"it has removed the others", holding(first(alone), second, third), actStart, ""},
		{"it has replaced what they have", holding(first(restored), second, third), actStart, ""},
		{
			"one has been a member since", holding(first(alone), second, identity{cluster: 7, member: 13}), actWait,
			"m-2 have data too",
		},
		{
			"one has the data of yet another cluster",
			holding(first(restored), second, identity{cluster: 9, member: 12}),
			actWait, "m-2 have data too",
		},
		{"one does not say", holding(first(alone), second, identity{}), actWait, "m-2 have data too"},
		{"it was removed itself", observed(1, dataIntact, removed, data, data, nil), actWait, "have no quorum"},
		{"it waits until it is restored", beside(second, before), actWait, "m-0 has removed this member"},
		{"it was refused", beside(second, settled), actJoin, ""},
		{"it is restored", beside(second, after), actJoin, ""},
		{"it was added and did not start", beside(second, added), actLeave, "15 is"},
		{
			"the request came since", observed(1, dataIntact, second, data, data, &after), actJoin, "",
		},
		{"its data is lost", asking(observed(1, dataNone, identity{}, data, data, &before)), actJoin, ""},
		{"the first was removed", asking(observed(0, dataIntact, alone, data, data, &cluster{
			id: 7, members: []listedMember{voter(1, 11), voter(2, 12)},
		})), actJoin, ""},
	} {
		got := decide(test.o)
		if got.action != test.want || !strings.Contains(got.because, test.says) {
			t.Errorf("%s: got %s because %q, want %s because %q", test.name, got.action, got.because, test.want,
				test.says)
		}
	}
}

// everyObservation calls check with all that a member can observe, in small.
func everyObservation(check func(o observation)) {
	identities := []identity{
		{}, {cluster: 7, member: 10, alone: true}, {cluster: 7, member: 11}, {cluster: 8, member: 20},
	}
	entries := []listedMember{
		voter(0, 10), voter(1, 11), learner(1, 11), voter(2, 12), learner(2, 13),
		atURL(voter(0, 10), advertisedPeerURL),
		{id: 14, peerURLs: []string{"https://m-2:2380"}, learner: true},
		{id: 15, name: "stranger", peerURLs: []string{"https://stranger:2380"}},
	}
	clusters := []*cluster{nil}
	for set := 1; set < 1<<len(entries); set++ {
		c := &cluster{id: 7}
		for i, m := range entries {
			if set&(1<<i) != 0 {
				c.members = append(c.members, m)
			}
		}
		clusters = append(clusters, c)
	}
	holdings := []holding{holdsUnknown, holdsNothing, holdsData}
	for ordinal := range configured {
		for _, data := range []dataState{dataNone, dataDamaged, dataIntact, dataDiffering} {
			for _, own := range identities {
				for _, first := range holdings {
					for _, second := range holdings {
						for _, c := range clusters {
							check(observed(ordinal, data, own, first, second, c))
						}
					}
				}
			}
		}
	}
}

func TestWhatIsNeverDecided(t *testing.T) {
	never := map[string]func(o observation, d decision) bool{
		"to begin beside data that another has or may have": func(o observation, d decision) bool {
			return d.action == actBegin && (len(o.those(holdsNothing)) != 2 || o.cluster != nil || o.data != dataNone)
		},
		"to begin, for another than the first": func(o observation, d decision) bool {
			return d.action == actBegin && o.self != configured[0]
		},
		"to start without intact data": func(o observation, d decision) bool {
			return d.action == actStart && o.data != dataIntact && o.data != dataDiffering
		},
		"to start with data that differs from that of a quorum": func(o observation, d decision) bool {
			return d.action == actStart && o.data == dataDiffering && o.cluster != nil
		},
		"to start data that knows of no other while another has some": func(o observation, d decision) bool {
			return d.action == actStart && o.own.alone && (o.cluster != nil || len(o.those(holdsData)) > 0)
		},
		"to start with data that the others have removed": func(o observation, d decision) bool {
			if d.action != actStart || o.cluster == nil {
				return false
			}
			for _, m := range o.cluster.members {
				if m.id == o.own.member {
					return false
				}
			}
			return true
		},
		"to change the members without a quorum": func(o observation, d decision) bool {
			return (d.action == actJoin || d.action == actLeave) && o.cluster == nil
		},
		"to remove another": func(o observation, d decision) bool {
			if d.action != actLeave {
				return false
			}
			for _, m := range o.cluster.members {
				if m.id == d.leaves {
					return !o.isOwn(m)
				}
			}
			return true
		},
		"to give data up that another cluster has": func(o observation, d decision) bool {
			return (d.action == actJoin || d.action == actLeave) && o.data != dataNone &&
				o.own.cluster != 0 && o.own.cluster != o.cluster.id
		},
		"to join beside a learner": func(o observation, d decision) bool {
			if d.action != actJoin {
				return false
			}
			for _, m := range o.cluster.members {
				if m.learner {
					return true
				}
			}
			return false
		},
		"without a reason": func(_ observation, d decision) bool { return d.because == "" },
	}
	count := 0
	everyObservation(func(o observation) {
		count++
		got := decide(o)
		for what, happens := range never {
			if happens(o, got) {
				t.Fatalf("it is decided %s: %+v of %+v", what, got, o)
			}
		}
	})
	if count < 10000 {
		t.Errorf("only %d observations were looked at", count)
	}
}

// world is three members and the clusters that they have made, in small: what etcd does is taken for granted.
type world struct {
	random *rand.Rand
	nodes  [memberCount]node
	// clusters by ID, each with its members by ID, and whether they are learners; begun counts them, id the members.
	clusters  map[uint64]map[uint64]bool
	begun, id uint64
}

// node is a member: what its volume has, and whether its etcd runs.
type node struct {
	data    dataState
	own     identity
	running bool
	// asleep ones do not answer.
	asleep bool
}

// quorum returns the cluster in which running voters have a quorum.
func (w *world) quorum() *cluster {
	for id, members := range w.clusters {
		voters, running := 0, 0
		c := &cluster{id: id}
		for member, isLearner := range members {
			ordinal := int(member % 10)
			listed := voter(ordinal, member)
			listed.learner = isLearner
			c.members = append(c.members, listed)
			if isLearner {
				continue
			}
			voters++
			if n := w.nodes[ordinal]; n.running && !n.asleep && n.own.member == member && n.own.cluster == id {
				running++
			}
		}
		if running > voters/2 {
			return c
		}
	}
	return nil
}

func (w *world) observe(ordinal int) observation {
	n := w.nodes[ordinal]
	holds := []holding{}
	for i, other := range w.nodes {
		if i == ordinal {
			continue
		}
		switch {
		case other.asleep:
			holds = append(holds, holdsUnknown)
		case other.data == dataNone:
			holds = append(holds, holdsNothing)
		default:
			holds = append(holds, holdsData)
		}
	}
	return observed(ordinal, n.data, n.own, holds[0], holds[1], w.quorum())
}

// member returns an ID that tells the ordinal.
func (w *world) member(ordinal int) uint64 {
	w.id++
	return w.id*10 + uint64(ordinal)
}

// act does what a member that does not run decides.
func (w *world) act(ordinal int) action {
	n := &w.nodes[ordinal]
	o := w.observe(ordinal)
	d := decide(o)
	switch d.action {
	case actStart:
		n.running = true
	case actBegin:
		w.begun++
		id := w.member(ordinal)
		w.clusters[w.begun] = map[uint64]bool{id: false}
		*n = node{data: dataIntact, own: identity{cluster: w.begun, member: id, alone: true}}
	case actLeave:
		delete(w.clusters[o.cluster.id], d.leaves)
	case actJoin:
		id := w.member(ordinal)
		w.clusters[o.cluster.id][id] = true
		*n = node{data: dataIntact, own: identity{cluster: o.cluster.id, member: id}, running: true}
		for i := range w.nodes {
			// All that run learn of it.
			if w.nodes[i].running && w.nodes[i].own.cluster == o.cluster.id {
				w.nodes[i].own.alone = false
			}
		}
	}
	return d.action
}

// promote makes voters of learners that run beside a quorum.
func (w *world) promote() {
	c := w.quorum()
	if c == nil {
		return
	}
	for id, isLearner := range w.clusters[c.id] {
		if n := w.nodes[id%10]; isLearner && n.running && !n.asleep && n.own.member == id {
			w.clusters[c.id][id] = false
		}
	}
}

// harm does something bad to a member.
func (w *world) harm(ordinal int) string {
	n := &w.nodes[ordinal]
	switch w.random.IntN(5) {
	case 0:
		n.running = false
		return "stopped"
	case 1:
		n.asleep = !n.asleep
		return fmt.Sprintf("asleep %v", n.asleep)
	case 2:
		*n = node{data: dataNone, asleep: n.asleep}
		return "lost"
	case 3:
		if n.data == dataIntact {
			n.data, n.running = dataDiffering, false
		}
		return "different"
	default:
		if n.data == dataIntact {
			n.data, n.running = dataDamaged, false
		}
		return "damaged"
	}
}

// hasAny tells whether any member has data.
func hasAny(nodes [memberCount]node) bool {
	for _, n := range nodes {
		if n.data != dataNone {
			return true
		}
	}
	return false
}

// running counts the clusters of which a member runs.
func (w *world) running() int {
	running := map[uint64]bool{}
	for _, n := range w.nodes {
		if n.running {
			running[n.own.cluster] = true
		}
	}
	return len(running)
}

// Whatever happens to the members, in whatever order they decide, there are never two clusters with a quorum, and a new
// one begins only when no member has data any more.
func TestMembersNeverMakeTwoClusters(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for run := range 2000 {
		w := &world{random: rand.New(rand.NewPCG(seed, uint64(run))), clusters: map[uint64]map[uint64]bool{}}
		for i := range w.nodes {
			w.nodes[i].data = dataNone
		}
		var history []string
		for range 200 {
			ordinal := w.random.IntN(3)
			what := ""
			switch n := w.nodes[ordinal]; {
			case w.random.IntN(12) == 0:
				what = w.harm(ordinal)
			case w.random.IntN(4) == 0:
				w.promote()
				what = "promotions"
			case !n.running && !n.asleep:
				before := w.nodes
				did := w.act(ordinal)
				what = string(did)
				if did == actBegin && hasAny(before) {
					t.Fatalf("seed %d, run %d: member %d begins a cluster beside data: %+v\n%s", seed, run, ordinal,
						before, strings.Join(history, "\n"))
				}
			}
			history = append(history, fmt.Sprintf("%d %s", ordinal, what))
			if running := w.running(); running > 1 {
				t.Fatalf("seed %d, run %d: %d clusters run: %+v\n%s", seed, run, running, w.nodes,
					strings.Join(history, "\n"))
			}
		}
	}
}

// When nothing bad happens any more and a quorum is left, all three are voters in the end.
func TestMembersComeTogether(t *testing.T) {
	w := &world{random: rand.New(rand.NewPCG(1, 1)), clusters: map[uint64]map[uint64]bool{}}
	for i := range w.nodes {
		w.nodes[i].data = dataNone
	}
	for lost := range 4 {
		for range 200 {
			if ordinal := w.random.IntN(3); !w.nodes[ordinal].running {
				w.act(ordinal)
			}
			w.promote()
		}
		c := w.quorum()
		if c == nil || len(c.members) != 3 || w.begun != 1 {
			t.Fatalf("after %d losses: %+v of %d clusters", lost, c, w.begun)
		}
		for _, m := range c.members {
			if m.learner || !w.nodes[m.id%10].running {
				t.Errorf("after %d losses %+v is no voter or does not run", lost, m)
			}
		}
		w.nodes[lost%3] = node{data: dataNone}
	}
}
