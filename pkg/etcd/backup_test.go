package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestListAndPruneSnapshots(t *testing.T) {
	dir := t.TempDir()
	taken := time.Unix(1_700_000_000, 0)
	for _, name := range []string{
		snapshotName(9, taken), snapshotName(100, taken), snapshotName(100, taken.Add(time.Hour)),
		snapshotName(1_000_000_100, taken),
		"notes.txt", "full-x-1.db", snapshotName(5, taken) + partialSuffix,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := PruneSnapshots(dir, 3); err != nil {
		t.Fatal(err)
	}
	list, err := ListSnapshots(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, snapshot := range list {
		got = append(got, filepath.Base(snapshot.Path))
	}
	want := []string{
		snapshotName(1_000_000_100, taken), snapshotName(100, taken.Add(time.Hour)), snapshotName(100, taken),
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("kept %v, want %v", got, want)
	}
	if partials, _ := filepath.Glob(filepath.Join(dir, "*"+partialSuffix)); len(partials) != 0 {
		t.Errorf("an interrupted snapshot is left: %v", partials)
	}
}

func TestListSnapshotsOfMissingDirectory(t *testing.T) {
	if list, err := ListSnapshots(filepath.Join(t.TempDir(), "missing")); err != nil || list != nil {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestValidateOptions(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"defaults", func(*Options) {}, ""},
		{"no name", func(o *Options) { o.Name = "" }, "--name"},
		{"no URL", func(o *Options) { o.ListenClientURL = "0.0.0.0:2379" }, "--listen-client-urls"},
		{"key without certificate", func(o *Options) { o.KeyFile = "k" }, "--cert-file and --key-file"},
		{"CA without certificate", func(o *Options) { o.TrustedCAFile = "c" }, "--trusted-ca-file"},
		{"unknown policy", func(o *Options) { o.OnDataLoss = "shrug" }, "--on-data-loss"},
		{"no quota", func(o *Options) { o.QuotaBackendBytes = 0 }, "--quota-backend-bytes"},
		{"no retention", func(o *Options) { o.BackupDir = "/b"; o.SnapshotRetention = 0 }, "--snapshot-retention"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := DefaultOptions()
			test.change(&options)
			err := options.Validate()
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWorthDefragmenting(t *testing.T) {
	for _, test := range []struct {
		size, inUse int64
		want        bool
	}{{50 << 20, 0, false}, {200 << 20, 150 << 20, false}, {200 << 20, 100 << 20, true}} {
		if got := worthDefragmenting(test.size, test.inUse); got != test.want {
			t.Errorf("size %d, in use %d: %t", test.size, test.inUse, got)
		}
	}
}

func TestUntilNextSnapshot(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_700_000_000, 0)
	s := New(Options{BackupDir: dir, SnapshotPeriod: time.Hour}, nil)
	if got := s.untilNextSnapshot(now); got != firstSnapshotDelay {
		t.Errorf("the first snapshot is due in %s", got)
	}
	path := filepath.Join(dir, snapshotName(1, now.Add(-20*time.Minute)))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.untilNextSnapshot(now); got != 40*time.Minute {
		t.Errorf("the next snapshot is due in %s", got)
	}
}
