package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
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
	got := Details([]Rejection{
		{Seed: "a", Reason: OtherRegion, Message: "is far"}, {Seed: "b", Reason: NotReady, Message: "is silent"},
		{Seed: "c", Reason: OtherRegion, Message: "is far"}, {Seed: "d", Reason: Full, Message: "is full"},
	}, 200)
	if want := "d is full; b is silent; a is far; c is far"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What keeps a seed from taking a shoot is asked in the order of the reasons: one after the other comes to light as
// what was found before is mended.
func TestSeedsAreAskedInOrder(t *testing.T) {
	shoot := newShoot(tolerating(gardencorev1beta1.FailureToleranceTypeZone), func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedSelector = selecting("a", "b")
		s.Spec.SeedSelector.ProviderTypes = []string{"local"}
		s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
			{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu"}},
		}
	})
	seed := readySeed("a", ofProvider("other"), inRegion("there"), withTaint("a", nil), room("0"),
		withBackup(&gardencorev1beta1.Condition{Status: gardencorev1beta1.ConditionFalse}),
		func(s *gardencorev1beta1.Seed) {
			s.DeletionTimestamp = &metav1.Time{}
			s.Spec.Settings = &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{}}
			s.Status.LastOperation = nil
		})
	mends := map[Reason]func(*gardencorev1beta1.Seed){
		Deleted:       func(s *gardencorev1beta1.Seed) { s.DeletionTimestamp = nil },
		Invisible:     func(s *gardencorev1beta1.Seed) { s.Spec.Settings = nil },
		OtherProvider: ofProvider("local"), OtherRegion: inRegion("here"), NotSelected: labelled("a", "b"),
		Tainted:      func(s *gardencorev1beta1.Seed) { s.Spec.Taints = nil },
		MissingZones: withZones("1", "2", "3"),
		NoAccessRestriction: func(s *gardencorev1beta1.Seed) {
			s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestriction{{Name: "eu"}}
		},
		NotReady:       func(s *gardencorev1beta1.Seed) { s.Status.LastOperation = &gardencorev1beta1.LastOperation{} },
		BackupNotReady: func(s *gardencorev1beta1.Seed) { s.Spec.Backup = nil },
		Full:           room("1"),
	}
	for _, told := range inOrder {
		mend, isAsked := mends[told.reason]
		if !isAsked { // Farther is found by comparing those that fit
			continue
		}
		_, rejections := Schedule(Snapshot{Seeds: seeds(seed)}, shoot)
		if len(rejections) != 1 || rejections[0].Reason != told.reason {
			t.Fatalf("rejected with %v, want %s", rejections, told.reason)
		}
		mend(seed)
	}
	if chosen, rejections := Schedule(Snapshot{Seeds: seeds(seed)}, shoot); chosen != "a" {
		t.Errorf("it is still rejected: %v", rejections)
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
