package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

const (
	// spaceCheckPeriod is how often quota and volume are looked at, which costs next to nothing.
	spaceCheckPeriod = time.Second
	// firstSnapshotDelay lets a starting control plane settle before the first snapshot.
	firstSnapshotDelay = time.Minute
	// defragmentation happens when the database is at least this large and this part of it is free.
	defragmentMinimumBytes = 100 << 20
	defragmentFreePercent  = 50
	// scratchDir is where snapshots for the store are taken without a backup directory, below the data directory.
	scratchDir = "snapshotting"
)

// maintain runs everything periodic until ctx is done.
func (s *Steward) maintain(ctx context.Context) {
	space := time.NewTicker(spaceCheckPeriod)
	defer space.Stop()
	snapshot := time.NewTimer(s.untilNextSnapshot(time.Now()))
	defer snapshot.Stop()
	defragment := time.NewTicker(max(s.options.DefragmentationPeriod, time.Minute))
	defer defragment.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-space.C:
			err = s.careForSpace(ctx)
			s.forgetWrittenAnew()
		case <-snapshot.C:
			err = s.snapshot(ctx)
			snapshot.Reset(s.untilNextSnapshot(time.Now()))
		case <-defragment.C:
			err = s.defragment(ctx)
		case errand := <-s.errands:
			errand()
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("maintenance failed, it is tried again", zap.Error(err))
		}
	}
}

// untilNextSnapshot returns when the next snapshot is due, so that restarts do not put it off.
func (s *Steward) untilNextSnapshot(now time.Time) time.Duration {
	if s.options.BackupDir == "" {
		return 1<<63 - 1
	}
	snapshots, err := ListSnapshots(s.options.BackupDir)
	if err != nil || len(snapshots) == 0 {
		return min(firstSnapshotDelay, s.options.SnapshotPeriod)
	}
	due := snapshots[0].Taken.Add(s.options.SnapshotPeriod).Sub(now)
	return max(due, min(firstSnapshotDelay, s.options.SnapshotPeriod))
}

// snapshot takes a full snapshot when something has changed since the last one, and prunes.
func (s *Steward) snapshot(ctx context.Context) error {
	if s.options.BackupDir == "" {
		return nil
	}
	s.snapshots.Lock()
	defer s.snapshots.Unlock()
	revision, err := currentRevision(ctx, s.client)
	if err != nil {
		return err
	}
	snapshots, err := ListSnapshots(s.options.BackupDir)
	// One may have been taken for the store just now.
	if err != nil || (len(snapshots) > 0 &&
		(snapshots[0].Revision == revision || time.Since(snapshots[0].Taken) < s.options.SnapshotPeriod/2)) {
		return err
	}
	taken, err := s.takeLocal(ctx, revision)
	if err := s.skipWithoutRoom(careSnapshot, err); err != nil || taken.Path == "" {
		return err
	}
	return PruneSnapshots(s.options.BackupDir, s.options.SnapshotRetention)
}

// takeLocal takes a snapshot into the backup directory. The revision was read before, so the file may hold a little
// more than its name says, never less.
func (s *Steward) takeLocal(ctx context.Context, revision int64) (Snapshot, error) {
	if err := s.compareWithSnapshots(ctx); err != nil {
		return Snapshot{}, err
	}
	taken, err := s.takeWithinRoom(ctx, s.options.BackupDir, revision)
	if err == nil {
		s.log.Info("took a snapshot", zap.String("path", taken.Path), zap.Int64("revision", taken.Revision))
	}
	return taken, err
}

// snapshotFile has a file with a snapshot of now, for the store: it is one in the backup directory, or without that for
// this use only.
func (s *Steward) snapshotFile(ctx context.Context) (path string, discard func(), err error) {
	s.snapshots.Lock()
	defer s.snapshots.Unlock()
	revision, err := currentRevision(ctx, s.client)
	if err != nil {
		return "", nil, err
	}
	if s.options.BackupDir == "" {
		dir := filepath.Join(s.options.DataDir, scratchDir)
		taken, err := s.takeWithinRoom(ctx, dir, revision)
		return taken.Path, func() { _ = os.RemoveAll(dir) }, err
	}
	keep := func() {}
	present, err := ListSnapshots(s.options.BackupDir)
	if err != nil {
		return "", nil, err
	}
	if len(present) > 0 && present[0].Revision == revision && checkSnapshot(present[0].Path) == nil {
		return present[0].Path, keep, nil
	}
	taken, err := s.takeLocal(ctx, revision)
	if err != nil {
		return "", nil, err
	}
	return taken.Path, keep, PruneSnapshots(s.options.BackupDir, s.options.SnapshotRetention)
}

// defragment gives space back when much of the database is free. Several members do so as the leader requests.
func (s *Steward) defragment(_ context.Context) error {
	backend := s.etcd.Server.Backend()
	if !s.alone() || s.options.DefragmentationPeriod == 0 ||
		!worthDefragmenting(backend.Size(), backend.SizeInUse()) {
		return nil
	}
	return s.defragmentNow(volume.reserve)
}

func worthDefragmenting(size, inUse int64) bool {
	return size >= defragmentMinimumBytes && mostlyFree(size, inUse)
}

func mostlyFree(size, inUse int64) bool { return (size-inUse)*100 >= size*defragmentFreePercent }

// defragmentNow defragments, unless there is no room for a second copy of what is in use.
func (s *Steward) defragmentNow(reserve func(volume) int64) error {
	backend := s.etcd.Server.Backend()
	before := backend.Size()
	err := s.makeRoom(s.options.DataDir, backend.SizeInUse(), reserve)
	if err == nil {
		err = backend.Defrag()
	}
	if err != nil {
		return s.skipWithoutRoom(careDefragmentation, fmt.Errorf("defragmenting: %w", err))
	}
	s.log.Info("defragmented", zap.Int64("bytesBefore", before), zap.Int64("bytesAfter", backend.Size()))
	return s.skipWithoutRoom(careDefragmentation, nil)
}

// takeWithinRoom takes a snapshot if there is room for it, and stops when the room is used up otherwise meanwhile.
func (s *Steward) takeWithinRoom(ctx context.Context, dir string, revision int64) (Snapshot, error) {
	database := s.etcd.Server.Backend()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	if err := s.makeRoom(dir, database.Size(), volume.reserve); err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	return takeSnapshot(database, revision, dir, time.Now(), func() error {
		return errors.Join(s.checkRoomLeft(dir), ctx.Err())
	})
}

// checkRoomLeft is for what takes long: nobody cares for space meanwhile.
func (s *Steward) checkRoomLeft(dir string) error {
	v, err := s.measure(dir)
	if err == nil && v.free < v.reserve()/2 {
		return &noRoomError{dir: dir, reserve: v.reserve() / 2, free: v.free}
	}
	return err
}

// What is skipped when there is no room for it.
const (
	careSnapshot        = "snapshot"
	careDefragmentation = "defragmentation"
)

// skipWithoutRoom takes the result of something that needs room. It tells, when that changes, that it is skipped for
// lack of room, and returns other errors.
func (s *Steward) skipWithoutRoom(care string, err error) error {
	var short *noRoomError
	if errors.As(err, &short) {
		skipped.WithLabelValues(care).Inc()
		if s.changed(care, "skipped") {
			s.told.skips(care, err)
			s.log.Error("THERE IS NO ROOM for a "+care+"; it is skipped until there is", zap.Error(err))
		}
		return nil
	}
	if err == nil && s.changed(care, "") {
		s.told.skips(care, nil)
		s.log.Info("there is room for a " + care + " again")
	}
	return err
}

// changed reports whether something else was said about a subject last.
func (s *Steward) changed(subject, state string) bool {
	before := s.said[subject]
	s.said[subject] = state
	return before != state
}
