package backup

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

func readEvents(from io.Reader, first, last int64) ([]*mvccpb.Event, error) {
	events := NewEventReader(from, first, last)
	var all []*mvccpb.Event
	for {
		event, err := events.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, event)
	}
}

func TestEventsKeepTheirOrder(t *testing.T) {
	var content bytes.Buffer
	events := NewEventWriter(&content, 5)
	deleted := &mvccpb.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte("a"), ModRevision: 6}}
	previous := event(6)
	previous.PrevKv = event(5).Kv
	want := []*mvccpb.Event{event(5), deleted, previous, event(7)}
	for _, e := range want {
		if err := events.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readEvents(&content, 5, 7)
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %d events, %v", len(got), err)
	}
	for i := range want {
		if got[i].Type != want[i].Type || got[i].Kv.String() != want[i].Kv.String() {
			t.Errorf("event %d is %v, want %v", i, got[i], want[i])
		}
		if got[i].PrevKv != nil {
			t.Errorf("event %d has what was before", i)
		}
	}
}

func TestEventsThatDoNotFollow(t *testing.T) {
	for name, revisions := range map[string][]int64{
		"one before the first":  {4},
		"the first is left out": {6},
		"one is left out":       {5, 7},
		"backwards":             {5, 6, 5},
	} {
		events := NewEventWriter(io.Discard, 5)
		var err error
		for _, revision := range revisions {
			err = errors.Join(err, events.Write(event(revision)))
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := NewEventWriter(io.Discard, 5).Write(&mvccpb.Event{}); err == nil {
		t.Error("an event without a key is written")
	}
}

func TestEventsOfOtherRevisions(t *testing.T) {
	var content bytes.Buffer
	if err := writeEvents(5, 9)(&content); err != nil {
		t.Fatal(err)
	}
	text := content.Bytes()
	for name, test := range map[string]struct {
		text        []byte
		first, last int64
		want        error
	}{
		"as they are":              {text, 5, 9, nil},
		"they begin later":         {text, 4, 9, ErrDamaged},
		"they begin earlier":       {text, 6, 9, ErrDamaged},
		"they end earlier":         {text, 5, 10, ErrDamaged},
		"they end later":           {text, 5, 8, ErrDamaged},
		"the last is cut off":      {text[:len(text)-1], 5, 9, ErrDamaged},
		"a length is cut off":      {text[:2], 5, 9, ErrDamaged},
		"a length is out of range": {[]byte{0xff, 0xff, 0xff, 0xff}, 5, 9, ErrDamaged},
		"no events":                {nil, 5, 9, ErrDamaged},
	} {
		if _, err := readEvents(bytes.NewReader(test.text), test.first, test.last); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	from := io.MultiReader(bytes.NewReader(text[:len(text)/2]), broken{errTest})
	if _, err := readEvents(from, 5, 9); !errors.Is(err, errTest) || errors.Is(err, ErrDamaged) {
		t.Errorf("a store that breaks off: got %v", err)
	}
}

func FuzzEventReader(f *testing.F) {
	var content bytes.Buffer
	if err := writeEvents(5, 7)(&content); err != nil {
		f.Fatal(err)
	}
	f.Add(content.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		events, err := readEvents(bytes.NewReader(text), 5, 7)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("got %v", err)
		}
		if err != nil {
			return
		}
		again := NewEventWriter(io.Discard, 5)
		for _, e := range events {
			if err := again.Write(e); err != nil {
				t.Errorf("what was read cannot be written: %v", err)
			}
		}
	})
}
