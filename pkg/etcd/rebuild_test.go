package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

func TestDamagedLogIsRebuiltFromTheDatabase(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dataDir string)
		backup bool
	}{
		{"an overwritten record", damageLog, true},
		{"an overwritten record, without a backup", damageLog, false},
		{"a lost log", func(t *testing.T, dir string) { removeAll(t, walDir(dir)) }, true},
		{"a log that ends early", func(t *testing.T, dir string) {
			overwriteWith(t, firstWAL(t, dir), 20_000, make([]byte, 200_000))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			options := testOptions(t)
			if test.backup {
				p := startProcess(t, options)
				writeUntil(t, p, 20)
				p.waitForSnapshot(t, p.revision(t))
				p.stop(t)
			}
			options.SnapshotPeriod = time.Hour
			p := startProcess(t, options)
			written := writeUntil(t, p, 80)
			seen := p.revision(t)
			p.crash(t)
			test.damage(t, options.DataDir)

			p = startProcess(t, options)
			defer p.kill(t)
			checkKeys(t, p, written)
			checkCompacted(t, p, seen)
			got := checkRecovery(t, p, status.LogDamaged, status.Database, "in the moment before etcd ended")
			if got.Restored.Revision != seen || got.Revision != seen {
				t.Errorf("told is %+v, restored %+v, want revision %d", got, got.Restored, seen)
			}
			if aside, _ := filepath.Glob(filepath.Join(options.DataDir, "damaged-*", "snap", "db")); len(aside) != 1 {
				t.Errorf("the damaged data was not kept: %v", aside)
			}
			if log := p.log(); !strings.Contains(log, "REBUILT") {
				t.Errorf("the log does not tell what happened:\n%s", log)
			}
		})
	}
}

func TestDamagedLogBesideAnOldDatabaseIsRestored(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	p.stop(t)
	rolledBack := t.TempDir()
	if err := os.CopyFS(rolledBack, os.DirFS(options.DataDir)); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, options)
	written := writeUntil(t, p, 30)
	p.waitForSnapshot(t, p.revision(t))
	p.stop(t)

	options.DataDir = rolledBack
	removeAll(t, filepath.Join(rolledBack, cleanMarker))
	damageLog(t, rolledBack)
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.LogDamaged, status.BackupDirectory, "at most what was written after revision")
}

func TestInterruptedRebuildIsFinished(t *testing.T) {
	for _, name := range []string{"before the damaged data is set aside", "after"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, rebuiltData, "snap", "db"), "whole")
			if name != "after" {
				write(t, filepath.Join(dir, memberDir, "snap", "db"), "damaged")
			}
			s := New(Options{DataDir: dir}, zap.NewNop())
			for range 2 {
				if err := s.finishRebuild(); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(dbPath(dir)); string(got) != "whole" {
				t.Errorf("the data is %q, %v", got, err)
			}
		})
	}
}

func TestNewestIntactSnapshot(t *testing.T) {
	dir := t.TempDir()
	intact := Snapshot{Path: filepath.Join(dir, "intact"), Revision: 1}
	short := Snapshot{Path: filepath.Join(dir, "short"), Revision: 2}
	wrong := Snapshot{Path: filepath.Join(dir, "wrong"), Revision: 3}
	write(t, intact.Path, withChecksum("some data"))
	write(t, short.Path, "x")
	write(t, wrong.Path, "D"+withChecksum("data")[1:])
	if got, found := newestIntact([]Snapshot{wrong, short, intact}); !found || got != intact {
		t.Errorf("got %v, %t", got, found)
	}
	if got, found := newestIntact([]Snapshot{wrong}); found {
		t.Errorf("got %v", got)
	}
}

func damageLog(t *testing.T, dataDir string) {
	t.Helper()
	overwrite(t, firstWAL(t, dataDir), 300, 2000)
}

// It is found in the goroutine that waits for the outcome: a panic in another one would end this test, or be overtaken.
func TestDamagedPagesAreFound(t *testing.T) {
	s := New(Options{Name: "etcd", DataDir: t.TempDir()}, zap.NewNop())
	if err := s.startEmpty(0); err != nil {
		t.Fatal(err)
	}
	overwrite(t, dbPath(s.options.DataDir), 2*int64(os.Getpagesize()), 64<<10)
	if _, err := Inspect(s.options.DataDir); err == nil || !strings.Contains(err.Error(), "reading the data panics") {
		t.Errorf("got %v", err)
	}
}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	if _, err := Inspect(dir); err == nil {
		t.Error("there is no database, but it was inspected")
	}
	write(t, dbPath(dir), "")
	if err := makeEmptyDatabase(dbPath(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(dir); err == nil || !strings.Contains(err.Error(), "nothing was ever written") {
		t.Errorf("got %v of an empty database", err)
	}
	s := New(Options{Name: "etcd", DataDir: t.TempDir()}, zap.NewNop())
	before := time.Now().UnixMicro()
	if err := s.startEmpty(0); err != nil {
		t.Fatal(err)
	}
	if revision, err := Inspect(s.options.DataDir); err != nil || revision < before {
		t.Errorf("got revision %d, %v of one that is as new as the clock", revision, err)
	}
}
