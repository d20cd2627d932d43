package etcd

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// Snapshot is a full snapshot in a backup directory. Its file ends in a SHA-256 of what comes before, which restoring
// checks.
type Snapshot struct {
	// Path of the file.
	Path string
	// Revision is the last one that the snapshot holds.
	Revision int64
	// Taken is when it was taken.
	Taken time.Time
	// fetched is the last object in the store that it was made of; empty for one in a backup directory.
	fetched string
}

// name is what people know the snapshot by.
func (s Snapshot) name() string { return cmp.Or(s.fetched, filepath.Base(s.Path)) }

// source is where the snapshot is from.
func (s Snapshot) source() status.Source {
	if s.fetched != "" {
		return status.BackupStore
	}
	return status.BackupDirectory
}

const (
	snapshotPrefix = "full-"
	snapshotSuffix = ".db"
	partialSuffix  = ".part"
)

func snapshotName(revision int64, taken time.Time) string {
	return fmt.Sprintf("%s%016d-%d%s", snapshotPrefix, revision, taken.Unix(), snapshotSuffix)
}

func parseSnapshotName(name string) (Snapshot, bool) {
	middle, hasPrefix := strings.CutPrefix(name, snapshotPrefix)
	middle, hasSuffix := strings.CutSuffix(middle, snapshotSuffix)
	revision, taken, found := strings.Cut(middle, "-")
	if !hasPrefix || !hasSuffix || !found {
		return Snapshot{}, false
	}
	number, err1 := strconv.ParseInt(revision, 10, 64)
	seconds, err2 := strconv.ParseInt(taken, 10, 64)
	if err1 != nil || err2 != nil {
		return Snapshot{}, false
	}
	return Snapshot{Revision: number, Taken: time.Unix(seconds, 0)}, true
}

// ListSnapshots returns the snapshots in a directory, newest first. A directory that does not exist holds none.
func ListSnapshots(dir string) ([]Snapshot, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	var list []Snapshot
	for _, entry := range entries {
		if snapshot, ok := parseSnapshotName(entry.Name()); ok {
			snapshot.Path = filepath.Join(dir, entry.Name())
			list = append(list, snapshot)
		}
	}
	slices.SortFunc(list, func(a, b Snapshot) int {
		if a.Revision != b.Revision {
			return int(max(-1, min(1, b.Revision-a.Revision)))
		}
		return b.Taken.Compare(a.Taken)
	})
	return list, nil
}

// newestIntact returns the newest snapshot whose checksum is right.
func newestIntact(newestFirst []Snapshot) (Snapshot, bool) {
	for _, snapshot := range newestFirst {
		if checkSnapshot(snapshot.Path) == nil {
			return snapshot, true
		}
	}
	return Snapshot{}, false
}

// checkSnapshot compares a snapshot with its checksum.
func checkSnapshot(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	hash, want := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(hash, file, info.Size()-sha256.Size); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := io.ReadFull(file, want); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !bytes.Equal(hash.Sum(nil), want) {
		return fmt.Errorf("%s: its checksum is wrong", path)
	}
	return nil
}

// takeSnapshot writes a snapshot of a running etcd. The file appears under its name only when it is complete and on
// disk. It is given up when hasRoom fails, which is asked while it is written.
func takeSnapshot(database backend.Backend, revision int64, dir string, now time.Time,
	hasRoom func() error) (Snapshot, error) {
	taken := Snapshot{Path: filepath.Join(dir, snapshotName(revision, now)), Revision: revision, Taken: now}
	view := database.Snapshot()
	err := writeDurably(taken.Path, func(w io.Writer) error {
		hash := sha256.New()
		if _, err := view.WriteTo(io.MultiWriter(&checkedWriter{Writer: w, check: hasRoom}, hash)); err != nil {
			return err
		}
		_, err := w.Write(hash.Sum(nil))
		return err
	})
	if err := errors.Join(err, view.Close()); err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	return taken, nil
}

// checkedWriter asks check before every so many bytes, and writes no more once that fails.
type checkedWriter struct {
	io.Writer
	check     func() error
	unchecked int
}

const checkEveryBytes = 16 << 20

func (w *checkedWriter) Write(content []byte) (int, error) {
	if w.unchecked += len(content); w.unchecked >= checkEveryBytes {
		w.unchecked = 0
		if err := w.check(); err != nil {
			return 0, err
		}
	}
	return w.Writer.Write(content)
}

func writeDurably(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path+partialSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(write(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// PruneSnapshots deletes all but the newest snapshots, and what an interrupted one left.
func PruneSnapshots(dir string, keep int) error {
	list, err := ListSnapshots(dir)
	if err != nil {
		return err
	}
	for _, snapshot := range list[min(keep, len(list)):] {
		err = errors.Join(err, os.Remove(snapshot.Path))
	}
	partials, globErr := filepath.Glob(filepath.Join(dir, snapshotPrefix+"*"+partialSuffix))
	err = errors.Join(err, globErr)
	for _, partial := range partials {
		err = errors.Join(err, os.Remove(partial))
	}
	return err
}
