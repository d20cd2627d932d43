package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand"
	"slices"
	"strings"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"

	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// class is how two decisions of a case relate. docs/federation-differences.md explains each.
type class string

const (
	same class = "same"
	// unexplained is a defect of one side, or of this list.
	unexplained         class = "UNEXPLAINED"
	staticRemainder     class = "static-remainder"
	dynamicRemainder    class = "dynamic-remainder"
	aggregatedRemainder class = "aggregated-remainder"
	aggregatedTie       class = "aggregated-tie"
	staticSpread        class = "static-spread"
	spreadByOther       class = "spread-by-zone-or-provider"
	peerPanics          class = "peer-panics"
	fromFirstTerm       class = "rescheduling-from-the-first-term"
	scaleDownGone       class = "scale-down-without-gone-clusters"
)

// compareCase decides a case on both sides.
func compareCase(c testCase) (class, string, error) {
	p, err := newPeer(c.clusters)
	if err != nil {
		return "", "", err
	}
	snapshot, err := snapshotOf(c.clusters)
	if err != nil {
		return "", "", err
	}
	spec, status, err := bindingOf(c.spec, c.status)
	if err != nil {
		return "", "", err
	}
	binding, err := karmada.Binding(spec, status)
	if err != nil {
		return "", "", err
	}
	ours, theirs := ourOutcome(core.Decide(snapshot, binding)), p.decide(c.spec, c.status)
	return classify(c, ours, theirs), describe(c, ours, theirs), nil
}

func classify(c testCase, ours, theirs outcome) class {
	switch {
	case equal(ours, theirs):
		return same
	case theirs.failure == panicked:
		return peerPanics
	case c.spec.RescheduleTriggeredAt != nil && c.status.SchedulerObservedAffinityName != "":
		return fromFirstTerm
	case hasSpread(c) && strategyOf(c) == static:
		return staticSpread
	case spreadsByOtherOnly(c):
		return spreadByOther
	case ours.failure != theirs.failure || ours.failure != placed:
		if dropsGone(c, ours) {
			return scaleDownGone
		}
		return unexplained
	case ours.term != theirs.term:
		if dropsGone(c, ours) {
			return scaleDownGone
		}
		return unexplained
	case dropsGone(c, ours):
		return scaleDownGone
	case !maps.Equal(ours.chosen, theirs.chosen):
		return unexplained
	}
	return classifyDivision(c, ours, theirs)
}

// classifyDivision is for the same clusters with other numbers.
func classifyDivision(c testCase, ours, theirs outcome) class {
	if total(ours.targets) != total(theirs.targets) {
		return unexplained
	}
	switch strategyOf(c) {
	case static:
		// Both stay near the quota; Webster may pass it by one where the peer never does.
		if farthest(ours.targets, theirs.targets) <= 2 {
			return staticRemainder
		}
	case dynamic:
		if farthest(ours.targets, theirs.targets) <= 2 {
			return dynamicRemainder
		}
	case aggregated:
		return classifyAggregated(ours, theirs)
	}
	return unexplained
}

// classifyAggregated: the same clusters with a different remainder, or one cluster for another that has as much room. A
// remainder may leave the last cluster without any.
func classifyAggregated(ours, theirs outcome) class {
	used, usedThere := slices.Collect(maps.Keys(positive(ours.targets))),
		slices.Collect(maps.Keys(positive(theirs.targets)))
	slices.Sort(used)
	slices.Sort(usedThere)
	switch difference := len(used) - len(usedThere); {
	case slices.Equal(used, usedThere) && farthest(ours.targets, theirs.targets) <= 2:
		return aggregatedRemainder
	case -1 <= difference && difference <= 1:
		return aggregatedTie
	}
	return unexplained
}

func positive(targets map[string]int32) map[string]int32 {
	targets = maps.Clone(targets)
	maps.DeleteFunc(targets, func(_ string, n int32) bool { return n == 0 })
	return targets
}

func equal(a, b outcome) bool {
	return a.failure == b.failure &&
		(a.failure != placed || a.term == b.term && maps.Equal(a.targets, b.targets) && maps.Equal(a.chosen, b.chosen))
}

func total(targets map[string]int32) int64 {
	var sum int64
	for _, n := range targets {
		sum += int64(n)
	}
	return sum
}

// farthest is the largest difference of a cluster's replicas.
func farthest(a, b map[string]int32) int32 {
	var largest int32
	for _, names := range []map[string]int32{a, b} {
		for name := range names {
			largest = max(largest, a[name]-b[name], b[name]-a[name])
		}
	}
	return largest
}

type division string

const (
	duplicated division = "Duplicated"
	static     division = "static weight"
	dynamic    division = "dynamic weight"
	aggregated division = "Aggregated"
)

func strategyOf(c testCase) division {
	s := c.spec.Placement.ReplicaScheduling
	switch {
	case s == nil || s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		return duplicated
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return aggregated
	case s.WeightPreference != nil && s.WeightPreference.DynamicWeight != "":
		return dynamic
	}
	return static
}

func hasSpread(c testCase) bool { return len(c.spec.Placement.SpreadConstraints) > 0 }

func spreadsByOtherOnly(c testCase) bool {
	return hasSpread(c) && !slices.ContainsFunc(c.spec.Placement.SpreadConstraints,
		func(s policyv1alpha1.SpreadConstraint) bool {
			return s.SpreadByField == policyv1alpha1.SpreadByFieldCluster ||
				s.SpreadByField == policyv1alpha1.SpreadByFieldRegion
		})
}

// dropsGone: replicas are taken away while a cluster that had some is not among the candidates. The peer divides over
// all that had some.
func dropsGone(c testCase, ours outcome) bool {
	if (strategyOf(c) != dynamic && strategyOf(c) != aggregated) || c.spec.RescheduleTriggeredAt != nil {
		return false
	}
	var before int64
	gone := false
	for _, t := range c.spec.Clusters {
		before += int64(t.Replicas)
		gone = gone || !ours.chosen[t.Name]
	}
	return gone && before > int64(c.spec.Replicas)
}

func describe(c testCase, ours, theirs outcome) string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "ours   %s\ntheirs %s\n", ours, theirs)
	fmt.Fprintf(text, "%d replicas, %s, before %v, evicted %d, fresh %v, request %v\n", c.spec.Replicas, strategyOf(c),
		c.spec.Clusters, len(c.spec.GracefulEvictionTasks), c.spec.RescheduleTriggeredAt != nil,
		c.spec.ReplicaRequirements)
	fmt.Fprintf(text, "spread %v\naffinity %+v\naffinities %+v\n", c.spec.Placement.SpreadConstraints,
		c.spec.Placement.ClusterAffinity, c.spec.Placement.ClusterAffinities)
	if s := c.spec.Placement.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		fmt.Fprintf(text, "weights %+v\n", s.WeightPreference.StaticWeightList)
	}
	for _, m := range c.clusters {
		pods, cpu := m.Status.ResourceSummary, m.Status.ResourceSummary.Allocatable.Cpu()
		fmt.Fprintf(text, "%s %v region %q provider %q zones %v taints %v APIs %d pods %v-%v-%v cpu %v\n", m.Name,
			m.Labels, m.Spec.Region, m.Spec.Provider, m.Spec.Zones, m.Spec.Taints,
			len(m.Status.APIEnablements), pods.Allocatable.Pods(), pods.Allocated.Pods(), pods.Allocating.Pods(), cpu)
	}
	return text.String()
}

func (o outcome) String() string {
	if o.failure != placed {
		return fmt.Sprintf("%s: %s", o.failure, o.message)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(o.chosen)) {
		parts = append(parts, fmt.Sprintf("%s:%d", name, o.targets[name]))
	}
	return fmt.Sprintf("%s %s", o.term, strings.Join(parts, " "))
}

// difference is how often a class was met, and the first example.
type difference struct {
	count   int
	example string
}

// differences tries so many random cases.
func differences(cases int, seed int64) (map[class]*difference, error) {
	r := rand.New(rand.NewSource(seed))
	found := map[class]*difference{}
	for i := range cases {
		kind, description, err := compareCase(randomCase(r))
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", i, err)
		}
		if found[kind] == nil {
			found[kind] = &difference{example: fmt.Sprintf("case %d of seed %d\n%s", i, seed, description)}
		}
		found[kind].count++
	}
	return found, nil
}

func reportDifferences(out io.Writer, cases int, seed int64) error {
	found, err := differences(cases, seed)
	if err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(out, "%-36s %8d of %d\n", kind, found[kind].count, cases)
		if kind != same {
			fmt.Fprintf(out, "%s\n", found[kind].example)
		}
	}
	if found[unexplained] != nil {
		return fmt.Errorf("%d of %d cases differ without an explanation", found[unexplained].count, cases)
	}
	return nil
}
