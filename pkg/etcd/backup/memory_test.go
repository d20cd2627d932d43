package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// memory is a store whose objects a test can damage.
type memory struct {
	mu        sync.Mutex
	objects   map[string][]byte
	protected map[string]bool
	// damage changes what is put.
	damage func([]byte) []byte
	// broken is what reading ends with, in the middle of an object.
	broken error
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}, protected: map[string]bool{}} }

func (m *memory) Put(_ context.Context, name string, content io.Reader, _ int64) error {
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.damage != nil {
		text = m.damage(text)
	}
	m.objects[name] = text
	return nil
}

func (m *memory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, found := m.objects[name]
	if !found {
		return nil, fmt.Errorf("getting %s: %w", name, store.ErrNotFound)
	}
	if m.broken != nil {
		return io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), broken{m.broken})), nil
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func (m *memory) List(_ context.Context, prefix string) ([]store.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Object
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		if strings.HasPrefix(name, prefix) {
			all = append(all, store.Object{Name: name, Size: int64(len(m.objects[name]))})
		}
	}
	return all, nil
}

func (m *memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.protected[name] {
		return fmt.Errorf("deleting %s: %w", name, store.ErrImmutable)
	}
	delete(m.objects, name)
	return nil
}

func (m *memory) list(t *testing.T) []Object {
	t.Helper()
	listed, err := m.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return Objects(listed)
}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func testKeys() *Keys {
	return &Keys{Current: "one", ByID: map[string][]byte{
		"one": bytes.Repeat([]byte{1}, keySize), "two": bytes.Repeat([]byte{2}, keySize),
	}}
}

// event is the only one of its revision.
func event(revision int64) *mvccpb.Event {
	return &mvccpb.Event{Kv: &mvccpb.KeyValue{
		Key: fmt.Appendf(nil, "/registry/configmaps/%d", revision%10), Value: bytes.Repeat([]byte("value "), 20),
		CreateRevision: revision, ModRevision: revision, Version: 1,
	}}
}

func writeEvents(first, last int64) func(io.Writer) error {
	return func(w io.Writer) error {
		events := NewEventWriter(w, first)
		for revision := first; revision <= last; revision++ {
			if err := events.Write(event(revision)); err != nil {
				return err
			}
		}
		return nil
	}
}

// saveFull saves a full snapshot of what stands for a database, beside the end of a log.
func saveFull(t *testing.T, s store.Store, keys *Keys, revision int64, log Position) Position {
	t.Helper()
	header := Header{
		Name:         Name{Kind: Full, Last: revision, Taken: noon, ID: NewID(), Parent: log.ID},
		ParentDigest: log.Digest,
	}
	digest, err := Save(t.Context(), s, header, keys, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("database ", 100_000))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if log.ID != (ID{}) {
		return log
	}
	return Position{ID: header.ID, Digest: digest, Revision: revision}
}

func saveDelta(t *testing.T, s store.Store, keys *Keys, after Position, last int64) Position {
	t.Helper()
	header := Header{
		Name: Name{
			Kind: Delta, First: after.Revision + 1, Last: last, Taken: noon, ID: NewID(), Parent: after.ID,
		},
		ParentDigest: after.Digest,
	}
	digest, err := Save(t.Context(), s, header, keys, writeEvents(after.Revision+1, last))
	if err != nil {
		t.Fatal(err)
	}
	return Position{ID: header.ID, Digest: digest, Revision: last}
}

var errTest = errors.New("the network is gone")
