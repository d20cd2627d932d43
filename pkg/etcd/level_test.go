package etcd

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

func TestLevelsAreToldWhenTheyChange(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	s := New(Options{}, zap.New(core))
	for _, used := range []int64{10, 69, 70, 75, 66, 71, 85, 99, 81, 79, 64, 10} {
		s.tellLevel(status.Quota, used, 100)
	}
	var got []string
	for _, entry := range logs.All() {
		got = append(got, entry.Level.String()+" "+strings.Split(entry.Message, ";")[0])
	}
	want := []string{
		"warn THE quota FILLS UP", "error THE quota IS NEARLY FULL", "warn THE quota FILLS UP",
		"info the quota has room again",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFillLevelWithoutSize(t *testing.T) {
	if got := fillLevel(0, 10, 0); got != 0 {
		t.Errorf("got %d", got)
	}
}

func TestSnapshotsThatMayBeDeletedDoNotCount(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"full-1-0.db", "full-2-0.db", "full-3-0.db"} {
		write(t, filepath.Join(dir, name), strings.Repeat("x", 100))
	}
	s := New(Options{BackupDir: dir}, zap.NewNop())
	s.measure = func(string) (volume, error) { return volume{device: 7}, nil }
	for device, want := range map[uint64]int64{7: 200, 8: 0} {
		if got, err := s.prunableBytes(volume{device: device}); got != want || err != nil {
			t.Errorf("got %d, %v of volume %d", got, err, device)
		}
	}
}
