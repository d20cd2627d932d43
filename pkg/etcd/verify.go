package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
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
	// The memory map of a damaged database may fault; that must be an answer, too. Faults in goroutines of bbolt
	// still end the process, which is why a steward verifies in a process of its own.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reading the data panics: %v", cause)
		}
	}()
	logged, err := verifyWAL(walDir(dataDir))
	if err != nil {
		return fmt.Errorf("write-ahead log: %w", err)
	}
	applied, err := verifyDatabase(dbPath(dataDir))
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	// An entry is applied to the database only after it is durable in the log. A log that ends before is not torn by
	// a crash but damaged, and etcd would cut it there.
	if logged < applied {
		return fmt.Errorf("write-ahead log: it ends at entry %d, but entry %d is applied to the database", logged,
			applied)
	}
	return nil
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

// verifyDatabase checks every page of the database and returns the index of the last entry applied to it.
func verifyDatabase(path string) (applied uint64, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: 5 * time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		if meta := tx.Bucket(schema.Meta.Name()); first == nil && meta != nil {
			if value := meta.Get(schema.MetaConsistentIndexKeyName); len(value) == 8 {
				applied = binary.BigEndian.Uint64(value)
			}
		}
		return first
	})
	return applied, err
}

// VerifyCommand is the argument with which the executable verifies the data directory named by --data-dir and exits.
const VerifyCommand = "verify"

// verifyInProcess runs Verify in a child process, which a damaged database may crash.
func verifyInProcess(ctx context.Context, dataDir string) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, executable, VerifyCommand, "--data-dir", dataDir).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return &damageError{fmt.Errorf("%s (%w)", lastLine(string(output)), err)}
	}
	return err
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
