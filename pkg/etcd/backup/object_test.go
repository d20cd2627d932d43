package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// contents have sizes around those of chunks.
func contents() [][]byte {
	all := [][]byte{nil, []byte("x"), bytes.Repeat([]byte("compressible "), 1<<20)}
	for _, n := range []int{chunkSize - 40, chunkSize, chunkSize + 1, 3 * chunkSize, 5*window + 7} {
		content := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(content)
		all = append(all, content)
	}
	return all
}

func encode(t *testing.T, keys *Keys, content []byte) ([]byte, Digest) {
	t.Helper()
	var encoded bytes.Buffer
	w, err := NewWriter(&encoded, Header{Name: fullName}, keys)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return encoded.Bytes(), w.Digest()
}

func decode(from io.Reader, keys *Keys) ([]byte, error) {
	r, err := NewReader(from, keys)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for kind, keys := range map[string]*Keys{"plain": nil, "encrypted": testKeys()} {
		for _, want := range contents() {
			encoded, digest := encode(t, keys, want)
			r, err := NewReader(iotest.HalfReader(bytes.NewReader(encoded)), keys)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes were written, %d are read, %v", kind, len(want), len(got), err)
			}
			if r.Header.Name != fullName || r.Digest() != digest {
				t.Errorf("%s: read are %+v with digest %s", kind, r.Header, r.Digest())
			}
			if keys != nil && len(want) > 100 && bytes.Contains(encoded, want[:100]) {
				t.Error("the content can be read in what is encrypted")
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCompressibleContentIsStoredSmall(t *testing.T) {
	content := bytes.Repeat([]byte("compressible "), 1<<16)
	if encoded, _ := encode(t, testKeys(), content); len(encoded) > len(content)/100 {
		t.Errorf("%d bytes are stored as %d", len(content), len(encoded))
	}
}

// Any bit that flips, and any end that comes early, is found.
func TestDamageIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for kind, keys := range map[string]*Keys{"plain": nil, "encrypted": testKeys()} {
		encoded, _ := encode(t, keys, contents()[6])
		positions := []int{0, len(magic), len(magic) + 4, len(encoded) - 1, len(encoded) - 32, len(encoded) - 33}
		for range 200 {
			positions = append(positions, random.IntN(len(encoded)))
		}
		for _, position := range positions {
			for what, damaged := range map[string][]byte{
				"flipped": flipped(encoded, position), "cut off": encoded[:position],
			} {
				// A flipped bit in the header may give it another key.
				_, err := decode(bytes.NewReader(damaged), keys)
				if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrKey) {
					t.Errorf("%s, %s at %d: got %v", kind, what, position, err)
				}
			}
		}
		if _, err := decode(strings.NewReader(string(encoded)+"more"), keys); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, with more at its end: got %v", kind, err)
		}
	}
}

func flipped(content []byte, position int) []byte {
	damaged := bytes.Clone(content)
	damaged[position] ^= 4
	return damaged
}

// A store that cannot be read is not damage: nobody may give up a backup for it.
func TestAStoreThatBreaksOffIsNoDamage(t *testing.T) {
	for kind, keys := range map[string]*Keys{"plain": nil, "encrypted": testKeys()} {
		for _, cause := range []error{errTest, io.ErrUnexpectedEOF} {
			encoded, _ := encode(t, keys, contents()[6])
			for _, n := range []int{0, 10, 100, len(encoded) / 2, len(encoded) - 1} {
				from := io.MultiReader(bytes.NewReader(encoded[:n]), broken{cause})
				if _, err := decode(from, keys); !errors.Is(err, cause) || errors.Is(err, ErrDamaged) {
					t.Errorf("%s: the store breaks off after %d bytes: got %v, want %v", kind, n, err, cause)
				}
			}
		}
	}
}

func TestKeysAreRotated(t *testing.T) {
	old := testKeys()
	encoded, _ := encode(t, old, []byte("content"))
	rotated := testKeys()
	rotated.Current = "two"
	if got, err := decode(bytes.NewReader(encoded), rotated); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	another := testKeys()
	another.ByID["one"] = bytes.Repeat([]byte{9}, keySize)
	if _, err := decode(bytes.NewReader(encoded), another); !errors.Is(err, ErrDamaged) {
		t.Errorf("another key of the same ID: got %v", err)
	}
}

func TestKeysThatDoNotFit(t *testing.T) {
	encrypted, _ := encode(t, testKeys(), []byte("content"))
	plain, _ := encode(t, nil, []byte("content"))
	without := testKeys()
	delete(without.ByID, "one")
	short := testKeys()
	short.ByID["one"] = []byte("short")
	for name, test := range map[string]struct {
		encoded []byte
		keys    *Keys
	}{
		"no keys":           {encrypted, nil},
		"the key is gone":   {encrypted, without},
		"the key is short":  {encrypted, short},
		"not encrypted":     {plain, testKeys()},
		"written with none": {nil, without},
	} {
		_, err := decode(bytes.NewReader(test.encoded), test.keys)
		if test.encoded == nil {
			_, err = NewWriter(io.Discard, Header{Name: fullName}, test.keys)
		}
		if !errors.Is(err, ErrKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	accepting := testKeys()
	accepting.AcceptPlain = true
	if got, err := decode(bytes.NewReader(plain), accepting); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTheSameContentIsNeverEncryptedAlike(t *testing.T) {
	one, _ := encode(t, testKeys(), contents()[5])
	two, _ := encode(t, testKeys(), contents()[5])
	if bytes.Equal(one[len(one)-1000:len(one)-500], two[len(two)-1000:len(two)-500]) {
		t.Error("two objects are encrypted with the same key and nonces")
	}
}

func TestHeadersThatCannotBe(t *testing.T) {
	for name, header := range map[string]Header{
		"no name":                  {},
		"a delta without a parent": {Name: Name{Kind: Delta, First: 1, Last: 2, Taken: noon, ID: ID{1}}},
		"a parent without digest":  {Name: deltaName},
		"the digest of no parent":  {Name: fullName, ParentDigest: Digest{1}},
	} {
		if _, err := NewWriter(io.Discard, header, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWhatIsSavedIsReadBack(t *testing.T) {
	for name, test := range map[string]struct {
		damage func([]byte) []byte
		write  error
		want   error
	}{
		"all is well": {},
		"the store changes it": {
			damage: func(text []byte) []byte { return flipped(text, len(text)/2) }, want: ErrDamaged,
		},
		"the store cuts it off": {damage: func(text []byte) []byte { return text[:len(text)-1] }, want: ErrDamaged},
		"the content fails":     {write: errTest, want: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMemory()
			s.damage = test.damage
			digest, err := Save(t.Context(), s, Header{Name: fullName}, testKeys(), func(w io.Writer) error {
				_, err := w.Write(contents()[6])
				return errors.Join(err, test.write)
			})
			if !errors.Is(err, test.want) || (err == nil) == (digest == Digest{}) {
				t.Errorf("got %s, %v", digest, err)
			}
			if test.write != nil && len(s.objects) > 0 {
				t.Error("an object appears although its content failed")
			}
		})
	}
}

func TestAStoreThatRefusesEndsTheWriting(t *testing.T) {
	d, err := store.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Save(t.Context(), d, Header{Name: fullName}, nil, func(w io.Writer) error {
		_, err := w.Write(contents()[7])
		if err == nil {
			t.Error("the writing does not hear of it")
		}
		return err
	})
	if err == nil {
		t.Error("a closed store takes objects")
	}
}

func TestAnObjectIsWhatItsNameSays(t *testing.T) {
	s := newMemory()
	if _, err := Save(t.Context(), s, Header{Name: fullName}, nil, writeEvents(1, 2)); err != nil {
		t.Fatal(err)
	}
	other := fullName
	other.ID = ID{9}
	s.objects[other.String()] = s.objects[fullName.String()]
	if _, err := Open(t.Context(), s, other, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), s, deltaName, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, keys := range []*Keys{nil, testKeys()} {
		var encoded bytes.Buffer
		w, err := NewWriter(&encoded, Header{Name: deltaName, ParentDigest: Digest{1}}, keys)
		if err != nil {
			f.Fatal(err)
		}
		_, err = fmt.Fprint(w, "content")
		if err := errors.Join(err, w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(encoded.Bytes())
	}
	keys := testKeys()
	keys.AcceptPlain = true
	f.Fuzz(func(t *testing.T, encoded []byte) {
		_, err := decode(bytes.NewReader(encoded), keys)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrKey) {
			t.Errorf("got %v", err)
		}
	})
}
