package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Decide places a binding on the clusters of a snapshot.
//
// Affinity terms are tried in order, beginning with the one that was in use. When none can be satisfied the failure
// of the first one tried is reported: if no cluster fits, the object is withdrawn; if only room is lacking, what was
// placed before stays.
func Decide(s Snapshot, b Binding) Decision {
	terms := remainingTerms(b)
	var first *Decision
	for i := range terms {
		d := decideTerm(s, b, terms[i])
		if d.Failure == nil {
			return d
		}
		if first == nil {
			first = &d
		}
	}
	if first.Failure.Kind == NoRoom {
		first.Targets = slices.Clone(b.Previous)
	}
	return *first
}

// remainingTerms begins at the term in use. A placement without terms has one that matches everything.
func remainingTerms(b Binding) []Term {
	if len(b.Placement.Terms) == 0 {
		return []Term{{}}
	}
	for i, term := range b.Placement.Terms {
		if term.Name == b.PreviousTerm {
			return b.Placement.Terms[i:]
		}
	}
	return b.Placement.Terms
}

func decideTerm(s Snapshot, b Binding, term Term) Decision {
	why := reasons{}
	d := Decision{Term: term.Name}
	reportUnknown(s, b, term, why)
	d.Targets, d.Failure = place(s, b, term, why)
	d.Reasons = why.sorted(d.Targets)
	return d
}

func place(s Snapshot, b Binding, term Term, why reasons) ([]Target, *Failure) {
	fitting := filter(s, b, term, why)
	candidates := rank(fitting, b, why)
	if len(candidates) == 0 {
		return nil, noFit("no cluster fits: 0 of %d", len(s.clusters))
	}
	selected, failure := selectClusters(candidates, b, why)
	if failure != nil {
		return nil, failure
	}
	targets, failure := assign(selected, b)
	if failure != nil {
		return nil, failure
	}
	return dropEmpty(targets, b, why), nil
}

// dropEmpty removes clusters whose share is nothing, unless nothing is what the object wants.
func dropEmpty(targets []Target, b Binding, why reasons) []Target {
	kept := make([]Target, 0, len(targets))
	for _, t := range targets {
		if b.Workload && b.Replicas > 0 && t.Replicas == 0 {
			// It was chosen, so this counts before any reason for not being chosen.
			why[t.Cluster] = Reason{Cluster: t.Cluster, Code: NoReplicaAllotted, Message: "its share of " + strconv.Itoa(int(b.Replicas)) + " replicas is 0"}
			continue
		}
		kept = append(kept, t)
	}
	slices.SortFunc(kept, func(a, b Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	return kept
}

// reportUnknown gives a reason to every name in the policy that no cluster has.
func reportUnknown(s Snapshot, b Binding, term Term, why reasons) {
	report := func(a Affinity) {
		for i, name := range a.Names {
			if !s.Has(name) {
				why.add(name, UnknownCluster, fmt.Sprintf("%s.clusterNames[%d]: the fleet has no cluster of this name; it has %s", a.Path, i, listNames(s.Names())))
			}
		}
	}
	report(term.Affinity)
	for _, w := range b.Placement.Weights {
		report(w.Affinity)
	}
}

// listNames shortens long lists.
func listNames(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
