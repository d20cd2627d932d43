package core

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The golden_*_test.go files hold the numbers of the published scheduler's own tests, and of worked examples that were
// computed with it. The results are those of Karmada's main branch (commit f8fdd02), which Trellis follows; a row names
// what v1.12.0 gives where that differs. Paths are those of that repository; numbers were taken, code was not.

// numbersOf parses "m1:3 m2:1" in the order in which it is written.
func numbersOf(t *testing.T, text string) []Target {
	t.Helper()
	var targets []Target
	for _, field := range strings.Fields(text) {
		name, number, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			t.Fatalf("%q: %v", field, err)
		}
		targets = append(targets, Target{Cluster: name, Replicas: int32(n)})
	}
	return targets
}

// roomFor is a snapshot of clusters with room for so many pods, given as "m1:3 m2:1".
func roomFor(t *testing.T, pods string) Snapshot {
	t.Helper()
	var clusters []Cluster
	for _, c := range numbersOf(t, pods) {
		clusters = append(clusters, member(c.Cluster, withRoom(int64(c.Replicas))))
	}
	return NewSnapshot(clusters)
}

// weighing gives clusters static weights, one entry each, written as "m1:3 m2:1".
func weighing(t *testing.T, text string) []Weight {
	t.Helper()
	var weights []Weight
	for _, c := range numbersOf(t, text) {
		weights = append(weights, Weight{Affinity: Affinity{Names: []string{c.Cluster}}, Weight: int64(c.Replicas)})
	}
	return weights
}

// outcomeOf is the targets of a decision, or what failed.
func outcomeOf(d Decision) string {
	switch {
	case d.Failure == nil:
		return text(d.Targets)
	case d.Failure.Kind == NoRoom:
		return "no room"
	}
	return "no fit"
}

// spreadOver bounds the number of groups of a property.
func spreadOver(field Field, least, most int) SpreadConstraint {
	return SpreadConstraint{Path: fmt.Sprintf("spread by %s", field), Field: field, Min: least, Max: atMost(most)}
}
