package backup

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func obsoleteIDs(objects []Object) []int {
	var all []int
	for _, object := range objects {
		all = append(all, int(binary.BigEndian.Uint64(object.ID[:])))
	}
	return all
}

func TestRetention(t *testing.T) {
	// A log with a full snapshot each minute, from minute 1 on, that has the number 10, 20 and so on.
	var log []Object
	parent := 0
	for n := 1; n <= 6; n++ {
		f := full(n*10, int64(n*100), parent)
		log = append(log, f, delta(n*10+1, int64(n*100+1), int64(n*100+100), max(parent, 10)))
		parent = n*10 + 1
	}
	now := noon.Add(65 * time.Minute)
	lost := delta(5, 1, 9, 99)
	for name, test := range map[string]struct {
		retention Retention
		verified  []ID
		add       []Object
		want      []int
	}{
		"nothing is asked for: the last chain stays": {
			Retention{}, nil, nil, []int{51, 41, 31, 21, 11, 50, 40, 30, 20, 10},
		},
		"by count": {Retention{Fulls: 4}, nil, nil, []int{51, 41, 31, 21, 11, 20, 10}},
		"by count, with all that follows the last two": {
			Retention{Fulls: 4, DeltasOf: 2}, nil, nil, []int{41, 31, 21, 11, 20, 10},
		},
		"by age": {Retention{Age: 25 * time.Minute}, nil, nil, []int{51, 41, 31, 21, 11, 30, 20, 10}},
		"thinned out": {
			Retention{Spaced: []Spacing{{30 * time.Minute, 50 * time.Minute}}}, nil, nil,
			[]int{51, 41, 31, 21, 11, 40, 30, 10},
		},
		"one that is known to restore, with all that follows": {
			Retention{Fulls: 1}, []ID{id(40), id(20)}, nil, []int{31, 21, 11, 50, 30, 20, 10},
		},
		"deltas of no chain go":         {Retention{Fulls: 9, DeltasOf: 9}, nil, []Object{lost}, []int{5}},
		"deltas of no chain may wait":   {Retention{Fulls: 9, DeltasOf: 9, Grace: time.Hour}, nil, []Object{lost}, nil},
		"all is kept":                   {Retention{Fulls: 6, DeltasOf: 6}, nil, nil, nil},
		"known to restore, but is gone": {Retention{Fulls: 6, DeltasOf: 6}, []ID{id(77)}, nil, nil},
	} {
		got := obsoleteIDs(test.retention.Obsolete(slices.Concat(log, test.add), test.verified, now))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if got := (Retention{}).Obsolete([]Object{lost}, nil, now); len(got) > 0 {
		t.Errorf("without a full snapshot, %v is deleted", got)
	}
}

func randomRetention(random *rand.Rand) Retention {
	return Retention{
		Fulls: random.IntN(4), Age: time.Duration(random.IntN(600)) * time.Minute, DeltasOf: random.IntN(3),
		Grace:  time.Duration(random.IntN(120)) * time.Minute,
		Spaced: []Spacing{{time.Hour, 24 * time.Hour}, {4 * time.Hour, 100 * time.Hour}}[:random.IntN(3)],
	}
}

func without(objects, removed []Object) []Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return slices.Contains(removed, o) })
}

func TestRetentionKeepsTheLastChainWhateverIsListed(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		objects, retention := randomObjects(random), randomRetention(random)
		chains := Chains(objects)
		if len(chains) == 0 {
			continue
		}
		verified := chains[random.IntN(len(chains))]
		now := noon.Add(time.Duration(random.IntN(1500)) * time.Minute)
		obsolete := retention.Obsolete(objects, []ID{verified.Full.ID}, now)
		// The deletion may end anywhere, as some are protected or the process dies.
		left := without(objects, obsolete[:random.IntN(len(obsolete)+1)])
		if got := Chains(left); !reflect.DeepEqual(got[0], chains[0]) {
			t.Fatalf("%+v leaves %v of %v", retention, ids(got[0]), ids(chains[0]))
		}
		left = without(objects, obsolete)
		kept := Chains(left)
		if len(kept) < min(retention.Fulls, len(chains)) {
			t.Fatalf("%+v leaves %d chains of %d", retention, len(kept), len(chains))
		}
		if !slices.ContainsFunc(kept, func(c Chain) bool { return reflect.DeepEqual(c, verified) }) {
			t.Fatalf("%+v loses %v, which is known to restore", retention, ids(verified))
		}
		if again := retention.Obsolete(left, []ID{verified.Full.ID}, now); len(again) > 0 {
			t.Fatalf("%+v deletes %v only when asked again", retention, obsoleteIDs(again))
		}
	}
}

func TestPruningGoesOnAfterWhatIsProtected(t *testing.T) {
	s := saveLog(t, nil)
	objects := s.list(t)
	obsolete := Retention{}.Obsolete(objects, nil, noon.Add(time.Hour))
	if len(obsolete) != 3 {
		t.Fatalf("obsolete are %v", obsolete)
	}
	s.protected[obsolete[0].String()] = true
	if got, err := Prune(t.Context(), s, obsolete); err != nil || got != (Pruned{Deleted: 2, Protected: 1}) {
		t.Errorf("got %+v, %v", got, err)
	}
	chains := Chains(s.list(t))
	if len(chains) != 1 || chains[0].Verify(t.Context(), s, nil) != nil {
		t.Errorf("left are %v", chains)
	}
	// When the protection ends, the next round deletes it.
	s.protected = nil
	obsolete = Retention{}.Obsolete(s.list(t), nil, noon.Add(time.Hour))
	if got, err := Prune(t.Context(), s, obsolete); err != nil || got.Deleted != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// refusing is a store that deletes nothing.
type refusing struct{ *memory }

func (refusing) Delete(ctx context.Context, _ string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errTest
}

func TestPruningTellsWhatItCouldNotDelete(t *testing.T) {
	s := refusing{saveLog(t, nil)}
	got, err := Prune(t.Context(), s, s.list(t))
	if !errors.Is(err, errTest) || got != (Pruned{}) {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prune(ctx, s, s.list(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
