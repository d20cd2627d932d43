package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// volume is the file system that a path is on.
type volume struct {
	device uint64
	// size and free are in bytes; free is what this process may still write.
	size, free int64
}

// measureFn tells of the volume that an existing path is on.
type measureFn func(path string) (volume, error)

func measure(path string) (volume, error) {
	var system unix.Statfs_t
	var file unix.Stat_t
	if err := errors.Join(unix.Statfs(path, &system), unix.Stat(path, &file)); err != nil {
		return volume{}, fmt.Errorf("measuring the volume of %s: %w", path, err)
	}
	block := int64(system.Bsize)
	// Without what the filesystem keeps for root, as df reckons.
	size := int64(system.Blocks-system.Bfree+system.Bavail) * block
	return volume{device: uint64(file.Dev), size: size, free: int64(system.Bavail) * block}, nil
}

// walSegmentBytes is the size of a file of the write-ahead log, which etcd allocates ahead of use.
const walSegmentBytes = 64 << 20

// reserve is what is left free for etcd itself: segments of its log, and what is written until the next look.
func (v volume) reserve() int64 { return min(4*walSegmentBytes, v.size/8) }

// resume is how much must be free for writes to be served again, after they were stopped for want of the reserve.
func (v volume) resume() int64 { return v.reserve() / 4 * 5 }

// leastReserve is what is left free where writing stands still, or must be made to.
func (v volume) leastReserve() int64 { return v.reserve() / 4 }

// noRoomError says that a volume has too little room, even after all was deleted that may be.
type noRoomError struct {
	dir                   string
	needed, reserve, free int64
}

func (e *noRoomError) Error() string {
	return fmt.Sprintf("the volume of %s lacks room: %d bytes are needed beside a reserve of %d, and %d are free; "+
		"enlarge the volume or delete objects", e.dir, e.needed, e.reserve, e.free)
}

// makeRoom deletes what may be deleted until the volume of a directory has room for so many bytes beside a reserve:
// the oldest snapshots first, then data that was kept aside. It never deletes the newest good snapshot. It
// fails with a noRoomError when that is not enough.
func (s *Steward) makeRoom(dir string, needed int64, reserve func(volume) int64) error {
	v, err := s.measure(dir)
	if err != nil || v.free >= needed+reserve(v) {
		return err
	}
	for _, list := range []func() ([]string, error){s.olderSnapshots, s.dataAside} {
		paths, err := list()
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := s.deleteOn(v, path); err != nil {
				return err
			}
			if v, err = s.measure(dir); err != nil || v.free >= needed+reserve(v) {
				return err
			}
		}
	}
	return &noRoomError{dir: dir, needed: needed, reserve: reserve(v), free: v.free}
}

// deleteOn deletes a path if that gives room to the volume.
func (s *Steward) deleteOn(v volume, path string) error {
	if of, err := s.measure(path); err != nil || of.device != v.device {
		return err
	}
	s.log.Warn("deleting to make room on the volume", zap.String("path", path), zap.Int64("free", v.free))
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("making room: %w", err)
	}
	return nil
}

// olderSnapshots returns all but the newest good snapshot: bad ones, which are newer, then the others, oldest first.
// Where none is good, it takes the newest for that.
func (s *Steward) olderSnapshots() ([]string, error) {
	snapshots, err := ListSnapshots(s.options.BackupDir)
	if err != nil || len(snapshots) < 2 {
		return nil, err
	}
	good := 0
	if newest, found := newestIntact(snapshots); found {
		good = slices.Index(snapshots, newest)
	}
	var paths []string
	for _, snapshot := range snapshots[:good] {
		paths = append(paths, snapshot.Path)
	}
	for _, snapshot := range slices.Backward(snapshots[good+1:]) {
		paths = append(paths, snapshot.Path)
	}
	return paths, nil
}

// dataAside returns the data that was kept for people to look at.
func (s *Steward) dataAside() ([]string, error) {
	var all []string
	for _, kind := range []string{damagedData, staleData, replacedData} {
		paths, err := filepath.Glob(filepath.Join(s.options.DataDir, kind+"-*"))
		if err != nil {
			return nil, err
		}
		all = append(all, paths...)
	}
	return all, nil
}

// removeLeftovers deletes what an etcd or a steward that was killed left unfinished.
func (s *Steward) removeLeftovers() error {
	patterns := []string{
		filepath.Join(s.options.DataDir, unfinishedRestore),
		filepath.Join(s.options.DataDir, emptyDatabase),
		s.ballastPath() + partialSuffix,
		filepath.Join(s.options.DataDir, fetchedDatabase+"*"),
		filepath.Join(s.options.DataDir, drillDir),
		filepath.Join(s.options.DataDir, scratchDir),
		dbPath(s.options.DataDir) + ".tmp*",
		filepath.Join(walDir(s.options.DataDir), "*.tmp"),
	}
	if s.options.BackupDir != "" {
		patterns = append(patterns, filepath.Join(s.options.BackupDir, snapshotPrefix+"*"+partialSuffix))
	}
	var all []error
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		all = append(all, err)
		for _, path := range paths {
			all = append(all, os.RemoveAll(path))
		}
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("deleting what is unfinished: %w", err)
	}
	return nil
}

// makeRoomToWrite makes room for data that a start depends on. It is written in any case: with less than the reserve,
// or after what was kept aside is gone, an etcd may start yet.
func (s *Steward) makeRoomToWrite(bytes int64) error {
	err := s.makeRoom(s.options.DataDir, bytes, volume.reserve)
	var short *noRoomError
	if errors.As(err, &short) {
		s.log.Error("THE VOLUME IS FULL; trying to start nevertheless", zap.Error(err))
		return s.dropBallast()
	}
	return err
}
