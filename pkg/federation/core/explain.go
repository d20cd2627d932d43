package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-garden/trellis/pkg/few"
)

// Reason tells why one cluster was left out.
type Reason struct {
	Cluster string
	Code    ReasonCode
	// Message names the field that decided and compares the values.
	Message string
}

// Candidate is a cluster that passed all checks of its own, with what it was compared by.
type Candidate struct {
	Cluster string
	// Tier is 0 for clusters of the affinity, 1 and more for those of its overflow tiers.
	Tier int
	// Score is 100 if the cluster had the object before.
	Score int64
	// Weight of static division, else 0.
	Weight int64
	// Available is how many replicas it has room for, those that it has included; -1 if nobody asked.
	Available int64
	// Replicas it gets.
	Replicas int32
	// Chosen tells whether it is a target.
	Chosen bool
}

// Group is a region, zone, provider or value of a label that a spread constraint chose among.
type Group struct {
	Name     string
	Score    int64
	Clusters int
	Chosen   bool
}

// OfUnit tells whether the object was placed as a unit: then Available counts sets of its components, and Replicas is
// 1.
func (d Decision) OfUnit() bool { return len(d.attempt.binding.Components) > 0 }

// Strategy that the replicas were divided by.
func (d Decision) Strategy() Strategy { return d.attempt.binding.Placement.Strategy }

// Reasons of the clusters that were left out, and of names in the policy that no cluster has, in the order of names.
func (d Decision) Reasons() []Reason {
	var list []Reason
	targets := d.targetSet()
	for i, code := range d.attempt.codes {
		c := &d.attempt.snapshot.clusters[i]
		if _, chosen := targets[c.Name]; code != Fits && !chosen {
			list = append(list, Reason{c.Name, code, d.attempt.message(c, code)})
		}
	}
	list = append(list, d.attempt.unknown()...)
	slices.SortFunc(list, func(a, b Reason) int { return strings.Compare(a.Cluster, b.Cluster) })
	return list
}

func (d Decision) targetSet() map[string]int32 {
	set := make(map[string]int32, len(d.Targets))
	for _, t := range d.Targets {
		set[t.Cluster] = t.Replicas
	}
	return set
}

// Candidates in the order in which they were preferred.
func (d Decision) Candidates() []Candidate {
	again := &attempt{
		snapshot: d.attempt.snapshot, binding: d.attempt.binding, term: d.attempt.term,
		codes: make([]ReasonCode, len(d.attempt.codes)),
	}
	candidates := again.candidates()
	sortByPreference(candidates)
	targets := d.targetSet()
	list := make([]Candidate, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		item := Candidate{Cluster: again.name(c), Tier: int(c.tier), Score: c.score, Available: c.available()}
		if again.binding.Placement.Strategy == StaticWeight {
			item.Weight = c.weight
		}
		if !again.needsEstimates() {
			item.Available = -1
		}
		item.Replicas, item.Chosen = targets[item.Cluster], has(targets, item.Cluster)
		list[i] = item
	}
	return list
}

func has(set map[string]int32, key string) bool {
	_, found := set[key]
	return found
}

// Groups that a spread constraint chose among, in the order of their names; none if there was no such choice.
func (d Decision) Groups() []Group {
	var list []Group
	for _, g := range d.attempt.groups {
		list = append(list, Group{Name: g.name, Score: g.score, Clusters: len(g.clusters), Chosen: g.chosen})
	}
	return list
}

// message of a reason. Checks keep no text, since most decisions are never explained: it is found again here.
func (a *attempt) message(c *Cluster, code ReasonCode) string {
	b := a.binding
	switch code {
	case ClusterDeleting:
		return "the cluster is being removed from the fleet"
	case AffinityMismatch:
		return a.term.mismatch(c)
	case BeingEvicted:
		return "the object is being moved away from this cluster"
	case AwayFromGroup:
		return "workloads of its affinity group are in " + listNames(b.Near) + " only"
	case GroupIsHere:
		return "a workload of its anti-affinity group is here"
	case APINotServed:
		return "the cluster does not serve " + b.Kind.GroupVersion().String() + " " + b.Kind.Kind
	case TaintNotTolerated:
		return "taint " + untolerated(c.Taints, b.Placement.Tolerations).ToString() + " is not tolerated"
	case PropertyMissing:
		return a.missingProperty(c)
	case NotKnownYet:
		return "nothing is known of the cluster yet"
	case NoWeight:
		return "no entry of spec.placement.replicaScheduling.weightPreference.staticWeightList matches it"
	case SpreadLimit:
		return a.beyondSpread(c)
	case NoReplicaAllotted:
		return "its share of " + strconv.Itoa(int(b.Replicas)) + " replicas is 0"
	}
	return ""
}

func (a *attempt) missingProperty(c *Cluster) string {
	for i := range a.binding.Placement.Spread {
		if constraint := &a.binding.Placement.Spread[i]; !constraint.hasGroup(c) {
			what := string(constraint.Field)
			if constraint.Field == FieldLabel {
				what = "label " + constraint.Label
			}
			return "the cluster has no " + what + ", which " + constraint.Path + " groups by"
		}
	}
	return ""
}

func (a *attempt) beyondSpread(c *Cluster) string {
	split := splitConstraints(a.binding.Placement.Spread)
	if len(split.groups) == 1 {
		by := split.groups[0]
		name := by.groupOf(c)
		for _, g := range a.groups {
			if g.name == name && !g.chosen {
				return fmt.Sprintf("%s %s (score %d) is not among those that %s chose: %s", by.singular(), name,
					g.score, by.Path, a.chosenGroups())
			}
		}
	}
	path := a.binding.Placement.Spread[0].Path
	if split.cluster != nil {
		path = split.cluster.Path
	}
	return "not among the clusters that " + path + " allows; others are preferred"
}

// singular names one group of the constraint.
func (c *SpreadConstraint) singular() string {
	if c.Field == FieldLabel {
		return c.Label
	}
	return string(c.Field)
}

func (a *attempt) chosenGroups() string {
	var names []string
	for _, g := range a.groups {
		if g.chosen {
			names = append(names, fmt.Sprintf("%s (score %d)", g.name, g.score))
		}
	}
	return listNames(names)
}

// mismatch names the first part of the affinity that doesn't hold.
func (t *Term) mismatch(c *Cluster) string {
	text := t.Affinity.mismatch(c)
	for i := range t.Overflow {
		text += "; " + t.Overflow[i].mismatch(c)
	}
	return text
}

func (a *Affinity) mismatch(c *Cluster) string {
	path := orDefault(a.Path, "the placement")
	if i := slices.Index(a.Exclude, c.Name); i >= 0 {
		return fmt.Sprintf("%s.exclude[%d] names it", path, i)
	}
	if len(a.Names) > 0 && !slices.Contains(a.Names, c.Name) {
		return fmt.Sprintf("%s.clusterNames does not list it", path)
	}
	if a.Labels != nil && !a.Labels.Matches(c.Labels) {
		return fmt.Sprintf("%s.labelSelector wants %s; the cluster has %s", path, shortened(a.Labels.String()),
			a.relevantLabels(c))
	}
	for i := range a.Fields {
		if r := &a.Fields[i]; !r.matches(c) {
			return fmt.Sprintf("%s.fieldSelector.matchExpressions[%d] wants %s; the cluster has %s", path, i, r.text(),
				orDefault(listNames(r.values(c)), "none"))
		}
	}
	return ""
}

// relevantLabels are those that the selector asks for.
func (a *Affinity) relevantLabels(c *Cluster) string {
	requirements, _ := a.Labels.Requirements()
	var pairs []string
	for i := range requirements {
		key := requirements[i].Key()
		if value, found := c.Labels[key]; found {
			pairs = append(pairs, key+"="+value)
		} else {
			pairs = append(pairs, "no "+key)
		}
	}
	return listNames(slices.Compact(pairs))
}

func (r *FieldRequirement) text() string {
	operator := " in "
	if r.Not {
		operator = " not in "
	}
	return string(r.Field) + operator + listNames(r.Values)
}

func (r *FieldRequirement) values(c *Cluster) []string {
	switch r.Field {
	case FieldZone:
		return c.Zones
	case FieldRegion:
		return nonEmpty(c.Region)
	case FieldProvider:
		return nonEmpty(c.Provider)
	}
	return nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// unknown gives a reason for every name in the policy that no cluster has.
func (a *attempt) unknown() []Reason {
	var list []Reason
	reported := map[string]bool{}
	report := func(affinity *Affinity) {
		for _, reason := range affinity.Unknown(a.snapshot) {
			if !reported[reason.Cluster] {
				reported[reason.Cluster] = true
				list = append(list, reason)
			}
		}
	}
	report(&a.term.Affinity)
	for i := range a.term.Overflow {
		report(&a.term.Overflow[i])
	}
	for i := range a.binding.Placement.Weights {
		report(&a.binding.Placement.Weights[i].Affinity)
	}
	for i := range a.binding.Placement.Limits {
		report(&a.binding.Placement.Limits[i].Affinity)
	}
	return list
}

// Unknown gives a reason for every name that no cluster of the fleet has.
func (a *Affinity) Unknown(fleet Snapshot) []Reason {
	var list []Reason
	for i, name := range a.Names {
		if !fleet.Has(name) {
			list = append(list, Reason{name, UnknownCluster, fmt.Sprintf(
				"%s.clusterNames[%d]: the fleet has no cluster of this name; it has %s", a.Path, i,
				listNames(fleet.Names()))})
		}
	}
	return list
}

// Explain is one sentence for people: where the object goes and, per reason, which clusters were left out.
func (d Decision) Explain() string {
	var parts []string
	for _, before := range d.Before {
		parts = append(parts, "affinity "+before.Term+": "+before.Failure.Message)
	}
	if d.Failure != nil {
		parts = append(parts, d.Failure.Message)
		if more := d.idleRoom(); more > 0 {
			parts =
				append(parts, fmt.Sprintf("room for %d more is promised to replicas of other objects that were sent "+
					"there and do not start", more))
		}
	} else {
		parts = append(parts, "placed on "+d.targetNames())
	}
	return strings.Join(append(parts, d.groupedReasons()...), "; ")
}

// idleRoom is for how many more replicas there would be room, where it was lacking, if nothing were promised to
// replicas that do not start: people see that room free in the clusters. What the object may have been promised itself
// doesn't count.
func (d Decision) idleRoom() int64 {
	a := d.attempt
	if d.Failure.Kind != NoRoom || len(a.snapshot.idle) == 0 || !a.binding.Placement.Strategy.Dynamic() {
		return 0
	}
	candidates := a.withIdle()
	needs := needsOf(a.binding)
	var more int64
	for i := range candidates {
		c, cluster := &candidates[i], &a.snapshot.clusters[candidates[i].index]
		c.estimate = a.estimate(cluster, &needs)
		holds := c.holds()
		c.estimate = needs.fit(cluster.Room, a.snapshot.promises[cluster.Name].Minus(a.snapshot.idle[cluster.Name]))
		more += max(0, c.holds()-holds-c.previous)
	}
	return min(more, int64(a.binding.Replicas))
}

// withIdle are the clusters that fit and have promised something to replicas that do not start, with what bounds their
// share.
func (a *attempt) withIdle() []candidate {
	previous := make(map[string]int32, len(a.binding.Previous))
	for _, t := range a.binding.Previous {
		previous[t.Cluster] = t.Replicas
	}
	var list []candidate
	for i, code := range a.codes {
		name := a.snapshot.clusters[i].Name
		if _, idle := a.snapshot.idle[name]; idle && code == Fits {
			list = append(list, candidate{index: int32(i), most: unlimited, previous: int64(previous[name])})
		}
	}
	a.setLimits(list)
	return list
}

func (d Decision) targetNames() string {
	names := make([]string, len(d.Targets))
	for i, t := range d.Targets {
		names[i] = t.Cluster
	}
	return strings.Join(names, ", ")
}

// groupedReasons names the clusters that share a message once, in the order of the first of them.
func (d Decision) groupedReasons() []string {
	clusters := map[string][]string{}
	var messages []string
	waits := d.Failure != nil && d.Failure.Kind == Waiting
	for _, r := range d.Reasons() {
		if waits && r.Code == NotKnownYet && d.attempt.awaits(r.Cluster) {
			continue // The failure names it.
		}
		if clusters[r.Message] == nil {
			messages = append(messages, r.Message)
		}
		clusters[r.Message] = append(clusters[r.Message], r.Cluster)
	}
	for i, message := range messages {
		messages[i] = listNames(clusters[message]) + ": " + message
	}
	return messages
}

// listNames shortens long lists.
func listNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return few.Joined(names, 10, ", ")
}

// shortened keeps what users write from filling the message.
func shortened(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
