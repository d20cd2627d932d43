package core

import (
	"cmp"
	"slices"
)

// Decide places a binding on the clusters of a snapshot.
//
// Affinity terms are tried in order, beginning with the one that was in use. When none can be satisfied the failure
// of the first one tried is reported: if no cluster fits, the object is withdrawn; if only room is lacking, what was
// placed before stays. So does it while a term waits for clusters of which nothing is known yet; those after it are not
// tried before.
//
// The result holds on to its arguments to explain itself; neither may be changed afterwards.
func Decide(s Snapshot, b Binding) Decision {
	terms := remainingTerms(&b)
	var first *Decision
	for i := range terms {
		d := decideTerm(s, &b, &terms[i])
		waits := d.Failure != nil && d.Failure.Kind == Waiting
		if waits {
			d.Targets = slices.Clone(b.Previous)
		}
		if d.Failure == nil || waits {
			if first != nil {
				d.Before = append(first.Before, TermFailure{first.Term, first.Failure})
			}
			return d
		}
		if first == nil {
			first = &d
		} else {
			first.Before = append(first.Before, TermFailure{d.Term, d.Failure})
		}
	}
	if first.Failure.Kind == NoRoom {
		first.Targets = slices.Clone(b.Previous)
	}
	return *first
}

var everywhere = []Term{{}}

// remainingTerms begins at the term in use. A placement without terms has one that matches everything.
func remainingTerms(b *Binding) []Term {
	if len(b.Placement.Terms) == 0 {
		return everywhere
	}
	if b.Fresh || b.FromFirstTerm {
		return b.Placement.Terms
	}
	for i, term := range b.Placement.Terms {
		if term.Name == b.PreviousTerm {
			return b.Placement.Terms[i:]
		}
	}
	return b.Placement.Terms
}

// attempt is the search for a decision with one affinity term.
type attempt struct {
	snapshot Snapshot
	binding  *Binding
	term     *Term
	// codes are parallel to the clusters of the snapshot: the first reason against each, or none.
	codes []ReasonCode
	// groups that the spread constraint chose among; for explanations.
	groups []group
}

func decideTerm(s Snapshot, b *Binding, term *Term) Decision {
	a := &attempt{snapshot: s, binding: b, term: term, codes: make([]ReasonCode, len(s.clusters))}
	targets, failure := a.place()
	return Decision{Targets: targets, Term: term.Name, Failure: failure, attempt: a}
}

func (a *attempt) name(c *candidate) string { return a.snapshot.clusters[c.index].Name }

func (a *attempt) place() ([]Target, *Failure) {
	candidates := a.candidates()
	waiting := a.waiting(candidates)
	if waiting != nil && a.compares() {
		return nil, waiting
	}
	targets, failure := a.placeOn(candidates)
	if failure != nil && waiting != nil {
		return nil, waiting
	}
	return targets, failure
}

func (a *attempt) placeOn(candidates []candidate) ([]Target, *Failure) {
	if len(candidates) == 0 {
		return nil, noFit("no cluster fits: 0 of %d", len(a.snapshot.clusters))
	}
	selected, failure := a.selectClusters(candidates)
	if failure != nil {
		return nil, failure
	}
	shares, failure := a.assign(selected)
	if failure != nil {
		return nil, failure
	}
	return a.targets(selected, shares), nil
}

// targets puts the shares in the order of names. Clusters whose share is nothing are left out, unless nothing is what
// the object wants.
func (a *attempt) targets(selected []candidate, shares []allotment) []Target {
	divided := a.binding.Workload && a.binding.Replicas > 0
	if divided {
		for i := range selected {
			a.codes[selected[i].index] = NoReplicaAllotted
		}
	}
	if !slices.IsSortedFunc(shares, byIndex) {
		slices.SortFunc(shares, byIndex)
	}
	targets := make([]Target, 0, len(shares))
	for _, share := range shares {
		if divided && share.replicas == 0 {
			continue
		}
		a.codes[share.index] = Fits
		targets = append(targets, Target{Cluster: a.snapshot.clusters[share.index].Name, Replicas: share.replicas})
	}
	return targets
}

func byIndex(a, b allotment) int { return cmp.Compare(a.index, b.index) }
