// Package storetest tells how every store behaves, as a test.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Large is more than what stores send in one piece, and no multiple of it.
const Large = 16<<20 + 12345

// Run tests a store. open returns one that is empty; many is how many objects are put to see that listings have all.
func Run(t *testing.T, many int, open func(t *testing.T) store.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, store.Store){
		"what was put is got":             putAndGet,
		"the last put counts":             replaced,
		"content that fails leaves none":  failing,
		"content of another size":         wrongSize,
		"the end of the context":          canceled,
		"listings by prefix":              listing,
		"deletion":                        deletion,
		"names":                           names,
		"a part of a store":               below,
		"puts at the same time":           concurrent,
		"listings of more than one page":  func(t *testing.T, s store.Store) { pages(t, s, many) },
		"what does not exist":             missing,
		"a reader that is closed early":   closedEarly,
		"content of which nothing is got": unreadable,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Bytes are n bytes that do not compress, the same each time.
func Bytes(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return content
}

// Put puts an object and ends the test if that fails.
func Put(t *testing.T, s store.Store, name string, content []byte) {
	t.Helper()
	if err := s.Put(t.Context(), name, bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
}

// Get returns an object's content.
func Get(t *testing.T, s store.Store, name string) []byte {
	t.Helper()
	reader, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return content
}

// Names are those of the objects that begin with a prefix, in the order of the listing.
func Names(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	objects, err := s.List(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, object := range objects {
		all = append(all, object.Name)
	}
	return all
}

func putAndGet(t *testing.T, s store.Store) {
	for _, n := range []int{0, 1, 4096, Large} {
		want := Bytes(n)
		for kind, size := range map[string]int64{"known": int64(n), "unknown": store.Unknown} {
			name := fmt.Sprintf("some/%s-%d", kind, n)
			// A reader of which only Read can be called, and which returns little at a time.
			reader := iotest.HalfReader(bytes.NewReader(want))
			if err := s.Put(t.Context(), name, reader, size); err != nil {
				t.Fatal(err)
			}
			if got := Get(t, s, name); sha256.Sum256(got) != sha256.Sum256(want) {
				t.Errorf("%s: %d bytes were put, %d others are got", name, n, len(got))
			}
			objects, err := s.List(t.Context(), name)
			if err != nil || len(objects) != 1 || objects[0].Size != int64(n) || objects[0].Modified.IsZero() {
				t.Errorf("%s: it is listed as %v, %v", name, objects, err)
			}
		}
	}
}

func replaced(t *testing.T, s store.Store) {
	Put(t, s, "a", []byte("first, and longer"))
	Put(t, s, "a", []byte("second"))
	if got := string(Get(t, s, "a")); got != "second" {
		t.Errorf("got %q", got)
	}
	if got := Names(t, s, ""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("listed %q", got)
	}
}

func failing(t *testing.T, s store.Store) {
	Put(t, s, "kept", []byte("before"))
	for name, cause := range map[string]error{"kept": errors.New("the disk is gone"), "new": io.ErrUnexpectedEOF} {
		for _, n := range []int{0, 10, Large} {
			for _, size := range []int64{int64(n), int64(n) + 10, store.Unknown} {
				content := io.MultiReader(bytes.NewReader(Bytes(n)), iotest.ErrReader(cause))
				if err := s.Put(t.Context(), name, content, size); !errors.Is(err, cause) {
					t.Errorf("%d bytes, then an error, with size %d: got %v, want %v", n, size, err, cause)
				}
			}
		}
	}
	if got := string(Get(t, s, "kept")); got != "before" {
		t.Errorf("a put that failed replaced an object by %d bytes", len(got))
	}
	if got := Names(t, s, ""); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("listed %q", got)
	}
}

func wrongSize(t *testing.T, s store.Store) {
	for _, n := range []int{0, 1, 100, Large} {
		for _, size := range []int64{int64(n) - 1, int64(n) + 1, -7} {
			if size == store.Unknown {
				continue
			}
			if err := s.Put(t.Context(), "a", bytes.NewReader(Bytes(n)), size); err == nil {
				t.Errorf("%d bytes are put as %d", n, size)
			}
		}
	}
	if got := Names(t, s, ""); len(got) > 0 {
		t.Errorf("listed %q", got)
	}
}

func canceled(t *testing.T, s store.Store) {
	Put(t, s, "a", []byte("content"))
	ctx, cancel := context.WithCancel(t.Context())
	// The context ends in the middle of the content.
	content := io.MultiReader(bytes.NewReader(Bytes(Large)), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, nil
	}), bytes.NewReader(Bytes(Large)))
	if err := s.Put(ctx, "new", content, store.Unknown); !errors.Is(err, context.Canceled) {
		t.Errorf("put: got %v", err)
	}
	if _, err := s.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: got %v", err)
	}
	if _, err := s.List(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("list: got %v", err)
	}
	if err := s.Delete(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: got %v", err)
	}
	if got := Names(t, s, ""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("listed %q", got)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func listing(t *testing.T, s store.Store) {
	all := []string{"a", "b-1", "b.d", "b/c", "b/c.d/e", "b0", "ba/c", "z/ü %+?&=#"}
	for _, name := range slices.Backward(all) {
		Put(t, s, name, []byte(name))
	}
	for prefix, want := range map[string][]string{
		"":       all,
		"b":      all[1:7],
		"b/":     {"b/c", "b/c.d/e"},
		"b/c":    {"b/c", "b/c.d/e"},
		"b/c.":   {"b/c.d/e"},
		"z/ü %+": {"z/ü %+?&=#"},
		"c":      nil,
	} {
		if got := Names(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("prefix %q: listed %q, want %q", prefix, got, want)
		}
	}
	for _, name := range all {
		if got := string(Get(t, s, name)); got != name {
			t.Errorf("%q holds %q", name, got)
		}
	}
}

func deletion(t *testing.T, s store.Store) {
	Put(t, s, "a/b", []byte("content"))
	Put(t, s, "a/b", []byte("again"))
	Put(t, s, "a/c", []byte("content"))
	for range 2 {
		if err := s.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), "a/b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if got := Names(t, s, ""); !slices.Equal(got, []string{"a/c"}) {
		t.Errorf("listed %q", got)
	}
}

func names(t *testing.T, s store.Store) {
	for _, name := range []string{
		"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\nb", "a\x00b", `a\b`, "\xff", "a.part", "a.part/b",
		strings.Repeat("a", 513),
	} {
		if err := s.Put(t.Context(), name, strings.NewReader("a"), 1); !errors.Is(err, store.ErrName) {
			t.Errorf("put %q: got %v", name, err)
		}
		if _, err := s.Get(t.Context(), name); !errors.Is(err, store.ErrName) {
			t.Errorf("get %q: got %v", name, err)
		}
		if err := s.Delete(t.Context(), name); !errors.Is(err, store.ErrName) {
			t.Errorf("delete %q: got %v", name, err)
		}
	}
	if got := Names(t, s, ""); len(got) > 0 {
		t.Errorf("listed %q", got)
	}
}

func below(t *testing.T, s store.Store) {
	part := store.Below(s, "/shoots/one/")
	Put(t, part, "a", []byte("content"))
	Put(t, s, "shoots/one-more", []byte("another's"))
	if got := Names(t, s, ""); !slices.Equal(got, []string{"shoots/one-more", "shoots/one/a"}) {
		t.Errorf("listed %q", got)
	}
	if got := Names(t, part, ""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("listed %q in the part", got)
	}
	if got := string(Get(t, part, "a")); got != "content" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"", "../one-more"} {
		if err := part.Delete(t.Context(), name); !errors.Is(err, store.ErrName) {
			t.Errorf("delete %q: got %v", name, err)
		}
	}
	if err := part.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if got := Names(t, store.Below(s, "/"), ""); !slices.Equal(got, []string{"shoots/one-more"}) {
		t.Errorf("listed %q", got)
	}
}

func concurrent(t *testing.T, s store.Store) {
	contents := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 50_000)}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			Put(t, s, fmt.Sprintf("own/%d", i), contents[i%2])
			Put(t, s, "shared/one", contents[i%2])
		})
	}
	group.Wait()
	for i := range 8 {
		if got := Get(t, s, fmt.Sprintf("own/%d", i)); !bytes.Equal(got, contents[i%2]) {
			t.Errorf("%d: got %d bytes", i, len(got))
		}
	}
	if got := Get(t, s, "shared/one"); !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
		t.Errorf("got %d bytes, which nobody put", len(got))
	}
}

func pages(t *testing.T, s store.Store, many int) {
	var want []string
	for i := range many {
		want = append(want, fmt.Sprintf("delta/%06d", i))
		Put(t, s, want[i], []byte("x"))
	}
	if got := Names(t, s, "delta/"); !slices.Equal(got, want) {
		t.Errorf("%d objects were put, %d are listed", many, len(got))
	}
}

func missing(t *testing.T, s store.Store) {
	if got := Names(t, s, "a"); len(got) > 0 {
		t.Errorf("listed %q", got)
	}
	Put(t, s, "a/b", []byte("content"))
	for _, name := range []string{"a", "b", "a/b/c", "a/c"} {
		if _, err := s.Get(t.Context(), name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func closedEarly(t *testing.T, s store.Store) {
	Put(t, s, "a", Bytes(Large))
	reader, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, reader, 10); err != nil {
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

func unreadable(t *testing.T, s store.Store) {
	stuck := readerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })
	if err := s.Put(t.Context(), "a", stuck, 10); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if got := Names(t, s, ""); len(got) > 0 {
		t.Errorf("listed %q", got)
	}
}
