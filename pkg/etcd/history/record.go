package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// ErrGap says that etcd does not have the changes any more, or not yet, that the log goes on with. A full snapshot has
// to begin another log; where etcd's revision is behind that of the log, etcd's data should be looked at before.
var ErrGap = errors.New("etcd cannot continue the log of backups")

// ErrEnded says that a recorder has ended.
var ErrEnded = errors.New("the recorder has ended")

// Recorder follows all changes of an etcd and saves them as deltas.
type Recorder struct {
	options  RecorderOptions
	requests chan request
	done     chan struct{}

	// What follows belongs to Run.
	position backup.Position
	// events that are not saved yet; size in bytes, about.
	events []*mvccpb.Event
	size   int64
	// waiting are requests for revisions that are not seen yet.
	waiting []request
}

// RecorderOptions say what a recorder follows and where it saves.
type RecorderOptions struct {
	// Watcher is the etcd; a client is one.
	Watcher clientv3.Watcher
	Store   store.Store
	Keys    *backup.Keys
	// Position is where the log ends.
	Position backup.Position
	// MaxBytes of events are kept in memory, about, before they are saved.
	MaxBytes int64
	// Now is the time.
	Now func() time.Time
}

type request struct {
	revision int64
	answer   chan<- answer
}

type answer struct {
	position backup.Position
	err      error
}

// NewRecorder returns a recorder; Run does the work.
func NewRecorder(options RecorderOptions) *Recorder {
	return &Recorder{
		options: options, position: options.Position, requests: make(chan request), done: make(chan struct{}),
	}
}

// Run follows etcd until ctx is done or an error ends it, once. What is not saved then is lost to this recorder, and
// for another one to fetch again, from where the log ends.
func (r *Recorder) Run(ctx context.Context) error {
	defer close(r.done)
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	// All keys; each event comes with all others of its revision.
	watch := r.options.Watcher.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(r.position.Revision+1),
		clientv3.WithCreatedNotify())
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case response, open := <-watch:
			if !open {
				return r.closed(ctx)
			}
			err = r.add(ctx, response)
		case asked := <-r.requests:
			r.waiting = append(r.waiting, asked)
		}
		if err == nil {
			err = r.answer(ctx)
		}
		if err != nil {
			return fmt.Errorf("recording changes after revision %d: %w", r.position.Revision, err)
		}
	}
}

func (r *Recorder) closed(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("etcd has ended the watch")
}

// add takes what etcd tells.
func (r *Recorder) add(ctx context.Context, response clientv3.WatchResponse) error {
	if response.CompactRevision > 0 {
		return fmt.Errorf("%w: it has no changes before revision %d", ErrGap, response.CompactRevision)
	}
	if err := response.Err(); err != nil {
		return err
	}
	if response.Created && response.Header.Revision < r.position.Revision {
		return fmt.Errorf("%w: its revision is %d", ErrGap, response.Header.Revision)
	}
	for _, event := range response.Events {
		r.events = append(r.events, (*mvccpb.Event)(event))
		r.size += int64(event.Kv.Size())
	}
	if r.size < r.options.MaxBytes {
		return nil
	}
	return r.cut(ctx, r.seen())
}

// seen is the last revision whose events came.
func (r *Recorder) seen() int64 {
	if n := len(r.events); n > 0 {
		return r.events[n-1].Kv.ModRevision
	}
	return r.position.Revision
}

// answer saves what is asked for and was seen.
func (r *Recorder) answer(ctx context.Context) error {
	waiting := r.waiting[:0]
	for _, asked := range r.waiting {
		if asked.revision > r.seen() {
			waiting = append(waiting, asked)
			continue
		}
		last := asked.revision
		if last == 0 {
			last = r.seen()
		}
		err := r.cut(ctx, last)
		asked.answer <- answer{r.position, err}
		if err != nil {
			return err
		}
	}
	r.waiting = waiting
	return nil
}

// cut saves the events up to a revision, if there are some.
func (r *Recorder) cut(ctx context.Context, last int64) error {
	n := 0
	for n < len(r.events) && r.events[n].Kv.ModRevision <= last {
		n++
	}
	if n == 0 {
		return nil
	}
	first := r.position.Revision + 1
	header := backup.Header{
		Name: backup.Name{
			Kind: backup.Delta, First: first, Last: last, Taken: r.options.Now().UTC().Truncate(time.Second),
			ID: backup.NewID(), Parent: r.position.ID,
		},
		ParentDigest: r.position.Digest,
	}
	digest, err := backup.Save(ctx, r.options.Store, header, r.options.Keys, func(w io.Writer) error {
		events := backup.NewEventWriter(w, first)
		for _, event := range r.events[:n] {
			if err := events.Write(event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, event := range r.events[:n] {
		r.size -= int64(event.Kv.Size())
	}
	// Copied, so that the saved ones can be freed.
	r.events = append([]*mvccpb.Event(nil), r.events[n:]...)
	r.position = backup.Position{ID: header.ID, Digest: digest, Revision: last}
	return nil
}

// Cut has all changes saved up to a revision, which etcd must have or come to; 0 stands for all that were seen. It
// returns where the log ends: at that revision, or after it where more was saved before.
func (r *Recorder) Cut(ctx context.Context, revision int64) (backup.Position, error) {
	answers := make(chan answer, 1)
	select {
	case r.requests <- request{revision, answers}:
	case <-r.done:
		return backup.Position{}, ErrEnded
	case <-ctx.Done():
		return backup.Position{}, ctx.Err()
	}
	select {
	case a := <-answers:
		return a.position, a.err
	case <-r.done:
	case <-ctx.Done():
		return backup.Position{}, ctx.Err()
	}
	// The answer may be the last that the recorder did.
	select {
	case a := <-answers:
		return a.position, a.err
	default:
		return backup.Position{}, ErrEnded
	}
}
