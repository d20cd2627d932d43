package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

func TestBackupsAreVerifiedOnSchedule(t *testing.T) {
	options := storedOptions(t, localStore(t))
	options.Store.VerifyPeriod = 100 * time.Millisecond
	p := startProcess(t, options)
	defer p.kill(t)
	writeUntil(t, p, 20)
	p.waitForStore(t, p.revision(t))
	p.waitForMetric(t, `etcd_steward_store_last_success_timestamp_seconds{operation="verification"}`)
	p.waitForMetric(t, "etcd_steward_store_verification_duration_seconds")
	if told := p.told(t).Store; told.Verification.Succeeded.IsZero() || told.Verification.Seconds <= 0 ||
		told.Full.Revision == 0 || told.Full.Succeeded.IsZero() {
		t.Errorf("told is %+v", told)
	}
	p.waitUntil(t, "a scratch directory that is removed", func() error {
		if _, err := os.Stat(filepath.Join(options.DataDir, drillDir)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("it is there, or %w", err)
		}
		return nil
	})
}

// Backups that turn out damaged are replaced while etcd still has what was in them.
func TestDamageThatIsFoundIsMadeUpFor(t *testing.T) {
	options := storedOptions(t, localStore(t))
	options.Store.VerifyPeriod = 100 * time.Millisecond
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	chain := p.waitForStore(t, p.revision(t))
	truncate(t, filepath.Join(options.Store.Bucket, options.Store.Prefix, chain.Full.String()), 100)
	p.waitForMetric(t, failure(status.Verification, "damaged"))
	p.waitUntil(t, "a full snapshot that is whole", func() error {
		if all := chains(t, options); len(all) < 2 {
			return fmt.Errorf("there are %v", all)
		}
		return nil
	})
	p.kill(t)
	options.DataDir = t.TempDir()
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
}

func TestVerificationLeavesRoom(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	writeUntil(t, p, 20)
	p.waitForStore(t, p.revision(t))
	p.kill(t)
	for _, test := range []struct {
		name string
		// free are the bytes that are, each time they are asked for.
		free []int64
		want bool
	}{
		{"enough", []int64{1 << 30}, true},
		{"too little", []int64{128<<20 + 1000}, false},
		{"enough at first", []int64{1 << 30, 1 << 20}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBackups(options, zap.NewNop(), func(string) (volume, error) {
				free := test.free[0]
				if len(test.free) > 1 {
					test.free = test.free[1:]
				}
				return volume{size: 1 << 30, free: free}, nil
			})
			err := b.verify(t.Context(), 1<<20)
			var short *noRoomError
			if (err == nil) != test.want || errors.As(err, &short) == test.want {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(options.DataDir, drillDir, "*")); len(left) > 0 {
				t.Errorf("left is %v", left)
			}
			if _, damaged := b.giveUp(err); damaged {
				t.Error("a want of room is taken for damage")
			}
		})
	}
}

func TestNothingToVerify(t *testing.T) {
	b := newBackups(storedOptions(t, localStore(t)), zap.NewNop(), measure)
	if err := b.verify(t.Context(), 0); !errors.Is(err, errNoBackups) {
		t.Errorf("got %v", err)
	}
}

func TestRetentionInTheStore(t *testing.T) {
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	var objects []backup.Object
	for day := range 5 {
		objects = append(objects, backup.Object{Name: backup.Name{
			Kind: backup.Full, Last: int64(100 - day), Taken: now.Add(-time.Duration(day) * 24 * time.Hour),
			ID: backup.NewID(),
		}})
	}
	for _, test := range []struct {
		name  string
		count int
		age   time.Duration
		keeps int
	}{
		{"a number", 3, 0, 3},
		{"no more than there are", 10, 0, 5},
		{"an age", 10, 50 * time.Hour, 3},
		{"a number within an age", 2, 50 * time.Hour, 2},
		{"the newest whatever its age", 10, -time.Hour, 5},
		{"the newest of an age that none has", 10, time.Nanosecond, 1},
	} {
		options := Options{SnapshotRetention: test.count, Store: StoreOptions{SnapshotRetentionAge: test.age}}
		obsolete := retention(options, objects, now).Obsolete(objects, nil, now)
		if kept := len(objects) - len(obsolete); kept != test.keeps {
			t.Errorf("%s: %d are kept, want %d", test.name, kept, test.keeps)
		}
	}
}
