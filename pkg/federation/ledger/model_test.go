package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// world is a fleet as it really is, beside what the ledger is shown of it: late, or not at all when the process dies.
type world struct {
	t        *testing.T
	random   *rand.Rand
	clock    *clock
	ledger   *Ledger
	capacity map[string]int64
	bindings map[string]*truth
	// cached is what the process has read of the bindings; it may be behind.
	cached map[string]truth
	// pods that run in a cluster, by binding.
	pods map[string]map[string]int32
	// shown is the latest survey of each cluster, running the one that has begun and is not finished.
	shown, running map[string]survey
	log            []string
}

type survey struct {
	begun time.Time
	pods  int64
}

// truth is a binding as the API server has it.
type truth struct {
	generation int64
	wanted     int32
	assigned   map[string]int32
	reported   map[string]int32
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), clock: &clock{at: time.Unix(1000, 0)},
		capacity: map[string]int64{"a": 20, "b": 10, "c": 5}, bindings: map[string]*truth{}, cached: map[string]truth{}, pods: map[string]map[string]int32{},
		shown: map[string]survey{}, running: map[string]survey{},
	}
	for name := range w.capacity {
		w.pods[name] = map[string]int32{}
		w.shown[name] = survey{begun: w.clock.now()}
	}
	w.ledger = New(w.clock.now)
	return w
}

func (w *world) view() (core.Snapshot, Surveys, error) {
	var clusters []core.Cluster
	surveys := Surveys{}
	for name, capacity := range w.capacity {
		clusters = append(clusters, roomFor(name, capacity, w.shown[name].pods))
		surveys[name] = w.shown[name].begun
	}
	return core.NewSnapshot(clusters), surveys, nil
}

// step does one thing that may happen at any time.
func (w *world) step() {
	name := fmt.Sprint("b", w.random.IntN(8))
	cluster := string("abc"[w.random.IntN(3)])
	b := w.bindings[name]
	switch action := w.random.IntN(12); {
	case action <= 3:
		w.decide(name)
	case action == 4:
		w.ledger.Observe(key(name), w.cached[name].observation())
	case action == 11 && b != nil:
		w.cached[name] = *b
	case action == 5:
		w.runPods(cluster)
	case action == 6 && b != nil:
		w.note("report %s", name)
		b.reported = map[string]int32{}
		for c := range b.assigned {
			b.reported[c] = w.pods[c][name]
		}
	case action == 7:
		w.begin(cluster)
	case action == 8:
		w.finish(cluster)
	case action == 9 && w.random.IntN(6) == 0:
		w.restart()
	case action == 10 && b != nil && w.random.IntN(6) == 0:
		w.remove(name)
	}
	w.check()
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// decide scales a binding up as it was read, and lets the write succeed, fail, or succeed without an answer. What was read
// too early cannot be written.
func (w *world) decide(name string) {
	read := w.cached[name]
	var previous []core.Target
	for cluster, replicas := range read.assigned {
		previous = append(previous, core.Target{Cluster: cluster, Replicas: replicas})
	}
	wanted := read.wanted + int32(w.random.IntN(5))
	decision, err := w.ledger.Decide(key(name), read.generation, wants(wanted, previous...), w.view)
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.bindings[name]
	if b == nil {
		b = &truth{}
	}
	if decision.Failure != nil || read.generation != b.generation || w.random.IntN(4) == 0 {
		w.ledger.Withdraw(key(name))
		return
	}
	w.bindings[name] = b
	b.wanted, b.assigned = wanted, replicasOf(decision.Targets)
	b.generation++
	w.note("decide %s %v", name, b.assigned)
	if w.random.IntN(4) > 0 {
		w.ledger.Written(key(name), b.generation)
	}
}

func (b truth) observation() Observation {
	return Observation{Generation: b.generation, Request: core.Resources{CPU: 100}, Assigned: maps.Clone(b.assigned), Reported: maps.Clone(b.reported)}
}

func (w *world) runPods(cluster string) {
	for name, b := range w.bindings {
		if w.pods[cluster][name] < b.assigned[cluster] {
			w.pods[cluster][name]++
		}
	}
}

func (w *world) begin(cluster string) {
	s := survey{begun: w.clock.now()}
	for _, pods := range w.pods[cluster] {
		s.pods += int64(pods)
	}
	w.running[cluster] = s
}

func (w *world) finish(cluster string) {
	if s, found := w.running[cluster]; found {
		w.note("survey %s shows %d", cluster, s.pods)
		w.shown[cluster] = s
		delete(w.running, cluster)
	}
}

// restart forgets everything but the API; the new process observes all bindings before it decides.
func (w *world) restart() {
	w.note("restart")
	w.ledger = New(w.clock.now)
	w.running = map[string]survey{}
	for name, b := range w.bindings {
		w.cached[name] = *b
		w.ledger.Observe(key(name), b.observation())
	}
}

// remove a binding; its pods are gone before anything else happens.
func (w *world) remove(name string) {
	w.note("remove %s", name)
	delete(w.bindings, name)
	delete(w.cached, name)
	for _, pods := range w.pods {
		delete(pods, name)
	}
	w.ledger.Forget(key(name))
}

// check that no cluster was given more than it has room for.
func (w *world) check() {
	given := map[string]int64{}
	for _, b := range w.bindings {
		for cluster, replicas := range b.assigned {
			given[cluster] += int64(replicas)
		}
	}
	for cluster, sum := range given {
		if sum > w.capacity[cluster] {
			w.t.Fatalf("%d replicas were given to %s, which has room for %d:\n%v", sum, cluster, w.capacity[cluster], w.log)
		}
	}
}

func TestNoRoomIsPromisedTwiceWhateverHappens(t *testing.T) {
	rounds := 600
	if testing.Short() {
		rounds = 60
	}
	full := 0
	for seed := range rounds {
		w := newWorld(t, uint64(seed))
		for range 200 {
			w.step()
		}
		var given int64
		for _, b := range w.bindings {
			given += int64(b.wanted)
		}
		if given > 30 {
			full++
		}
	}
	if full < rounds/4 {
		t.Errorf("only %d of %d fleets came to be nearly full: the test shows little", full, rounds)
	}
}
