package reservations

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// world is a fleet as it really is, beside what the reservations is shown of it: late, or not at all when the process
// dies.
type world struct {
	t            *testing.T
	random       *rand.Rand
	clock        *clock
	reservations *Reservations
	bindings     map[string]*truth
	// cached is what the process has read of the bindings; it may be behind.
	cached  map[string]truth
	members map[string]*member
	log     []string
	// weights of the actions, and their sum.
	weights [actions]int
	weight  int
	// full tells that there was a cluster without any room.
	full bool
	// came is how many pods came where nobody expected them any more.
	came int
}

// truth is a binding as the API server has it, with its Works.
type truth struct {
	generation int64
	wanted     int32
	assigned   map[string]int32
	reports    map[string]Report
}

// member is a cluster of the fleet.
type member struct {
	name     string
	capacity int64
	copies   map[string]*replicas
	// ready is since when the fleet reaches it; zero if it doesn't.
	ready time.Time
	// shown is the latest survey, running the one that has begun and is not finished.
	shown, running *survey
}

type survey struct {
	begun time.Time
	pods  int64
}

// replicas are what became of a binding in a member.
type replicas struct {
	// told is how many it is to run, seen whether its controllers have looked at that.
	told       int32
	generation int64
	seen       bool
	pods       int32
	// inTime are the pods that came while they were waited for.
	inTime int32
	// limit is how many a quota allows.
	limit int32
	// still is since when nothing has changed.
	still time.Time
	// givenUp are the replicas whose pods didn't come for longer than the lapse, also if they came later.
	givenUp int32
}

const unlimited = 1000

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), clock: &clock{at: time.Unix(1000, 0)},
		bindings: map[string]*truth{}, cached: map[string]truth{}, members: map[string]*member{},
	}
	for name, capacity := range map[string]int64{"a": 20, "b": 10, "c": 5} {
		w.members[name] = &member{
			name: name, capacity: capacity, copies: map[string]*replicas{}, ready: w.clock.now(),
			shown: &survey{begun: w.clock.now()},
		}
	}
	w.reservations = New(w.clock.now, lapse)
	w.weigh()
	return w
}

func (w *world) view() (core.Snapshot, Surveys, error) {
	var clusters []core.Cluster
	surveys := Surveys{}
	for name, m := range w.members {
		clusters = append(clusters, roomFor(name, m.capacity, m.shown.pods))
		if !m.ready.IsZero() {
			surveys[name] = Survey{Begun: m.shown.begun, Ready: m.ready}
		}
	}
	return core.NewSnapshot(clusters), surveys, nil
}

// step does one thing that may happen at any time.
func (w *world) step() {
	name := fmt.Sprint("b", w.random.IntN(8))
	m := w.members[string("abc"[w.random.IntN(3)])]
	b := w.bindings[name]
	switch action := w.choose(); {
	case action == decides:
		w.decide(name)
	case action == observes:
		w.reservations.Observe(key(name), w.cached[name].observation())
	case action == reads && b != nil:
		w.cached[name] = *b
	case action == delivers:
		w.deliver(m)
	case action == looks:
		m.look(w.clock.now())
	case action == runs:
		w.runPods(m)
	case action == reports && b != nil:
		w.report(name)
	case action == hears && b != nil:
		w.hear(name)
	case action == begins:
		w.begin(m)
	case action == finishes:
		w.finish(m)
	case action == waits:
		w.wait(time.Duration(w.random.Int64N(int64(lapse))))
	case action == restarts:
		w.restart()
	case action == removes && b != nil:
		w.remove(name)
	case action == lifts:
		w.liftQuotas(m)
	case action == comes:
		w.comeOrGo(m)
	}
	w.check()
}

// What may happen in a step.
const (
	decides = iota
	observes
	reads
	delivers
	looks
	runs
	reports
	hears
	begins
	finishes
	waits
	restarts
	removes
	lifts
	comes
	actions
)

// choose an action; every world has its own weights, so that among many there are some in which what is rare elsewhere
// is common.
func (w *world) choose() int {
	at := w.random.IntN(w.weight)
	for action, weight := range w.weights {
		if at -= weight; at < 0 {
			return action
		}
	}
	return actions
}

func (w *world) weigh() {
	for action := range w.weights {
		w.weights[action] = 10 + w.random.IntN(100)
		if action >= restarts {
			w.weights[action] = w.random.IntN(8)
		}
		w.weight += w.weights[action]
	}
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%d ", w.clock.at.Unix())+fmt.Sprintf(format, args...))
}

// decide scales a binding as it was read, and lets the write succeed, fail, or succeed without an answer. What was read
// too early cannot be written.
func (w *world) decide(name string) {
	read := w.cached[name]
	wanted := read.wanted + int32(w.random.IntN(5))
	if w.random.IntN(5) == 0 {
		wanted = int32(w.random.IntN(int(read.wanted) + 1))
	}
	decision := w.ask(name, read, wanted)
	b := w.bindings[name]
	if b == nil {
		b = &truth{}
	}
	if decision.Failure != nil || read.generation != b.generation || w.random.IntN(4) == 0 {
		w.reservations.Withdraw(key(name))
		return
	}
	w.bindings[name] = b
	b.wanted, b.assigned = wanted, replicasOf(decision.Targets)
	b.generation++
	w.note("decide %s %v", name, b.assigned)
	if w.random.IntN(4) > 0 {
		w.reservations.Written(key(name), b.generation)
	}
}

func (w *world) ask(name string, read truth, wanted int32) core.Decision {
	var previous []core.Target
	for cluster, replicas := range read.assigned {
		previous = append(previous, core.Target{Cluster: cluster, Replicas: replicas})
	}
	decision, err := w.reservations.Decide(key(name), read.generation, wants(wanted, previous...), w.view)
	if err != nil {
		w.t.Fatal(err)
	}
	return decision
}

func (b truth) observation() Observation {
	return Observation{
		Generation: b.generation, Request: core.Resources{CPU: 100}, Assigned: maps.Clone(b.assigned),
		Reports: maps.Clone(b.reports),
	}
}

// deliver tells a member what it is to run. Pods that it is not to run any more are gone at once, and that is heard of
// before a survey that shows it is begun.
func (w *world) deliver(m *member) {
	for name, b := range w.bindings {
		r := m.copies[name]
		if m.ready.IsZero() || r == nil && b.assigned[m.name] == 0 || r != nil && r.told == b.assigned[m.name] {
			continue
		}
		if r == nil {
			r = &replicas{limit: unlimited}
			if w.random.IntN(2) == 0 {
				r.limit = int32(w.random.IntN(3))
			}
			m.copies[name] = r
		}
		w.note("deliver %s to %s: %d", name, m.name, b.assigned[m.name])
		r.told, r.generation, r.seen, r.still = b.assigned[m.name], r.generation+1, false, w.clock.now()
		if gone := r.pods - r.told; gone > 0 {
			r.pods, r.inTime = r.told, max(0, r.inTime-gone)
			w.hear(name)
		}
		r.givenUp = min(r.givenUp, r.told-r.inTime)
	}
}

// look has the controllers of a member look at everything.
func (m *member) look(now time.Time) {
	for _, r := range m.copies {
		if !r.seen {
			r.seen, r.still = true, now
		}
	}
}

func (w *world) runPods(m *member) (some bool) {
	for name, r := range m.copies {
		if r.seen && r.pods < min(r.told, r.limit) {
			w.giveUp(r)
			if r.pods++; r.inTime < r.told-r.givenUp {
				r.inTime++
			} else {
				w.came++
			}
			r.still = w.clock.now()
			w.note("pod %d of %s in %s", r.pods, name, m.name)
			some = true
		}
	}
	return some
}

func (w *world) liftQuotas(m *member) {
	w.note("quotas of %s are lifted", m.name)
	for _, r := range m.copies {
		r.limit = unlimited
	}
}

// giveUp those that have not come for too long.
func (w *world) giveUp(r *replicas) {
	if r.seen && w.clock.at.Sub(r.still) > lapse {
		r.givenUp = max(r.givenUp, r.told-r.inTime)
	}
}

// report writes into the API what members have of a binding.
func (w *world) report(name string) {
	b := w.bindings[name]
	reports := map[string]Report{}
	for cluster, assigned := range b.assigned {
		m := w.members[cluster]
		if last, known := b.reports[cluster]; m.ready.IsZero() {
			if known {
				reports[cluster] = last
			}
			continue
		}
		r := m.copies[name]
		if r == nil {
			continue
		}
		reports[cluster] = Report{Running: r.pods, Generation: r.generation}
		if r.told == assigned && r.seen {
			reports[cluster] = Report{Running: r.pods, Generation: r.generation, Settled: assigned}
		}
	}
	b.reports = reports
}

func (w *world) hear(name string) {
	w.report(name)
	w.cached[name] = *w.bindings[name]
	w.reservations.Observe(key(name), w.cached[name].observation())
}

func (w *world) hearAll() {
	for _, name := range slices.Sorted(maps.Keys(w.bindings)) {
		w.hear(name)
	}
}

// wait for a time in which nothing happens but that reports arrive.
func (w *world) wait(duration time.Duration) {
	w.hearAll()
	w.note("wait %s", duration)
	w.clock.at = w.clock.at.Add(duration)
}

func (w *world) begin(m *member) {
	s := survey{begun: w.clock.now()}
	for _, r := range m.copies {
		s.pods += int64(r.pods)
	}
	if !m.ready.IsZero() {
		m.running = &s
	}
}

func (w *world) finish(m *member) {
	if m.running != nil {
		w.note("survey %s shows %d", m.name, m.running.pods)
		m.shown, m.running = m.running, nil
	}
}

func (w *world) comeOrGo(m *member) {
	w.note("%s comes or goes", m.name)
	if m.running = nil; m.ready.IsZero() {
		m.ready = w.clock.now()
	} else {
		m.ready = time.Time{}
	}
}

// restart forgets everything but the API; the new process observes all bindings before it decides.
func (w *world) restart() {
	w.note("restart")
	w.reservations = New(w.clock.now, lapse)
	for _, m := range w.members {
		m.running = nil
	}
	for name, b := range w.bindings {
		w.cached[name] = *b
		w.reservations.Observe(key(name), b.observation())
	}
}

// remove a binding; its pods are gone before anything else happens.
func (w *world) remove(name string) {
	w.note("remove %s", name)
	delete(w.bindings, name)
	delete(w.cached, name)
	for _, m := range w.members {
		delete(m.copies, name)
	}
	w.reservations.Forget(key(name))
}

// check that no cluster was given more than it has room for, not counting what it did not run for too long.
func (w *world) check() {
	given := map[string]int64{}
	for name, b := range w.bindings {
		for cluster, replicas := range b.assigned {
			if r := w.members[cluster].copies[name]; r != nil {
				w.giveUp(r)
				replicas = max(0, replicas-r.givenUp)
			}
			given[cluster] += int64(replicas)
		}
	}
	for cluster, sum := range given {
		capacity := w.members[cluster].capacity
		if sum > capacity {
			w.t.Fatalf("%d replicas were given to %s, which has room for %d:\n%v", sum, cluster, capacity, w.log)
		}
		w.full = w.full || sum == capacity
	}
}

// comeToRest lets everything arrive that is on its way, and members deal with it.
func (w *world) comeToRest() {
	for _, m := range w.members {
		if m.ready.IsZero() {
			w.comeOrGo(m)
		}
		w.deliver(m)
		m.look(w.clock.now())
		for w.runPods(m) {
		}
	}
	w.hearAll()
	for name, b := range w.bindings {
		// Whoever had no answer tries again.
		w.ask(name, *b, b.wanted)
		w.reservations.Withdraw(key(name))
	}
	w.wait(max(lapse, doubtLasts))
	w.hearAll()
	for _, m := range w.members {
		w.begin(m)
		w.finish(m)
	}
	w.ask("last", truth{}, 0)
	w.reservations.Withdraw(key("last"))
}

func TestNoRoomIsPromisedTwiceNorForEverWhateverHappens(t *testing.T) {
	rounds := 800
	if testing.Short() {
		rounds = 60
	}
	full, came := 0, 0
	for seed := range rounds {
		w := newWorld(t, uint64(seed))
		for range 400 {
			w.step()
		}
		if w.full {
			full++
		}
		if w.came > 0 {
			came++
		}
		w.comeToRest()
		for name := range w.members {
			if left := w.reservations.Promised(name); !isNothing(left) {
				t.Fatalf("%d pods are promised in %s although everything has come to rest:\n%v", left.Pods, name, w.log)
			}
		}
	}
	if full < rounds/3 {
		t.Errorf("only %d of %d fleets had a full cluster: the test shows little", full, rounds)
	}
	if came < rounds/10 {
		t.Errorf("in only %d of %d fleets pods came late: the test shows little", came, rounds)
	}
}
