// Package reservations keeps account of the capacity of member clusters that decisions have promised and that no survey
// of the cluster shows yet, so that no two decisions are promised the same room.
//
// A promise begins with the decision, before anything is written. It ends replica by replica: when a survey that was
// begun after the member said to run them counts their pods, or when the binding asks for less. A decision that could
// not be written gives its promise back. After a restart the promises follow from the bindings: what the members have
// reported counts as promised until the first survey after the start, since an older one may not know of it.
//
// What a member has dealt with and does not run, because a quota there keeps its pods out for example, holds no room
// for ever: the promise lapses when nothing has changed for a while. It comes back when more replicas run or the member
// is told something new, even if others were given the room: then nobody gets any more of it.
package reservations

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Surveys are those that a snapshot shows, by cluster; clusters without one are left out.
type Surveys map[string]Survey

// Survey of a cluster.
type Survey struct {
	Begun time.Time
	// Ready is since when the cluster has been ready without a break. Before, its silence meant nothing.
	Ready time.Time
}

// Observation is what a binding says in the fleet's API.
type Observation struct {
	// Generation of the binding.
	Generation int64
	// Request of one replica.
	Request core.Resources
	// Assigned replicas by cluster.
	Assigned map[string]int32
	// Reports of members, by cluster; nil if nothing new is known of them. Those that say nothing are left out.
	Reports map[string]Report
}

// Report is what a member says of its share of a binding.
type Report struct {
	// Running are the replicas that have their pods, or have come to an end.
	Running int32
	// Numberless reports don't tell Running: as many count as before.
	Numberless bool
	// Settled counts replicas the member has processed. Those not Running are not expected to start. 0 while no answer
	// has come.
	Settled int32
	// Generation that the object has in the member; 0 if that is not known.
	Generation int64
}

// Reservations are safe for use by many.
type Reservations struct {
	now   func() time.Time
	lapse time.Duration

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// in has the bindings that have something to do with a cluster.
	in map[string]map[types.NamespacedName]*entry
	// promised is the sum over the entries, and idle the part of it that is for replicas that do not start.
	promised, idle sums
	// surveys are when those that were taken in last were begun.
	surveys map[string]time.Time
}

// entry is about one binding.
type entry struct {
	request    core.Resources
	generation int64
	assigned   map[string]int32
	// inFlight is decided and not yet seen in the API; nil if there is nothing.
	inFlight map[string]int32
	// written is the generation that inFlight became, 0 as long as that is not known.
	written int64
	// doubt holds decisions whose write has an unknown result, until a later generation is seen or doubtLasts has
	// passed.
	doubt      map[string]int32
	doubtBase  int64
	doubtSince time.Time
	reported   map[string]report
	// counted are the replicas that the survey of their cluster shows.
	counted map[string]int32
	// lapsed are those that their cluster was told to run and does not.
	lapsed map[string]int32
}

// doubtLasts is longer than an API server works on a request.
const doubtLasts = 2 * time.Minute

// report is what a member said last.
type report struct {
	Report
	// since is when Running became known; still is since when nothing has changed.
	since, still time.Time
}

// DefaultLapse is what production uses: longer than pods take to be made, also one after the other.
const DefaultLapse = 10 * time.Minute

// New makes Reservations that hold nothing. When a member's report has not changed for longer than lapse, the replicas
// that it has processed and does not run hold no room any more. now gives the time.
func New(now func() time.Time, lapse time.Duration) *Reservations {
	return &Reservations{
		now: now, lapse: lapse, entries: map[types.NamespacedName]*entry{},
		in:       map[string]map[types.NamespacedName]*entry{},
		promised: sums{of: core.Promises{}}, idle: sums{of: core.Promises{}}, surveys: map[string]time.Time{},
	}
}

// Decide decides with what is promised to others taken off, and promises what was decided: all under one lock.
// generation is that of the binding that b was read from. current is called under the lock too, so that the snapshot is
// not older than one that was used before. Written or Withdraw follows, or neither if it is not known whether the
// decision was written.
func (l *Reservations) Decide(key types.NamespacedName, generation int64, b core.Binding,
	current func() (core.Snapshot, Surveys, error)) (core.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	snapshot, surveys, err := current()
	if err != nil {
		return core.Decision{}, err
	}
	l.settle(surveys)
	now := l.now()
	l.change(key, func(e *entry) {
		e.unanswered(now)
		if generation >= e.generation {
			e.generation, e.assigned = generation, replicasOf(b.Previous)
		}
		e.landed(now)
	})
	decision := core.Decide(snapshot.WithPromises(l.promised.lend()).WithIdle(l.idle.lend()), b)
	if b.Workload {
		l.change(key, func(e *entry) {
			e.request, e.inFlight, e.written = b.Request, replicasOf(decision.Targets), 0
		})
	}
	return decision, nil
}

// unanswered puts a decision that the API doesn't show yet, or of which nothing was heard, beside the next one.
func (e *entry) unanswered(now time.Time) {
	if e.inFlight == nil {
		return
	}
	doubt := map[string]int32{}
	for cluster := range union(e.doubt, e.inFlight) {
		doubt[cluster] = max(e.doubt[cluster], e.inFlight[cluster])
	}
	e.doubt, e.doubtBase, e.doubtSince = doubt, max(e.generation, e.written-1), now
	e.inFlight, e.written = nil, 0
}

func replicasOf(targets []core.Target) map[string]int32 {
	result := make(map[string]int32, len(targets))
	for _, t := range targets {
		result[t.Cluster] = t.Replicas
	}
	return result
}

// Written tells the generation of the binding that a decision was written in.
func (l *Reservations) Written(key types.NamespacedName, generation int64) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) {
		e.written = generation
		e.landed(now)
	})
}

// landed: from the moment on that the API shows the decision, the binding speaks for itself.
func (e *entry) landed(now time.Time) {
	if e.written != 0 && e.generation >= e.written {
		e.inFlight, e.written = nil, 0
	}
	if e.doubt != nil && (e.generation > e.doubtBase || now.Sub(e.doubtSince) > doubtLasts) {
		e.doubt = nil
	}
}

// Withdraw gives back what a decision that was not written had been promised.
func (l *Reservations) Withdraw(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) { e.inFlight, e.written = nil, 0 })
}

// Observe takes in what the API says of a binding.
func (l *Reservations) Observe(key types.NamespacedName, seen Observation) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) {
		if seen.Generation >= e.generation {
			e.request, e.generation, e.assigned = seen.Request, seen.Generation, seen.Assigned
		}
		if seen.Reports != nil {
			e.hear(seen.Reports, now)
		}
		e.landed(now)
	})
}

// hear what members say. What was known of others is forgotten.
func (e *entry) hear(reports map[string]Report, now time.Time) {
	heard := make(map[string]report, len(reports))
	for cluster, seen := range reports {
		if seen.Numberless {
			seen.Running = e.counted[cluster]
		}
		next := report{seen.within(e.wanted(cluster)), now, now}
		old, known := e.reported[cluster]
		if known && old.Running == next.Running {
			next.since = old.since
		}
		if known && old.Report == next.Report {
			next.still = old.still
		}
		if next.Running > old.Running || next.Generation != old.Generation {
			delete(e.lapsed, cluster)
		}
		heard[cluster] = next
	}
	e.reported = heard
	for cluster, counted := range e.counted {
		// Replicas that are gone may come back, and are room that is spoken for.
		e.counted[cluster] = min(counted, heard[cluster].Running)
	}
}

// Forget a binding that is gone.
func (l *Reservations) Forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) { *e = entry{} })
}

// Promised is what a cluster has promised and no survey shows yet.
func (l *Reservations) Promised(cluster string) core.Resources {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised.of[cluster].Plus(core.Resources{})
}

// settle ends the promises that surveys show, and those that lapse.
func (l *Reservations) settle(surveys Surveys) {
	for cluster, survey := range surveys {
		if !survey.Begun.After(l.surveys[cluster]) {
			continue
		}
		l.surveys[cluster] = survey.Begun
		for key, e := range l.in[cluster] {
			counted, lapsed := e.shown(cluster, survey, l.lapse)
			if counted != e.counted[cluster] || lapsed != e.lapsed[cluster] {
				l.change(key, func(e *entry) { e.settle(cluster, counted, lapsed) })
			}
		}
	}
}

// shown is how many replicas a survey counts, and how many it makes lapse.
func (e *entry) shown(cluster string, survey Survey, lapse time.Duration) (counted, lapsed int32) {
	r := e.reported[cluster]
	counted, lapsed = e.counted[cluster], e.lapsed[cluster]
	if r.since.Before(survey.Begun) {
		counted = r.Running
	}
	if survey.Begun.Sub(r.still) > lapse && survey.Begun.Sub(survey.Ready) > lapse {
		lapsed = max(0, r.Settled-counted)
	}
	return counted, lapsed
}

func (e *entry) settle(cluster string, counted, lapsed int32) {
	if e.counted == nil {
		e.counted, e.lapsed = map[string]int32{}, map[string]int32{}
	}
	e.counted[cluster], e.lapsed[cluster] = counted, lapsed
}

// forgetUnwanted: replicas that are not wanted any more would be new ones if they were wanted again.
func (e *entry) forgetUnwanted() {
	for cluster, r := range e.reported {
		r.Report = r.within(e.wanted(cluster))
		e.reported[cluster] = r
	}
	for cluster, counted := range e.counted {
		e.counted[cluster] = min(counted, e.wanted(cluster))
	}
	for cluster, lapsed := range e.lapsed {
		e.lapsed[cluster] = min(lapsed, max(0, e.reported[cluster].Settled-e.counted[cluster]))
	}
}

// within leaves out what is not wanted.
func (r Report) within(wanted int32) Report {
	r.Running, r.Settled = min(r.Running, wanted), min(r.Settled, wanted)
	return r
}

// change applies a change to an entry and keeps the sums right. Entries about nothing are dropped.
func (l *Reservations) change(key types.NamespacedName, apply func(*entry)) {
	e, found := l.entries[key]
	if !found {
		e = &entry{}
	}
	l.add(key, e, -1)
	apply(e)
	e.forgetUnwanted()
	if len(e.assigned) == 0 && e.inFlight == nil && e.doubt == nil {
		delete(l.entries, key)
		return
	}
	l.entries[key] = e
	l.add(key, e, 1)
}

// add an entry to the sums, or take it out of them.
func (l *Reservations) add(key types.NamespacedName, e *entry, sign int64) {
	for cluster := range union(e.assigned, e.inFlight, e.doubt) {
		l.enlist(cluster, key, e, sign)
		if replicas := int64(e.open(cluster)); replicas > 0 {
			l.promised.add(cluster, onePodAtLeast(e.request).Times(sign*replicas))
		}
		if replicas := int64(e.idle(cluster)); replicas > 0 {
			l.idle.add(cluster, onePodAtLeast(e.request).Times(sign*replicas))
		}
	}
}

// onePodAtLeast: every replica takes one of the places for pods.
func onePodAtLeast(request core.Resources) core.Resources {
	request.Pods = max(1, request.Pods)
	return request
}

func (l *Reservations) enlist(cluster string, key types.NamespacedName, e *entry, sign int64) {
	if sign < 0 {
		delete(l.in[cluster], key)
		if len(l.in[cluster]) == 0 {
			delete(l.in, cluster)
		}
		return
	}
	if l.in[cluster] == nil {
		l.in[cluster] = map[types.NamespacedName]*entry{}
	}
	l.in[cluster][key] = e
}

// wanted is the number of replicas that a cluster has, or may get.
func (e *entry) wanted(cluster string) int32 {
	return max(e.assigned[cluster], e.inFlight[cluster], e.doubt[cluster])
}

// open is the number of replicas that are promised in a cluster: its survey doesn't show them, and they have not
// lapsed.
func (e *entry) open(cluster string) int32 {
	return max(0, e.wanted(cluster)-e.counted[cluster]-e.lapsed[cluster])
}

// idle is the number of open replicas that the cluster has dealt with and does not run, as far as its reports tell.
func (e *entry) idle(cluster string) int32 {
	r := e.reported[cluster]
	if r.Numberless {
		return 0
	}
	return min(e.open(cluster), max(0, r.Settled-r.Running-e.lapsed[cluster]))
}

// sums of resources by cluster. Decisions hold on to them to explain themselves: what was lent to one is never changed
// again, but copied first.
type sums struct {
	of   core.Promises
	lent bool
}

func (s *sums) lend() core.Promises {
	s.lent = true
	return s.of
}

func (s *sums) add(cluster string, amount core.Resources) {
	if s.lent {
		s.of, s.lent = maps.Clone(s.of), false
	}
	if sum := s.of[cluster].Plus(amount); isNothing(sum) {
		delete(s.of, cluster)
	} else {
		s.of[cluster] = sum
	}
}

func isNothing(r core.Resources) bool {
	for _, amount := range r.Other {
		if amount != 0 {
			return false
		}
	}
	return r.CPU == 0 && r.Memory == 0 && r.Storage == 0 && r.Pods == 0
}

func union(all ...map[string]int32) map[string]struct{} {
	result := map[string]struct{}{}
	for _, replicas := range all {
		for cluster := range replicas {
			result[cluster] = struct{}{}
		}
	}
	return result
}
