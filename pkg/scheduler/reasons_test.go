package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSummary(t *testing.T) {
	tests := map[string]struct {
		seeds      int
		rejections []Rejection
		want       string
	}{
		"no seed at all": {want: "The garden has no seed."},
		"all fit":        {seeds: 2, want: "2/2 seeds."},
		"the most frequent reason first": {
			seeds: 5,
			rejections: []Rejection{
				{Seed: "a", Reason: Tainted}, {Seed: "e", Reason: Full}, {Seed: "b", Reason: Full},
				{Seed: "c", Reason: NotReady},
			},
			want: "1/5 seeds: 2 have no capacity (b, e), 1 is not ready (c), 1 has a taint that is not tolerated (a).",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Summary(test.seeds, test.rejections); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestDetailsKeepTheirLimit(t *testing.T) {
	var rejections []Rejection
	for i := range 200 {
		rejections = append(rejections,
			Rejection{Seed: fmt.Sprintf("seed-%03d", i), Message: "is full: 60 of 60 shoots"})
	}
	got := Details(rejections, 200)
	if len(got) > 200 || !strings.HasPrefix(got, "seed-000 is full: 60 of 60 shoots; seed-001") ||
		!strings.HasSuffix(got, "; and 195 more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := Details(rejections[:2],
		200); got != "seed-000 is full: 60 of 60 shoots; seed-001 is full: 60 of 60 shoots" {
		t.Errorf("got %s", got)
	}
}

func TestDetailsTellOfNearMissesFirst(t *testing.T) {
	for reason := range phrases {
		if !slices.Contains(nearMisses, reason) {
			t.Errorf("%s has no place among near misses", reason)
		}
	}
	got := Details([]Rejection{
		{Seed: "a", Reason: OtherRegion, Message: "is far"}, {Seed: "b", Reason: NotReady, Message: "is silent"},
		{Seed: "c", Reason: OtherRegion, Message: "is far"}, {Seed: "d", Reason: Full, Message: "is full"},
	}, 200)
	if want := "d is full; b is silent; a is far; c is far"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("ä", 20)
	if got := shorten(long, 21); len(got) > 21 || !utf8.ValidString(got) || !strings.HasSuffix(got, " …") {
		t.Errorf("got %q", got)
	}
	if got := shorten("short", 21); got != "short" {
		t.Errorf("got %q", got)
	}
}
