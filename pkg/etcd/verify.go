package etcd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// Paths below the data directory.
const (
	memberDir = "member"
	// cleanMarker exists while no etcd uses the data directory and the last one ended in order.
	cleanMarker = "clean-shutdown"
)

func walDir(dataDir string) string { return filepath.Join(dataDir, memberDir, "wal") }
func dbPath(dataDir string) string { return filepath.Join(dataDir, memberDir, "snap", "db") }

// hasData reports whether an etcd has ever written to the data directory.
func hasData(dataDir string) bool {
	_, err := os.Stat(filepath.Join(dataDir, memberDir))
	return err == nil
}

// Verify reads the whole database and the write-ahead log of a stopped etcd and returns what is wrong with them. A
// torn last record, as a power cut leaves it, is not wrong: etcd drops what it never acknowledged.
func Verify(dataDir string) (err error) {
	defer recoverFault(&err)()
	logged, err := verifyWAL(walDir(dataDir))
	if err != nil {
		return fmt.Errorf("write-ahead log: %w", err)
	}
	state, err := verifyDatabase(dbPath(dataDir))
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	// An entry is applied to the database only after it is durable in the log. A log that ends before is not torn by
	// a crash but damaged, and etcd would cut it there.
	if logged < state.applied {
		return fmt.Errorf("write-ahead log: it ends at entry %d, but entry %d is applied to the database", logged,
			state.applied)
	}
	return nil
}

// Inspect reads the whole database of a stopped etcd, without its log, and returns its last revision.
func Inspect(dataDir string) (revision int64, err error) {
	defer recoverFault(&err)()
	state, err := verifyDatabase(dbPath(dataDir))
	if err != nil {
		return 0, fmt.Errorf("database: %w", err)
	}
	if state.revision == 0 {
		return 0, errors.New("database: nothing was ever written to it")
	}
	return state.revision, nil
}

// recoverFault makes an error of what reading damaged data does; what it returns is to be deferred. The memory map
// of a damaged database may fault; that must be an answer, too. Faults in goroutines of bbolt still end the process,
// which is why a steward verifies in a process of its own.
func recoverFault(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if cause := recover(); cause != nil {
			*err = fmt.Errorf("reading the data panics: %v", cause)
		}
	}
}

// verifyWAL reads the log and returns the index of its last entry.
func verifyWAL(dir string) (uint64, error) {
	if !wal.Exist(dir) {
		return 0, errors.New("it has no files")
	}
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return 0, err
	}
	if len(snapshots) == 0 {
		return 0, errors.New("it holds no snapshot record")
	}
	newest := snapshots[len(snapshots)-1]
	log, err := wal.OpenForRead(zap.NewNop(), dir, newest)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	_, _, entries, err := log.ReadAll()
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 {
		return newest.Index, nil
	}
	return entries[len(entries)-1].Index, nil
}

// openTimeout is how long to wait for whoever has a database open.
const openTimeout = 5 * time.Second

// databaseState is how far a database is.
type databaseState struct {
	// applied is the index of the last entry of the log that is in it.
	applied uint64
	// revision is the last one of its keys.
	revision int64
}

// verifyDatabase checks every page of the database.
func verifyDatabase(path string) (state databaseState, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return state, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		if err := readAll(tx); err != nil {
			return err
		}
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		if first != nil {
			return first
		}
		state = readState(tx)
		return nil
	})
	return state, err
}

// readAll reads all keys, such that damage which bbolt panics of is found in this goroutine. That of bolt.Tx.Check
// closes its channel, as if there were no errors, before such a panic ends the process: who waits for that may be
// faster.
func readAll(tx *bolt.Tx) error {
	return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		if !bytes.Equal(name, schema.Key.Name()) {
			return bucket.ForEach(func(_, _ []byte) error { return nil })
		}
		return bucket.ForEach(checkRevision)
	})
}

// checkRevision makes sure that a revision can be read. An etcd that finds one which cannot ends, at each start.
func checkRevision(key, value []byte) error {
	var kv mvccpb.KeyValue
	if len(key) < 17 {
		return fmt.Errorf("%x is no revision", key)
	}
	if err := kv.Unmarshal(value); err != nil {
		return fmt.Errorf("revision %d cannot be read: %w", binary.BigEndian.Uint64(key), err)
	}
	return nil
}

// readState returns nothing of a database that an etcd has only begun.
func readState(tx *bolt.Tx) (state databaseState) {
	keys, meta := tx.Bucket(schema.Key.Name()), tx.Bucket(schema.Meta.Name())
	if keys == nil || meta == nil {
		return state
	}
	if value := meta.Get(schema.MetaConsistentIndexKeyName); len(value) == 8 {
		state.applied = binary.BigEndian.Uint64(value)
	}
	// Compaction takes away even the last revision, when that deleted a key.
	last, _ := keys.Cursor().Last()
	for _, at := range [][]byte{
		last, meta.Get(schema.ScheduledCompactKeyName), meta.Get(schema.FinishedCompactKeyName),
	} {
		if len(at) >= 8 {
			state.revision = max(state.revision, int64(binary.BigEndian.Uint64(at)))
		}
	}
	return state
}

// The arguments with which the executable verifies the data directory named by --data-dir and exits.
const (
	// VerifyCommand verifies all.
	VerifyCommand = "verify"
	// InspectCommand verifies the database only, and prints its revision.
	InspectCommand = "inspect"
)

// verifyInProcess runs Verify in a child process, which a damaged database may crash.
func verifyInProcess(ctx context.Context, dataDir string) error {
	_, err := runOnData(ctx, VerifyCommand, dataDir)
	return err
}

// inspectInProcess runs Inspect in a child process.
func inspectInProcess(ctx context.Context, dataDir string) (int64, error) {
	output, err := runOnData(ctx, InspectCommand, dataDir)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(output), 10, 64)
}

// runOnData runs a command of this executable and returns what it prints, or as a damageError why it failed.
func runOnData(ctx context.Context, command, dataDir string) (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	output, err := exec.CommandContext(ctx, executable, command, "--data-dir", dataDir).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return "", &damageError{fmt.Errorf("%s (%w)", lastLine(string(exit.Stderr)), err)}
	}
	return string(output), err
}

// damageError says that the data cannot be used, as opposed to failing to find out.
type damageError struct{ error }

func (e *damageError) Unwrap() error { return e.error }

// lastLine returns the first line of a crash or otherwise the last line of output, which tells the reason.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") ||
			strings.HasPrefix(line, "unexpected fault") {
			return line
		}
	}
	return lines[len(lines)-1]
}
