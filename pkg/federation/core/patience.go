package core

import (
	"fmt"
	"slices"
	"time"
)

// compares tells whether one cluster more may change what the others get: where a spread constraint chooses, and where
// replicas are divided. Elsewhere a cluster that comes later just gets the object too.
func (a *attempt) compares() bool {
	b := a.binding
	return len(b.Placement.Spread) > 0 || b.Workload && b.Placement.Strategy != Duplicated
}

// waiting is the failure for as long as the binding waits for clusters of which nothing is known yet; nil if it waits
// for none. It ends when it is known of the last of them how it is, or its time has passed, or the binding's has.
func (a *attempt) waiting(candidates []candidate) *Failure {
	p := a.binding.Patience
	if !p.Now.Before(p.Until) {
		return nil
	}
	var names []string
	var last time.Time
	for _, i := range a.notKnown(candidates) {
		c := &a.snapshot.clusters[i]
		if !a.awaits(c.Name) {
			continue
		}
		names = append(names, c.Name)
		if c.AwaitedUntil.After(last) {
			last = c.AwaitedUntil
		}
	}
	if len(names) == 0 {
		return nil
	}
	if last.After(p.Until) {
		last = p.Until
	}
	return &Failure{Kind: Waiting, Until: last, Message: fmt.Sprintf("nothing is known of %s yet: waiting until %s",
		listNames(names), last.UTC().Format(time.RFC3339))}
}

// awaits tells whether the time of a cluster has not passed.
func (a *attempt) awaits(name string) bool {
	return a.binding.Patience.Now.Before(a.snapshot.clusters[a.snapshot.index[name]].AwaitedUntil)
}

// notKnown are the positions of the clusters that might be candidates if it was known how they are.
func (a *attempt) notKnown(candidates []candidate) []int {
	weights := a.staticWeights()
	weighted := weights != nil && slices.ContainsFunc(candidates,
		func(c candidate) bool { return weights[c.index] > 0 })
	var result []int
	for i, code := range a.codes {
		if code == NotKnownYet && (!weighted || weights[i] > 0) {
			result = append(result, i)
		}
	}
	return result
}
