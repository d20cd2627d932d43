package etcd

import (
	"context"
	"reflect"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// recording is what follows etcd without interruption.
type recording struct {
	*follower
	recorder *history.Recorder
	// ended is closed when the recorder has.
	ended chan struct{}
	// keys that are used, and how many objects were known to be lost at the beginning.
	keys       *backup.Keys
	lostBefore int
	// fulls has the result of a full snapshot that is saved beside the deltas.
	fulls  chan fullResult
	saving sync.WaitGroup
}

// fullResult tells where the log goes on after a full snapshot; nil: as before.
type fullResult struct {
	next *backup.Position
	err  error
}

// loop has deltas cut and full snapshots taken.
func (r *recording) loop(ctx context.Context, stop <-chan struct{}) (finished bool, err error) {
	// What was written before the start, or while nothing could be saved, does not wait for a period.
	if err := r.cut(ctx); err != nil {
		return false, err
	}
	deltas := time.NewTicker(r.pace.delta)
	defer deltas.Stop()
	full := time.NewTimer(time.Until(r.fullDue))
	defer full.Stop()
	for {
		select {
		case <-stop:
			return true, r.cut(ctx)
		case <-r.ended:
			return false, nil
		case <-deltas.C:
			if err := r.cut(ctx); err != nil || r.outdated() {
				return false, err
			}
		case <-full.C:
			r.saving.Go(func() {
				next, err := r.saveFull(ctx)
				r.fulls <- fullResult{next, err}
			})
		case result := <-r.fulls:
			r.fullDue = time.Now().Add(r.pace.full)
			if result.err != nil {
				r.fullDue = time.Now().Add(r.pace.retryFull)
			}
			full.Reset(time.Until(r.fullDue))
			r.notices.report(status.Full, result.err)
			if r.next = result.next; r.next != nil {
				return false, nil
			}
		}
	}
}

// cut saves all changes that etcd has.
func (r *recording) cut(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cutTimeout)
	defer cancel()
	revision, err := currentRevision(ctx, r.client)
	if err == nil {
		_, err = r.recorder.Cut(ctx, revision)
	}
	if err == nil {
		r.delay = r.pace.retry
		r.notices.report(status.Delta, nil)
		r.notices.succeeded(status.Delta, status.Operation{Succeeded: time.Now().UTC(), Revision: revision})
	}
	return err
}

// outdated tells that the log goes on in another way: with other keys, or without an object that turned out lost.
func (r *recording) outdated() bool {
	keys, err := r.store.keys()
	return err != nil || r.lostBefore != r.lostCount() || !reflect.DeepEqual(keys, r.keys)
}

// saveFull saves a full snapshot if something has changed since the last one, and prunes.
func (r *recording) saveFull(ctx context.Context) (*backup.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, fullTimeout)
	defer cancel()
	objects, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	revision, err := currentRevision(ctx, r.client)
	if err != nil {
		return nil, err
	}
	var next *backup.Position
	if chains := backup.Chains(objects); len(chains) == 0 || newestFull(chains).Last != revision {
		next, err = r.saveBeside(ctx)
	}
	if err == nil {
		r.notices.report(status.Prune, r.prune(ctx))
	}
	return next, err
}

// saveBeside saves a full snapshot beside the log, where that is possible.
func (r *recording) saveBeside(ctx context.Context) (*backup.Position, error) {
	path, discard, err := r.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer discard()
	revision, err := history.Revision(path)
	if err != nil {
		return nil, err
	}
	log, err := r.recorder.Cut(ctx, revision)
	if err != nil {
		return nil, err
	}
	next, err := history.SaveFull(ctx, r.store, r.keys, path, log, time.Now())
	if err != nil {
		return nil, err
	}
	r.notices.succeeded(status.Full, status.Operation{Succeeded: time.Now().UTC(), Revision: revision})
	r.log.Info("saved a full snapshot in the store", zap.Int64("revision", revision))
	if next == log {
		return nil, nil
	}
	// More had been saved before the snapshot was there. The log goes on after it, so that restoring takes no more.
	r.log.Info("the full snapshot was overtaken by changes; it begins another log", zap.Int64("revision", revision))
	return &next, nil
}

// beginLog saves a full snapshot that begins a log.
func (f *follower) beginLog(ctx context.Context, keys *backup.Keys) (backup.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, fullTimeout)
	defer cancel()
	path, discard, err := f.snapshot(ctx)
	if err != nil {
		return backup.Position{}, err
	}
	defer discard()
	log, err := history.SaveFull(ctx, f.store, keys, path, backup.Position{}, time.Now())
	if f.notices.report(status.Full, err); err != nil {
		return backup.Position{}, err
	}
	f.notices.succeeded(status.Full, status.Operation{Succeeded: time.Now().UTC(), Revision: log.Revision})
	f.log.Info("a full snapshot in the store begins a log", zap.Int64("revision", log.Revision))
	f.afresh, f.fullDue = false, time.Now().Add(f.pace.full)
	storeChain.Set(0)
	f.notices.report(status.Prune, f.prune(ctx))
	return log, nil
}
