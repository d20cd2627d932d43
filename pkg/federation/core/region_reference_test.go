package core

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// choosePlainly is the published scheduler's choice of groups, as simply as it can be written: every subset that its
// depth-first search records, put in order, and the best taken. False if there are more than limit.
func choosePlainly(groups []group, least, most, clusters, limit int) ([]string, bool) {
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(a.clusters), len(b.clusters)), cmp.Compare(b.score, a.score),
			cmp.Compare(a.name, b.name))
	})
	var recorded []recordedSubset
	var search func(from int, chosen []group, value int)
	search = func(from int, chosen []group, value int) {
		if value >= clusters && len(chosen) >= least && len(chosen) <= most {
			recorded = append(recorded, record(chosen))
			return
		}
		for i := from; i < len(sorted) && len(chosen) < most && len(recorded) <= limit; i++ {
			search(i+1, append(slices.Clone(chosen), sorted[i]), value+len(sorted[i].clusters))
			if len(sorted) == least {
				return
			}
		}
	}
	search(0, nil, 0)
	if len(recorded) > limit {
		return nil, false
	}
	return bestOfRecorded(recorded), true
}

type recordedSubset struct {
	names []string
	score int64
	value int
}

// record sorts a subset the way it is going to be used.
func record(chosen []group) recordedSubset {
	chosen = slices.Clone(chosen)
	slices.SortFunc(chosen, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
	})
	var subset recordedSubset
	for _, g := range chosen {
		subset.names = append(subset.names, g.name)
		subset.score += g.score
		subset.value += len(g.clusters)
	}
	return subset
}

func bestOfRecorded(recorded []recordedSubset) []string {
	if len(recorded) == 0 {
		return nil
	}
	slices.SortStableFunc(recorded, func(a, b recordedSubset) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.value, a.value))
	})
	final := recorded[0].names
	for _, later := range recorded[1:] {
		if len(later.names) < len(final) && slices.Equal(later.names, final[:len(later.names)]) {
			final = later.names
		}
	}
	return final
}

func TestRegionsAreChosenAsByAPlainSearch(t *testing.T) {
	r := rand.New(rand.NewSource(21))
	compare := func(groups []group, least, most, clusters, limit int) bool {
		want, ended := choosePlainly(groups, least, most, clusters, limit)
		if !ended {
			return false
		}
		var got []string
		for _, g := range selectGroups(mixed(r, groups), least, most, clusters) {
			got = append(got, g.name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s, %d to %d groups, %d clusters: got %v, want %v", describeGroups(groups), least, most, clusters,
				got, want)
		}
		return true
	}
	for range cases(t, 100_000) {
		groups := randomGroups(r, 1+r.Intn(oneOf(r, 4, 7, 9)))
		least := 1 + r.Intn(3)
		compare(groups, least, least+r.Intn(4), r.Intn(12), 1<<13)
	}
	for range cases(t, 300) {
		groups := randomGroups(r, 8+r.Intn(5))
		compare(groups, 1+r.Intn(4), 4+r.Intn(8), r.Intn(30), 1<<13)
	}
	larger := 0
	for range cases(t, 10) {
		groups := randomGroups(r, 13+r.Intn(28))
		if compare(groups, 1+r.Intn(3), 3+r.Intn(3), r.Intn(20), 30_000) {
			larger++
		}
	}
	if larger == 0 {
		t.Error("no plain search over more than 12 regions ended")
	}
}

// randomGroups have few different scores and sizes, so that many subsets are worth the same.
func randomGroups(r *rand.Rand, n int) []group {
	scores := oneOf(r, 1, 3, 10, 100_000)
	sizes := oneOf(r, 1, 3, 8)
	groups := make([]group, n)
	for i := range groups {
		groups[i] = groupOf(fmt.Sprintf("R%02d", i), 1+r.Intn(sizes), int64(r.Intn(scores)))
	}
	return groups
}

// groupOf is a group of so many clusters.
func groupOf(name string, clusters int, score int64) group {
	return group{name: name, score: score, clusters: make([]candidate, clusters)}
}

func describeGroups(groups []group) string {
	var parts []string
	for _, g := range groups {
		parts = append(parts, fmt.Sprintf("%s:%d/%d", g.name, len(g.clusters), g.score))
	}
	return strings.Join(parts, " ")
}
