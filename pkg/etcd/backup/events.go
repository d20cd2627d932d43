package backup

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// maxEvent is the most bytes of an event. etcd's default limit of a request is 1.5 MiB.
const maxEvent = 64 << 20

// sequence holds events to the order in which etcd makes them: each revision has some, and none is left out.
type sequence struct{ first, last int64 }

// next returns an error if an event of this revision cannot follow.
func (s *sequence) next(revision int64) error {
	if revision != s.last && revision != s.last+1 || revision < s.first {
		return fmt.Errorf("an event of revision %d follows, where one of revision %d or %d should", revision,
			max(s.last, s.first), s.last+1)
	}
	s.last = revision
	return nil
}

// EventWriter writes the content of a delta: each event as its length (4 bytes, big-endian) and its
// protobuf.
type EventWriter struct {
	to       io.Writer
	sequence sequence
}

// NewEventWriter writes events from revision first on.
func NewEventWriter(to io.Writer, first int64) *EventWriter {
	return &EventWriter{to: to, sequence: sequence{first, first - 1}}
}

// Write adds the event that follows.
func (w *EventWriter) Write(event *mvccpb.Event) error {
	if event.Kv == nil {
		return errors.New("an event has no key")
	}
	if err := w.sequence.next(event.Kv.ModRevision); err != nil {
		return err
	}
	text, err := (&mvccpb.Event{Type: event.Type, Kv: event.Kv}).Marshal()
	if err != nil {
		return err
	}
	if len(text) > maxEvent {
		return fmt.Errorf("an event of revision %d has %d bytes, %d are allowed", event.Kv.ModRevision, len(text),
			maxEvent)
	}
	if _, err := w.to.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text)))); err != nil {
		return err
	}
	_, err = w.to.Write(text)
	return err
}

// EventReader reads the content of a delta.
type EventReader struct {
	from     *bufio.Reader
	sequence sequence
	last     int64
	buffer   bytes.Buffer
}

// NewEventReader reads the events of the revisions from first to last.
func NewEventReader(from io.Reader, first, last int64) *EventReader {
	return &EventReader{from: bufio.NewReader(from), sequence: sequence{first, first - 1}, last: last}
}

// Next returns the event that follows, or io.EOF when all revisions were there. Errors of what is read are returned
// as they are; all others are ErrDamaged.
func (r *EventReader) Next() (*mvccpb.Event, error) {
	size, err := r.size()
	if err == io.EOF && r.sequence.last != r.last {
		return nil, fmt.Errorf("%w: the events end at revision %d, not %d", ErrDamaged, r.sequence.last, r.last)
	}
	if err != nil {
		return nil, err
	}
	r.buffer.Reset()
	if n, err := io.CopyN(&r.buffer, r.from, int64(size)); err == io.EOF {
		return nil, fmt.Errorf("%w: an event has %d bytes, of %d", ErrDamaged, n, size)
	} else if err != nil {
		return nil, err
	}
	event := &mvccpb.Event{}
	err = event.Unmarshal(r.buffer.Bytes())
	switch {
	case err != nil:
	case event.Kv == nil || len(event.Kv.Key) == 0:
		err = errors.New("an event has no key")
	case event.Type != mvccpb.PUT && event.Type != mvccpb.DELETE:
		err = fmt.Errorf("an event has the type %d", event.Type)
	default:
		if err = r.sequence.next(event.Kv.ModRevision); err == nil && event.Kv.ModRevision > r.last {
			err = fmt.Errorf("an event of revision %d follows the last revision %d", event.Kv.ModRevision, r.last)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return event, nil
}

// size reads the length of the next event.
func (r *EventReader) size() (uint32, error) {
	var length [4]byte
	_, err := io.ReadFull(r.from, length[:])
	size := binary.BigEndian.Uint32(length[:])
	if err == io.ErrUnexpectedEOF || (err == nil && size > maxEvent) {
		return 0, fmt.Errorf("%w: the length of an event is cut off or %d, %d are allowed", ErrDamaged, size, maxEvent)
	}
	return size, err
}
