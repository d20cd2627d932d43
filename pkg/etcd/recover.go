package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// fetchedDatabase is where a snapshot is made of backups in the store.
const fetchedDatabase = "fetched.db"

// recoverable is all that data can be restored from.
type recoverable struct {
	// snapshots are in the backup directory, newest first; objects in the store.
	snapshots []Snapshot
	objects   []backup.Object
}

func (r *recoverable) count() int { return len(r.snapshots) + len(r.objects) }

// last is the highest revision that anything tells of, whether it can be restored or not.
func (r *recoverable) last() int64 {
	var last int64
	for _, snapshot := range r.snapshots {
		last = max(last, snapshot.Revision)
	}
	for _, object := range r.objects {
		last = max(last, object.Last)
	}
	return last
}

// restorable is the highest revision that can be restored if nothing is damaged.
func (r *recoverable) restorable() int64 {
	var revision int64
	if len(r.snapshots) > 0 {
		revision = r.snapshots[0].Revision
	}
	if chains := backup.Chains(r.objects); len(chains) > 0 {
		revision = max(revision, chains[0].Last())
	}
	return revision
}

// find returns all backups. Without data, an empty etcd beside backups would be a loss, so it does not give up where
// the store does not answer.
func (s *Steward) find(ctx context.Context) (found recoverable, err error) {
	if found.snapshots, err = ListSnapshots(s.options.BackupDir); err != nil || s.backups == nil {
		return found, err
	}
	err = s.insist(ctx, func() error {
		found.objects, err = s.backups.list(ctx)
		return err
	})
	return found, err
}

// insist tries something on the store until that works. Its delay doubles.
func (s *Steward) insist(ctx context.Context, try func() error) error {
	for delay := s.backups.pace.retry; ; delay = min(2*delay, s.backups.pace.mostRetry) {
		err := try()
		if err == nil {
			s.backups.notices.report(status.Start, nil)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the store of backups: %w", err)
		}
		s.health.set(status.Awaiting)
		s.backups.notices.report(status.Start, err)
		pause(ctx, delay)
	}
}

// findSoon returns all backups, without those in the store if it does not answer soon.
func (s *Steward) findSoon(ctx context.Context) (found recoverable, err error) {
	if found.snapshots, err = ListSnapshots(s.options.BackupDir); err != nil || s.backups == nil {
		return found, err
	}
	asking, cancel := context.WithTimeout(ctx, s.backups.pace.ask)
	defer cancel()
	type answer struct {
		objects []backup.Object
		err     error
	}
	// A client may not look at its context while it waits.
	answers := make(chan answer, 1)
	go func() {
		objects, err := s.backups.list(asking)
		answers <- answer{objects, err}
	}()
	var got answer
	select {
	case got = <-answers:
	case <-asking.Done():
		got.err = asking.Err()
	}
	if errors.Is(got.err, errTakenOver) {
		return found, got.err
	}
	if got.err != nil {
		s.log.Warn("cannot compare the data with the backups in the store; starting with the data", zap.Error(got.err))
	}
	found.objects = got.objects
	return found, ctx.Err()
}

// ahead returns a backup that is intact and has more than a revision, the one that has most. What it is made of the
// store is deleted by discard. Where the store fails, it counts for nothing.
func (s *Steward) ahead(ctx context.Context, found recoverable, revision int64) (Snapshot, bool) {
	newer := slices.DeleteFunc(slices.Clone(found.snapshots), func(s Snapshot) bool { return s.Revision <= revision })
	local, intact := newestIntact(newer)
	fetched, ok, err := s.fetch(ctx, &found.objects, max(revision, local.Revision))
	if err != nil {
		s.log.Error("cannot restore the backups in the store, which may have more than the data", zap.Error(err))
	}
	if ok {
		return fetched, true
	}
	return local, intact
}

// fetch makes a snapshot of what has most in the store, if that is more than a revision. Objects that turn out lost
// are removed from the list.
func (s *Steward) fetch(ctx context.Context, objects *[]backup.Object, above int64) (Snapshot, bool, error) {
	for {
		chains := backup.Chains(*objects)
		if len(chains) == 0 || chains[0].Last() <= above {
			return Snapshot{}, false, nil
		}
		s.health.set(status.Restoring)
		fetched, err := s.fetchChain(ctx, chains[0])
		if err == nil {
			return fetched, true, nil
		}
		name, lost := s.backups.giveUp(err)
		if !lost {
			return Snapshot{}, false, err
		}
		*objects = slices.DeleteFunc(*objects, func(o backup.Object) bool { return o.Name == name })
	}
}

func (s *Steward) fetchChain(ctx context.Context, chain backup.Chain) (Snapshot, error) {
	keys, err := s.backups.store.keys()
	if err != nil {
		return Snapshot{}, err
	}
	last, size := chain.Full, chain.Full.Size
	for _, delta := range chain.Deltas {
		last, size = delta, size+delta.Size
	}
	if err := s.makeRoomToWrite(size * expansion); err != nil {
		return Snapshot{}, err
	}
	path := filepath.Join(s.options.DataDir, fetchedDatabase)
	if err := history.Rebuild(ctx, s.backups.store, chain, keys, path); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Path: path, Revision: chain.Last(), Taken: last.Taken, fetched: last.String()}, nil
}

// restoreMost restores what has most of all backups.
func (s *Steward) restoreMost(ctx context.Context, found recoverable) error {
	s.health.set(status.Restoring)
	var all []error
	last, count := found.last(), found.count()
	for {
		fetched, ok, err := s.fetchMost(ctx, &found)
		if err != nil {
			return err
		}
		if ok {
			// It is right, and has most. What keeps it from being restored may pass with a new start.
			return s.restore(fetched)
		}
		if len(found.snapshots) == 0 {
			break
		}
		next := found.snapshots[0]
		found.snapshots = found.snapshots[1:]
		if err = s.restore(next); err == nil || ctx.Err() != nil {
			return err
		}
		s.log.Error("cannot restore this backup, trying the one before it", zap.String("snapshot", next.Path),
			zap.Error(err))
		all = append(all, fmt.Errorf("%s: %w", next.Path, err))
	}
	err := fmt.Errorf("none of %d backups can be restored: %w", count, errors.Join(all...))
	if s.options.OnDataLoss != StartEmpty {
		return err
	}
	s.log.Error("STARTING EMPTY: no backup can be restored and the policy allows it", zap.Error(err))
	return s.startEmpty(last)
}

// fetchMost makes a snapshot of what is in the store if that has more than the snapshots in the backup directory.
func (s *Steward) fetchMost(ctx context.Context, found *recoverable) (fetched Snapshot, ok bool, err error) {
	if s.backups == nil {
		return Snapshot{}, false, nil
	}
	var above int64
	if len(found.snapshots) > 0 {
		above = found.snapshots[0].Revision
	}
	err = s.insist(ctx, func() error {
		fetched, ok, err = s.fetch(ctx, &found.objects, above)
		return err
	})
	return fetched, ok, err
}

// removeFetched deletes what fetch made.
func (s *Steward) removeFetched() error {
	return os.RemoveAll(filepath.Join(s.options.DataDir, fetchedDatabase))
}
