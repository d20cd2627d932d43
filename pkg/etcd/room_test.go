package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMakeRoom(t *testing.T) {
	const old, older, newest, bad = "full-2-0.db", "full-1-0.db", "full-3-0.db", "full-4-0.db"
	for _, test := range []struct {
		name   string
		size   int64
		needed int64
		gone   []string
		short  bool
	}{
		{"there is room", 16_000, 1000, nil, false},
		{"a bad snapshot goes first", 8000, 1500, []string{bad}, false},
		{"then the oldest", 8000, 2500, []string{bad, older}, false},
		{"then the next", 8000, 3500, []string{bad, older, old}, false},
		{"then what was kept aside", 8000, 4500, []string{bad, older, old, "damaged-1"}, false},
		{"the newest good snapshot stays", 8000, 6500, []string{bad, older, old, "damaged-1", "stale-1"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{old, older, newest} {
				write(t, filepath.Join(dir, "backup", name), withChecksum(strings.Repeat("x", 968)))
			}
			write(t, filepath.Join(dir, "backup", bad), strings.Repeat("x", 1000))
			write(t, filepath.Join(dir, "data", "damaged-1"), strings.Repeat("x", 1000))
			write(t, filepath.Join(dir, "data", "stale-1"), strings.Repeat("x", 1000))
			s := New(Options{DataDir: filepath.Join(dir, "data"), BackupDir: filepath.Join(dir, "backup")}, zap.NewNop())
			s.measure = volumeOf(test.size, dir)
			before := names(t, dir)

			err := s.makeRoom(s.options.DataDir, test.needed, volume.reserve)
			var short *noRoomError
			if errors.As(err, &short) != test.short || (err != nil) != test.short {
				t.Errorf("got %v", err)
			}
			after := names(t, dir)
			gone := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
			slices.Sort(test.gone)
			if !slices.Equal(gone, test.gone) {
				t.Errorf("deleted %v, want %v", gone, test.gone)
			}
		})
	}
}

func TestMakeRoomDeletesNothingOnOtherVolumes(t *testing.T) {
	s := New(Options{DataDir: t.TempDir(), BackupDir: t.TempDir()}, zap.NewNop())
	for _, name := range []string{"full-1-0.db", "full-2-0.db"} {
		write(t, filepath.Join(s.options.BackupDir, name), withChecksum("x"))
	}
	s.measure = func(path string) (volume, error) {
		if strings.HasPrefix(path, s.options.DataDir) {
			return volume{device: 1, size: 8000, free: 0}, nil
		}
		return volume{device: 2, size: 8000, free: 8000}, nil
	}
	var short *noRoomError
	if err := s.makeRoom(s.options.DataDir, 1, volume.reserve); !errors.As(err, &short) {
		t.Errorf("got %v", err)
	}
	if kept := names(t, s.options.BackupDir); len(kept) != 2 {
		t.Errorf("of snapshots on another volume, only %v are left", kept)
	}
}

func TestStartOnAFullVolumeDeletesWhatItMay(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{DataDir: filepath.Join(dir, "data"), BackupDir: filepath.Join(dir, "backup")}, zap.NewNop())
	s.measure = volumeOf(1, dir)
	for _, path := range []string{
		"data/clean-shutdown", "data/damaged-1/snap/db", "data/restoring/x", "data/member/snap/db",
		"data/member/snap/db.tmp.123", "data/member/wal/0.wal", "data/member/wal/1.tmp", "backup/full-3-0.db.part",
		"data/fetched.db.part", "data/verifying/db", "data/snapshotting/full-3-0.db",
	} {
		write(t, filepath.Join(dir, path), "x")
	}
	for _, name := range []string{"full-1-0.db", "full-2-0.db"} {
		write(t, filepath.Join(dir, "backup", name), withChecksum("x"))
	}
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"0.wal", "backup", "data", "db", "full-2-0.db", "member", "snap", "wal"}
	if left := names(t, dir); !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

func TestRestoreOnAFullVolumeGivesUpTheDataAside(t *testing.T) {
	p := startProcess(t, testOptions(t))
	written := writeUntil(t, p, 20)
	p.waitForSnapshot(t, p.revision(t))
	p.crash(t)
	options := p.options
	truncate(t, dbPath(options.DataDir), 5000)

	s := New(options, zap.NewNop())
	s.measure = func(string) (volume, error) { return volume{size: 1 << 30}, nil }
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := s.dataAside(); len(left) != 0 || err != nil {
		t.Errorf("%v was kept, %v", left, err)
	}
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
}

func TestSnapshotIsSkippedWithoutRoom(t *testing.T) {
	s, logs := startSteward(t, testOptions(t))
	free := int64(0)
	s.measure = func(string) (volume, error) { return volume{size: 1 << 30, free: free}, nil }
	for range 2 {
		if err := s.snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, s.options.BackupDir); len(left) != 0 {
		t.Errorf("without room, %v was written", left)
	}
	if said := logs.FilterMessageSnippet("THERE IS NO ROOM").Len(); said != 1 {
		t.Errorf("it was said %d times", said)
	}
	if told := s.status().Skipped; len(told) != 1 || told[0].What != careSnapshot || told[0].Since.IsZero() ||
		!strings.Contains(told[0].Message, "lacks room") {
		t.Errorf("told is %+v", told)
	}
	free = 1 << 30
	if err := s.snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := names(t, s.options.BackupDir); len(left) != 1 {
		t.Errorf("with room, there is %v", left)
	}
	if told := s.status().Skipped; len(told) != 0 {
		t.Errorf("told is %+v", told)
	}
}

func TestDefragmentationIsSkippedWithoutRoom(t *testing.T) {
	s, logs := startSteward(t, testOptions(t))
	s.measure = func(string) (volume, error) { return volume{size: 1 << 30, free: 128 << 20}, nil }
	if err := s.defragmentNow(volume.reserve); err != nil || logs.FilterMessage("defragmented").Len() != 0 {
		t.Errorf("it was defragmented into the reserve, %v", err)
	}
	if err := s.defragmentNow(volume.leastReserve); err != nil || logs.FilterMessage("defragmented").Len() != 1 {
		t.Errorf("it was not defragmented although there is room, %v", err)
	}
}

func TestSnapshotStopsWhenRoomEnds(t *testing.T) {
	full := errors.New("full")
	written := 0
	w := &checkedWriter{Writer: writerFunc(func(p []byte) { written += len(p) }), check: func() error {
		if written > 0 {
			return full
		}
		return nil
	}}
	block := make([]byte, checkEveryBytes)
	if _, err := w.Write(block); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(block); !errors.Is(err, full) || written != len(block) {
		t.Errorf("got %v after %d bytes", err, written)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestReserve(t *testing.T) {
	for _, test := range []struct{ size, reserve, least int64 }{
		{1 << 30, 128 << 20, 32 << 20}, {2 << 30, 256 << 20, 64 << 20}, {100 << 30, 256 << 20, 64 << 20},
	} {
		v := volume{size: test.size}
		if v.reserve() != test.reserve || v.leastReserve() != test.least {
			t.Errorf("of %d, %d and %d are kept free", test.size, v.reserve(), v.leastReserve())
		}
	}
}

func TestMeasure(t *testing.T) {
	v, err := measure(t.TempDir())
	if err != nil || v.size <= 0 || v.free < 0 || v.free > v.size {
		t.Errorf("got %+v, %v", v, err)
	}
	if _, err := measure(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a path that is missing was measured")
	}
}

// startSteward runs an etcd in this process, without what is periodic.
func startSteward(t *testing.T, options Options) (*Steward, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	s := New(options, zap.New(core))
	if err := errors.Join(s.prepare(t.Context()), s.start(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s, logs
}

// volumeOf measures a volume of some size that holds the files below a directory.
func volumeOf(size int64, dir string) measureFn {
	return func(string) (volume, error) {
		v := volume{size: size, free: size}
		err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return fmt.Errorf("a file that is measured: %w", err)
			}
			v.free -= info.Size()
			return nil
		})
		return v, err
	}
}

// names returns the names of what is below a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if path != dir {
			all = append(all, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
