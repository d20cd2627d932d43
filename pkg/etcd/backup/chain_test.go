package backup

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

func id(n int) ID {
	var id ID
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

func full(n int, last int64, parent int) Object {
	taken := noon.Add(time.Duration(n) * time.Minute)
	return Object{Name{Kind: Full, Last: last, Taken: taken, ID: id(n), Parent: id(parent)}, 1000}
}

func delta(n int, first, last int64, parent int) Object {
	taken := noon.Add(time.Duration(n) * time.Minute)
	return Object{Name{Kind: Delta, First: first, Last: last, Taken: taken, ID: id(n), Parent: id(parent)}, 10}
}

// ids are those of a chain's objects.
func ids(c Chain) []int {
	var all []int
	for _, object := range slices.Concat([]Object{c.Full}, c.Deltas) {
		all = append(all, int(binary.BigEndian.Uint64(object.ID[:])))
	}
	return all
}

func TestChains(t *testing.T) {
	for name, test := range map[string]struct {
		objects []Object
		want    [][]int
	}{
		"nothing":     {nil, nil},
		"only deltas": {[]Object{delta(2, 11, 20, 1)}, nil},
		"one full":    {[]Object{full(1, 10, 0)}, [][]int{{1}}},
		"a full and its log": {
			[]Object{delta(3, 21, 30, 2), full(1, 10, 0), delta(2, 11, 20, 1)}, [][]int{{1, 2, 3}},
		},
		"a full beside the log: both lead to its end": {
			[]Object{full(1, 10, 0), delta(2, 11, 20, 1), full(3, 20, 2), delta(4, 21, 30, 2)},
			[][]int{{3, 4}, {1, 2, 4}},
		},
		"a full that begins a log of its own": {
			[]Object{full(1, 10, 0), delta(2, 11, 20, 1), full(3, 20, 0), delta(4, 21, 30, 3)},
			[][]int{{3, 4}, {1, 2}},
		},
		"a delta is missing": {
			[]Object{full(1, 10, 0), delta(2, 11, 20, 1), delta(4, 31, 40, 3)}, [][]int{{1, 2}},
		},
		"a delta with a gap": {
			[]Object{full(1, 10, 0), delta(2, 12, 20, 1)}, [][]int{{1}},
		},
		"a newer full is of use even though an older one leads further": {
			[]Object{full(1, 10, 0), delta(2, 11, 20, 1), full(3, 15, 0)}, [][]int{{1, 2}, {3}},
		},
		"two writers: the longer branch counts": {
			[]Object{full(1, 10, 0), delta(2, 11, 20, 1), delta(3, 11, 15, 1), delta(4, 16, 30, 3)},
			[][]int{{1, 3, 4}},
		},
		"two writers, of the same length": {
			[]Object{full(1, 10, 0), delta(2, 11, 20, 1), delta(3, 11, 20, 1)}, [][]int{{1, 3}},
		},
	} {
		var got [][]int
		for _, chain := range Chains(test.objects) {
			got = append(got, ids(chain))
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestCompactionIsDue(t *testing.T) {
	chain := Chain{Full: full(1, 10, 0), Deltas: []Object{delta(2, 11, 20, 1), delta(3, 21, 30, 2)}}
	for name, test := range map[string]struct {
		limits Compaction
		want   bool
	}{
		"no limits":          {Compaction{}, false},
		"within the limits":  {Compaction{Deltas: 2, Revisions: 20, Bytes: 20}, false},
		"too many deltas":    {Compaction{Deltas: 1}, true},
		"too many revisions": {Compaction{Revisions: 19}, true},
		"too many bytes":     {Compaction{Bytes: 19}, true},
	} {
		if got := test.limits.Due(chain); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// randomObjects are those of some writers that follow each other, or do not, over a while, of which some are lost.
func randomObjects(random *rand.Rand) []Object {
	var all []Object
	var log []Object
	for n := 1; n < 2+random.IntN(40); n++ {
		var next Object
		before := Object{Name: Name{Last: 1}}
		if len(log) > 0 {
			before = log[max(0, len(log)-1-random.IntN(2))]
		}
		parent := int(binary.BigEndian.Uint64(before.ID[:]))
		switch {
		case len(log) == 0 || random.IntN(8) == 0:
			next = full(n, before.Last+random.Int64N(3), 0)
			log = append(log, next)
		case random.IntN(4) == 0:
			next = full(n, before.Last, parent)
		default:
			next = delta(n, before.Last+1, before.Last+1+random.Int64N(10), parent)
			log = append(log, next)
		}
		next.Taken = noon.Add(time.Duration(n*30-random.IntN(90)) * time.Minute)
		if random.IntN(10) > 0 {
			all = append(all, next)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func TestChainsHaveNoGapsWhateverIsListed(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		objects := randomObjects(random)
		chains := Chains(objects)
		fulls := 0
		for _, object := range objects {
			if object.Kind == Full {
				fulls++
			}
		}
		if len(chains) != fulls {
			t.Fatalf("%d chains of %d full snapshots in %v", len(chains), fulls, objects)
		}
		for i, chain := range chains {
			if i > 0 && chain.Last() > chains[0].Last() {
				t.Fatalf("chain %v comes after %v", ids(chain), ids(chains[0]))
			}
			before := chain.Full
			for _, next := range chain.Deltas {
				if !next.continues(before) || !slices.Contains(objects, next) {
					t.Fatalf("%v does not continue %v", next, before)
				}
				before = next
			}
			if slices.ContainsFunc(objects, func(o Object) bool { return o.continues(before) }) {
				t.Fatalf("chain %v could be longer in %v", ids(chain), objects)
			}
		}
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		if !reflect.DeepEqual(Chains(objects), chains) {
			t.Fatalf("the chains depend on the order of the listing %v", objects)
		}
	}
}

// log saves: full 10, delta 11-20, delta 21-30, full 30 beside the log, delta 31-40.
func saveLog(t *testing.T, keys *Keys) *memory {
	t.Helper()
	s := newMemory()
	position := saveFull(t, s, keys, 10, Position{})
	position = saveDelta(t, s, keys, position, 20)
	position = saveDelta(t, s, keys, position, 30)
	position = saveFull(t, s, keys, 30, position)
	saveDelta(t, s, keys, position, 40)
	return s
}

func TestChainsAreReadFromEachFullSnapshot(t *testing.T) {
	for kind, keys := range map[string]*Keys{"plain": nil, "encrypted": testKeys()} {
		s := saveLog(t, keys)
		chains := Chains(s.list(t))
		if len(chains) != 2 {
			t.Fatalf("%d chains", len(chains))
		}
		for i, deltas := range []int{1, 3} {
			if chains[i].Last() != 40 || len(chains[i].Deltas) != deltas {
				t.Errorf("%s: chain %d restores %d by %d deltas", kind, i, chains[i].Last(), len(chains[i].Deltas))
			}
			if err := chains[i].Verify(t.Context(), s, keys); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestALogIsContinuedWhereItEnds(t *testing.T) {
	s := saveLog(t, nil)
	for _, last := range []int64{41, 45} {
		end, err := Chains(s.list(t))[0].End(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		saveDelta(t, s, nil, end, last)
	}
	// A full snapshot beside the log, and nothing after it: what follows continues the log all the same.
	end, err := Chains(s.list(t))[0].End(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	saveFull(t, s, nil, 45, end)
	if end, err = Chains(s.list(t))[0].End(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	saveDelta(t, s, nil, end, 50)
	chains := Chains(s.list(t))
	if len(chains) != 3 {
		t.Fatalf("%d chains", len(chains))
	}
	for _, chain := range chains {
		if err := chain.Verify(t.Context(), s, nil); err != nil || chain.Last() != 50 {
			t.Errorf("a chain restores %d: %v", chain.Last(), err)
		}
	}
}

func TestDamageOfChainsIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(s *memory, chain Chain)
		want   error
	}{
		"a delta is missing": {func(s *memory, chain Chain) {
			delete(s.objects, chain.Deltas[1].String())
		}, store.ErrNotFound},
		"two deltas are exchanged": {func(s *memory, chain Chain) {
			one, two := chain.Deltas[0].String(), chain.Deltas[1].String()
			s.objects[one], s.objects[two] = s.objects[two], s.objects[one]
		}, ErrDamaged},
		"a delta is that of another log": {func(s *memory, chain Chain) {
			header := Header{Name: chain.Deltas[1].Name, ParentDigest: Digest{1}}
			if _, err := Save(t.Context(), s, header, nil, writeEvents(21, 30)); err != nil {
				t.Fatal(err)
			}
		}, ErrBroken},
		"the full snapshot is another": {func(s *memory, chain Chain) {
			if _, err := Save(t.Context(), s, Header{Name: chain.Full.Name}, nil, writeEvents(1, 10)); err != nil {
				t.Fatal(err)
			}
		}, ErrBroken},
		"a bit flips": {func(s *memory, chain Chain) {
			text := s.objects[chain.Deltas[2].String()]
			text[len(text)-40] ^= 1
		}, ErrDamaged},
		"a delta is cut off": {func(s *memory, chain Chain) {
			text := s.objects[chain.Deltas[2].String()]
			s.objects[chain.Deltas[2].String()] = text[:len(text)-1]
		}, ErrDamaged},
		"a delta lacks a revision": {func(s *memory, chain Chain) {
			header := Header{Name: chain.Deltas[2].Name}
			reader, err := Open(t.Context(), s, header.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			header.ParentDigest = reader.Header.ParentDigest
			if _, err := Save(t.Context(), s, header, nil, writeEvents(31, 39)); err != nil {
				t.Fatal(err)
			}
		}, ErrDamaged},
		"the store cannot be read": {func(s *memory, chain Chain) { s.broken = errTest }, errTest},
	} {
		t.Run(name, func(t *testing.T) {
			s := saveLog(t, nil)
			chain := Chains(s.list(t))[1]
			test.damage(s, chain)
			err := chain.Verify(t.Context(), s, nil)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if err == nil || !strings.Contains(err.Error(), "v1/") {
				t.Errorf("%v does not tell which object it is", err)
			}
			var failed *ObjectError
			if !errors.As(err, &failed) || failed.Lost() != (test.want != errTest) {
				t.Errorf("%v does not tell whether the object is lost", err)
			}
		})
	}
}
