package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fixture collects clusters in the order in which they are added, which stands for that of names.
type fixture struct{ attempt }

func newFixture(b Binding) *fixture { return &fixture{attempt{binding: &b}} }

// candidates parses "name/score/available".
func (f *fixture) candidates(t *testing.T, specs string) []candidate {
	t.Helper()
	var result []candidate
	for _, spec := range strings.Fields(specs) {
		c := candidate{index: int32(len(f.snapshot.clusters)), most: unlimited}
		name, numbers, _ := strings.Cut(spec, "/")
		if _, err := fmt.Sscanf(numbers, "%d/%d", &c.score, &c.estimate); err != nil {
			t.Fatal(spec, err)
		}
		f.snapshot.clusters = append(f.snapshot.clusters, Cluster{Name: name})
		result = append(result, c)
	}
	return result
}

func (f *fixture) names(list []candidate) string {
	result := make([]string, len(list))
	for i := range list {
		result[i] = f.name(&list[i])
	}
	return strings.Join(result, " ")
}

func atMost(n int) *int { return &n }

func TestSelectByCluster(t *testing.T) {
	tests := []struct {
		candidates string
		min, max   int
		replicas   int32
		want       string
	}{
		{"m1/60/40 m2/50/30 m3/40/60", 0, 2, 80, "m1 m3"},
		{"m4/60/50 m2/40/60 m3/30/80 m1/20/40", 0, 2, 100, "m4 m2"},
		{"m4/60/50 m2/40/60 m3/30/80 m1/20/40", 0, 2, 120, "m4 m3"},
		{"m4/60/50 m2/40/60 m3/30/80 m1/20/40", 0, 2, 200, "no room"},
		{"m4/60/50 m2/40/60 m3/30/80 m1/20/40", 5, 6, 0, "no fit"},
		{"m4/60/50 m2/40/60", 0, 9, 0, "m4 m2"},
		{"m4/60/50 m2/40/60", 0, 0, 0, ""},
	}
	for _, tc := range tests {
		f := newFixture(workload(tc.replicas, Placement{Strategy: DynamicWeight}))
		got, failure := f.selectByCluster(f.candidates(t, tc.candidates),
			SpreadConstraint{Min: tc.min, Max: atMost(tc.max)})
		if result := f.outcome(got, failure); result != tc.want {
			t.Errorf("%s, max %d, %d replicas: got %q, want %q", tc.candidates, tc.max, tc.replicas, result, tc.want)
		}
	}
}

func (f *fixture) outcome(selected []candidate, failure *Failure) string {
	switch {
	case failure == nil:
		return f.names(selected)
	case failure.Kind == NoRoom:
		return "no room"
	}
	return "no fit"
}

func TestSelectGroups(t *testing.T) {
	tests := []struct {
		groups            string
		least, most, want int
		result            string
	}{
		{"", 2, 3, 1, ""},
		{"R1:1/80", 2, 3, 1, ""},
		{"R1:1/80 R2:2/30", 2, 3, 4, ""},
		{"R1:1/80", 1, 3, 1, "R1"},
		{"R1:1/80 R3:1/80 R2:1/60 R5:2/60 R4:5/50 R6:3/50", 1, 3, 10, "R5 R4 R6"},
		{"R1:1/80 R2:4/40 R3:1/30 R4:3/30 R5:3/20 R6:5/10", 2, 6, 5, "R1 R2"},
		{"R1:1/60 R2:1/50 R3:1/40 R4:3/30 R5:3/20 R6:3/10", 1, 3, 6, "R1 R4 R5"},
		{"R1:1/60 R2:2/50 R3:3/40 R4:4/30", 1, 2, 5, "R1 R4"},
		{"R4:1/60 R3:3/50 R1:3/40 R2:4/30", 1, 2, 5, "R3 R1"},
	}
	for _, tc := range tests {
		var groups []group
		for _, spec := range strings.Fields(tc.groups) {
			var g group
			var value int
			g.name = spec[:2]
			if _, err := fmt.Sscanf(spec[3:], "%d/%d", &value, &g.score); err != nil {
				t.Fatal(err)
			}
			g.clusters = make([]candidate, value)
			groups = append(groups, g)
		}
		var got []string
		for _, g := range selectGroups(groups, tc.least, tc.most, tc.want) {
			got = append(got, g.name)
		}
		if strings.Join(got, " ") != tc.result {
			t.Errorf("%s %d,%d,%d: got %v, want %s", tc.groups, tc.least, tc.most, tc.want, got, tc.result)
		}
	}
}

func TestSelectFromRegions(t *testing.T) {
	const twoRegions = "R1/100: m1/100/0 m2/80/0; R2/80: m3/80/0 m4/80/0 m5/60/0"
	tests := []struct {
		groups                 string
		rMin, rMax, cMin, cMax int
		want                   string
	}{
		{twoRegions, 1, 1, 2, 2, "m1 m2"},
		{twoRegions, 1, 1, 3, 3, "m3 m4 m5"},
		{
			"R1/90: m1/90/0; R2/70: m2/70/0 m3/60/0 m4/30/0; R3/80: m5/80/0 m6/50/0; R4/50: m7/50/0 m8/40/0 m9/30/0 " +
				"m91/20/0", 2, 2, 4, 5, "m1 m2 m3 m4",
		},
		{
			"R1/70: m1/70/0; R2/40: m2/40/0 m3/40/0 m4/40/0; R3/60: m5/60/0 m6/50/0; R4/70: m7/70/0; R5/50: m8/50/0", 1,
			3, 6, 8, "m1 m5 m2 m6 m3 m4",
		},
		{twoRegions, 3, 3, 3, 3, "no fit"},
		{twoRegions, 1, 1, 4, 4, "no fit"},
		{"R1/100: m1/100/0 m2/80/0", 1, 1, 3, 4, "no fit"},
	}
	for i, tc := range tests {
		f := newFixture(Binding{})
		for _, spec := range strings.Split(tc.groups, "; ") {
			head, clusters, _ := strings.Cut(spec, ": ")
			g := group{name: head[:2], clusters: f.candidates(t, clusters)}
			if _, err := fmt.Sscanf(head[3:], "%d", &g.score); err != nil {
				t.Fatal(err)
			}
			f.groups = append(f.groups, g)
		}
		got, failure := f.selectFromGroups(SpreadConstraint{Min: tc.rMin, Max: atMost(tc.rMax)},
			&SpreadConstraint{Min: tc.cMin, Max: atMost(tc.cMax)})
		if result := f.outcome(got, failure); result != tc.want {
			t.Errorf("case %d: got %q, want %q", i, result, tc.want)
		}
	}
}

func TestManyRegionsEnd(t *testing.T) {
	var groups []group
	for i := range 40 {
		groups = append(groups, group{name: fmt.Sprintf("R%02d", i), score: int64(i), clusters: make([]candidate, 1)})
	}
	if got := selectGroups(groups, 1, 20, 20); len(got) != 20 {
		t.Errorf("got %d regions", len(got))
	}
}

func TestGroupScore(t *testing.T) {
	duplicated := Binding{Workload: true, Replicas: 50}
	divided := Binding{Workload: true, Replicas: 100, Placement: Placement{Strategy: DynamicWeight}}
	tests := []struct {
		binding    Binding
		candidates string
		minGroups  int
		want       int64
	}{
		{duplicated, "a/100/60 b/100/70 c/100/40 d/100/30 e/100/10", 1, 2100},
		{duplicated, "a/0/60 b/0/60 c/0/60 d/0/60", 1, 4000},
		{duplicated, "a/100/10", 1, 0},
		{divided, "a/100/10 b/100/10 c/100/10 d/100/10 e/100/5", 2, 45100},
		{divided, "a/0/40 b/0/30 c/0/10 d/0/10", 2, 50000},
		{divided, "a/100/40 b/100/40 c/100/40", 2, 50100},
		{divided, "a/0/100 b/0/100", 2, 50000},
		{divided, "a/100/100", 2, 50100},
	}
	for _, tc := range tests {
		f := newFixture(tc.binding)
		if got := f.groupScore(f.candidates(t, tc.candidates), tc.minGroups, 0); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.candidates, got, tc.want)
		}
	}
}

func TestSpreadOrderDoesNotDependOnInput(t *testing.T) {
	f := newFixture(Binding{})
	list := f.candidates(t, "m1/0/5 m2/100/1 m3/0/7 m4/100/9")
	for range 20 {
		shuffled := slices.Clone(list)
		slices.Reverse(shuffled)
		sortByPreference(shuffled)
		if got := f.names(shuffled); got != "m4 m2 m3 m1" {
			t.Fatal(got)
		}
	}
}
