// Package ledger keeps account of the capacity of member clusters that decisions have promised and that no survey of the
// cluster shows yet, so that no two decisions are promised the same room.
//
// A promise begins with the decision, before anything is written. It ends replica by replica: when a survey that was begun
// after the member said to run them counts their pods, or when the binding asks for less. A decision that could not be
// written gives its promise back. After a restart the promises follow from the bindings: what the members have reported
// counts as promised until the first survey after the start, since an older one may not know of it.
package ledger

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Surveys tells when the survey that a snapshot shows of a cluster was begun; clusters without one are left out.
type Surveys map[string]time.Time

// Observation is what a binding says in the fleet's API.
type Observation struct {
	// Generation of the binding.
	Generation int64
	// Request of one replica.
	Request core.Resources
	// Assigned replicas by cluster.
	Assigned map[string]int32
	// Reported are the replicas that members said to run, by cluster. Those that say nothing are left out.
	Reported map[string]int32
}

// Ledger is safe for use by many.
type Ledger struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// in has the bindings that have something to do with a cluster.
	in map[string]map[types.NamespacedName]*entry
	// promised is the sum over the entries. Decisions hold on to it to explain themselves: what lent says was given to one is never
	// changed again, but copied first.
	promised core.Promises
	lent     bool
	surveys  Surveys
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
	// doubt are decisions of which is not known whether they were written, and until when they may be: until a later
	// generation than theirs is seen, or for doubtLasts.
	doubt      map[string]int32
	doubtBase  int64
	doubtSince time.Time
	reported   map[string]report
	// counted are the replicas that the survey of their cluster shows.
	counted map[string]int32
}

// doubtLasts is longer than an API server works on a request.
const doubtLasts = 2 * time.Minute

// report is how many replicas a member said to run, and since when it is known.
type report struct {
	replicas int32
	since    time.Time
}

// New makes an empty ledger; now gives the time.
func New(now func() time.Time) *Ledger {
	return &Ledger{
		now: now, entries: map[types.NamespacedName]*entry{}, in: map[string]map[types.NamespacedName]*entry{},
		promised: core.Promises{}, surveys: Surveys{},
	}
}

// Decide decides with what is promised to others taken off, and promises what was decided: all under one lock. generation is
// that of the binding that b was read from. current is called under the lock too, so that the snapshot is not older than one
// that was used before. Written or Withdraw follows, or neither if it is not known whether the decision was written.
func (l *Ledger) Decide(key types.NamespacedName, generation int64, b core.Binding, current func() (core.Snapshot, Surveys, error)) (core.Decision, error) {
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
	decision := core.Decide(snapshot.WithPromises(l.promised), b)
	l.lent = true
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
func (l *Ledger) Written(key types.NamespacedName, generation int64) {
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
func (l *Ledger) Withdraw(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) { e.inFlight, e.written = nil, 0 })
}

// Observe takes in what the API says of a binding.
func (l *Ledger) Observe(key types.NamespacedName, seen Observation) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) {
		if seen.Generation >= e.generation {
			e.request, e.generation, e.assigned = seen.Request, seen.Generation, seen.Assigned
		}
		e.reported = renew(e.reported, seen.Reported, now)
		for cluster, counted := range e.counted {
			// Replicas that are gone may come back, and are room that is spoken for.
			e.counted[cluster] = min(counted, e.reported[cluster].replicas)
		}
		e.landed(now)
	})
}

// renew keeps since when a number is known.
func renew(known map[string]report, seen map[string]int32, now time.Time) map[string]report {
	result := make(map[string]report, len(seen))
	for cluster, replicas := range seen {
		if old, found := known[cluster]; found && old.replicas == replicas {
			result[cluster] = old
		} else {
			result[cluster] = report{replicas, now}
		}
	}
	return result
}

// Forget a binding that is gone.
func (l *Ledger) Forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(key, func(e *entry) { *e = entry{} })
}

// Promised is what a cluster has promised and no survey shows yet.
func (l *Ledger) Promised(cluster string) core.Resources {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised[cluster].Plus(core.Resources{})
}

// settle ends the promises that surveys show.
func (l *Ledger) settle(surveys Surveys) {
	for cluster, begun := range surveys {
		if !begun.After(l.surveys[cluster]) {
			continue
		}
		l.surveys[cluster] = begun
		for key, e := range l.in[cluster] {
			if r := e.reported[cluster]; r.since.Before(begun) && e.counted[cluster] != r.replicas {
				l.change(key, func(e *entry) { e.count(cluster, r.replicas) })
			}
		}
	}
}

func (e *entry) count(cluster string, replicas int32) {
	if e.counted == nil {
		e.counted = map[string]int32{}
	}
	e.counted[cluster] = replicas
}

// change applies a change to an entry and keeps the sums right. Entries about nothing are dropped.
func (l *Ledger) change(key types.NamespacedName, apply func(*entry)) {
	e, found := l.entries[key]
	if !found {
		e = &entry{}
	}
	l.add(key, e, -1)
	apply(e)
	if len(e.assigned) == 0 && e.inFlight == nil && e.doubt == nil {
		delete(l.entries, key)
		return
	}
	l.entries[key] = e
	l.add(key, e, 1)
}

// add an entry to the sums, or take it out of them.
func (l *Ledger) add(key types.NamespacedName, e *entry, sign int64) {
	for cluster := range union(e.assigned, e.inFlight, e.doubt) {
		l.enlist(cluster, key, e, sign)
		if replicas := int64(e.open(cluster)); replicas > 0 {
			l.sum(cluster, onePodAtLeast(e.request).Times(sign*replicas))
		}
	}
}

// onePodAtLeast: every replica takes one of the places for pods.
func onePodAtLeast(request core.Resources) core.Resources {
	request.Pods = max(1, request.Pods)
	return request
}

func (l *Ledger) enlist(cluster string, key types.NamespacedName, e *entry, sign int64) {
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

// open is the number of replicas that are promised in a cluster and not seen by its survey.
func (e *entry) open(cluster string) int32 {
	return max(0, max(e.assigned[cluster], e.inFlight[cluster], e.doubt[cluster])-e.counted[cluster])
}

func (l *Ledger) sum(cluster string, amount core.Resources) {
	if l.lent {
		l.promised, l.lent = maps.Clone(l.promised), false
	}
	if sum := l.promised[cluster].Plus(amount); isNothing(sum) {
		delete(l.promised, cluster)
	} else {
		l.promised[cluster] = sum
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
