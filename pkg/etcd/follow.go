package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// snapshotFn has etcd write a snapshot to a file, which discard deletes if it is for this use only.
type snapshotFn func(ctx context.Context) (path string, discard func(), err error)

// follower saves all changes of an etcd that serves. Whatever fails is told and tried again; it never ends etcd.
type follower struct {
	*backups
	client   *clientv3.Client
	snapshot snapshotFn
	// started is the revision that etcd has started with; compared says that the store was found not to be ahead of
	// it. Until then nothing is put: it would continue backups of changes that etcd does not have.
	started  int64
	compared bool
	// afresh says that the log cannot be continued, next where to go on other than where the store's log ends.
	afresh bool
	next   *backup.Position
	// fullDue is when the next full snapshot is.
	fullDue time.Time
	// delay before the next attempt.
	delay time.Duration
}

// run follows etcd until ctx is done, then saves what is not saved yet, within the time that a stop may take. It ends
// at once when leads is done: the backups are another member's then.
func (f *follower) run(ctx, leads context.Context) {
	work, cancel := graceful(ctx, f.pace.stop)
	defer cancel()
	defer context.AfterFunc(leads, cancel)()
	f.delay = f.pace.retry
	for last := false; !last && leads.Err() == nil; {
		// One more attempt is made after the stop, if the last delta failed or nothing was followed just then.
		last = ctx.Err() != nil
		finished, err := f.session(work, ctx.Done())
		delay := f.pace.retry
		switch {
		case finished && err == nil, leads.Err() != nil:
			return
		case err == nil:
		case errors.Is(err, history.ErrGap):
			f.afresh = true
			f.log.Warn("etcd does not have the changes since the last backup; a full snapshot begins another log",
				zap.Error(err))
		default:
			f.notices.report(status.Delta, err)
			delay = f.delay
			f.delay = min(2*f.delay, f.pace.mostRetry)
		}
		pause(ctx, delay)
	}
}

// graceful is done some time after ctx.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(later, func() { timer.Stop() })
	})
	return later, func() { stop(); cancel() }
}

// pause returns early when ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// session follows etcd from where the log ends. It returns without error when the log goes on elsewhere, or, finished,
// after the last delta.
func (f *follower) session(ctx context.Context, stop <-chan struct{}) (finished bool, err error) {
	keys, err := f.store.keys()
	if err != nil {
		return false, err
	}
	log, err := f.begin(ctx, keys)
	if err != nil {
		return false, err
	}
	r := &recording{
		follower: f, keys: keys, lostBefore: f.lostCount(), ended: make(chan struct{}), fulls: make(chan fullResult, 1),
		recorder: history.NewRecorder(history.RecorderOptions{
			Watcher: f.client, Store: f.store, Keys: keys, Position: log, MaxBytes: f.pace.bytes, Now: time.Now,
		}),
	}
	ctx, cancel := context.WithCancel(ctx)
	var recorded error
	go func() { recorded = r.recorder.Run(ctx); close(r.ended) }()
	finished, err = r.loop(ctx, stop)
	cancel()
	<-r.ended
	r.saving.Wait()
	// The recorder knows why it ended; to others it only has.
	return finished, cmp.Or(recorded, err)
}

// begin returns where the log goes on. A full snapshot begins one if there is none that can be continued.
func (f *follower) begin(ctx context.Context, keys *backup.Keys) (backup.Position, error) {
	if next := f.next; next != nil {
		f.next = nil
		return *next, nil
	}
	objects, err := f.list(ctx)
	if err != nil {
		return backup.Position{}, err
	}
	chains := backup.Chains(objects)
	if err := f.compare(ctx, chains); err != nil {
		return backup.Position{}, err
	}
	if len(chains) == 0 || f.afresh {
		return f.beginLog(ctx, keys)
	}
	storeChain.Set(float64(len(chains[0].Deltas)))
	full := newestFull(chains)
	f.notices.succeeded(status.Full, status.Operation{Succeeded: full.Taken.UTC(), Revision: full.Last})
	f.fullDue = full.Taken.Add(f.pace.full)
	log, err := chains[0].End(ctx, f.store, keys)
	if _, lost := f.giveUp(err); lost {
		return f.begin(ctx, keys)
	}
	if errors.Is(err, backup.ErrKey) {
		f.log.Warn("the newest backups have another key; a full snapshot begins another log", zap.Error(err))
		return f.beginLog(ctx, keys)
	}
	return log, err
}

// compare makes sure that etcd has all that the store's log has.
func (f *follower) compare(ctx context.Context, chains []backup.Chain) error {
	revision, err := currentRevision(ctx, f.client)
	if err != nil {
		return fmt.Errorf("asking etcd for its revision: %w", err)
	}
	if !f.compared {
		revision = f.started
	}
	if len(chains) > 0 && chains[0].Last() > revision {
		return fmt.Errorf("%w: etcd had revision %d, they have %d", errBehind, revision, chains[0].Last())
	}
	if f.compared {
		return nil
	}
	f.compared = true
	return confirm(f.options.DataDir)
}

// newestFull is the full snapshot that was taken last.
func newestFull(chains []backup.Chain) backup.Object {
	newest := chains[0].Full
	for _, chain := range chains {
		if chain.Full.Taken.After(newest.Taken) {
			newest = chain.Full
		}
	}
	return newest
}
