// Package history takes backups of a running etcd and makes databases of them: it saves full snapshots, follows all
// changes and saves them as deltas, and applies deltas to a full snapshot, without etcd. The format is that of
// pkg/etcd/backup.
//
// Users, roles and members of etcd are in full snapshots only: etcd tells of no change of these.
package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

const (
	// sector is what the size of a database is a multiple of. That of a snapshot is not: a SHA-256 follows.
	sector      = 512
	openTimeout = 5 * time.Second
)

// SaveFull saves a snapshot that etcd wrote to a file. Where the log ends at its revision, it is put beside the log;
// otherwise it begins one. It returns where the log goes on.
func SaveFull(
	ctx context.Context, s store.Store, keys *backup.Keys, path string, log backup.Position, now time.Time,
) (backup.Position, error) {
	file, err := os.Open(path)
	if err != nil {
		return backup.Position{}, fmt.Errorf("saving a full snapshot: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := snapshotSize(file); err != nil {
		return backup.Position{}, fmt.Errorf("saving %s as a full snapshot: %w", path, err)
	}
	// What the database says counts, not what its file is called: it may have changed while it was copied.
	revision, err := Revision(path)
	if err != nil {
		return backup.Position{}, fmt.Errorf("saving %s as a full snapshot: %w", path, err)
	}
	header := backup.Header{Name: backup.Name{
		Kind: backup.Full, Last: revision, Taken: now.UTC().Truncate(time.Second), ID: backup.NewID(),
	}}
	beside := log.ID != backup.ID{} && log.Revision == revision
	if beside {
		header.Parent, header.ParentDigest = log.ID, log.Digest
	}
	digest, err := backup.Save(ctx, s, header, keys, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
	if err != nil || beside {
		return log, err
	}
	return backup.Position{ID: header.ID, Digest: digest, Revision: revision}, nil
}

// snapshotSize checks the SHA-256 that a snapshot ends in and returns how long the database before it is. The file is
// read from its beginning, and is there again afterwards.
func snapshotSize(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size() - sha256.Size
	if size <= 0 || size%sector != 0 {
		return 0, fmt.Errorf("a file of %d bytes is no snapshot of etcd with a hash", info.Size())
	}
	hash := sha256.New()
	if _, err := io.CopyN(hash, file, size); err != nil {
		return 0, err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(file, want); err != nil {
		return 0, err
	}
	if !bytes.Equal(hash.Sum(nil), want) {
		return 0, errors.New("the hash of the snapshot does not fit")
	}
	_, err = file.Seek(0, io.SeekStart)
	return size, err
}

// Revision reads the revision of a database, or of a snapshot, that nobody writes.
func Revision(path string) (int64, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return 0, fmt.Errorf("opening database %s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	var revision int64
	err = db.View(func(tx *bolt.Tx) error {
		revision, err = revisionIn(tx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("database %s: %w", path, err)
	}
	return revision, nil
}

// revisionIn is the highest revision of a change, or the one that changes were compacted up to: the last change may
// have been a deletion of which compaction left nothing.
func revisionIn(tx *bolt.Tx) (int64, error) {
	changes, meta := tx.Bucket(schema.Key.Name()), tx.Bucket(schema.Meta.Name())
	if changes == nil || meta == nil {
		return 0, errors.New("it is not one of etcd")
	}
	last, _ := changes.Cursor().Last()
	// An empty etcd has revision 1.
	revision := int64(1)
	for _, key := range [][]byte{
		last, meta.Get(schema.FinishedCompactKeyName), meta.Get(schema.ScheduledCompactKeyName),
	} {
		if len(key) == 0 {
			continue
		}
		main, err := mainRevision(key)
		if err != nil {
			return 0, err
		}
		revision = max(revision, main)
	}
	return revision, nil
}

// mainRevision reads a revision as etcd writes it, which panics when it is none.
func mainRevision(key []byte) (revision int64, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%q is no revision: %v", key, cause)
		}
	}()
	return mvcc.BytesToRev(key).Main, nil
}
