package etcd

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

// stores are the kinds of stores, each empty.
func stores(t *testing.T) map[string]func(*testing.T) StoreOptions {
	t.Helper()
	return map[string]func(*testing.T) StoreOptions{
		"local": localStore,
		"S3":    func(t *testing.T) StoreOptions { options, _ := s3Store(t); return options },
	}
}

func localStore(t *testing.T) StoreOptions {
	t.Helper()
	return StoreOptions{
		Provider: LocalStore, Bucket: t.TempDir(), Prefix: "shoot/main", DeltaSnapshotPeriod: 50 * time.Millisecond,
	}
}

func s3Store(t *testing.T) (StoreOptions, *storetest.S3) {
	t.Helper()
	server := storetest.NewS3(t)
	dir := t.TempDir()
	for key, value := range map[string]string{
		"accessKeyID": "id", "secretAccessKey": "secret", "endpoint": server.URL, "region": "here",
		"s3ForcePathStyle": "true", "trustedCaCert": string(server.CA),
		"encryptionKey": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n",
	} {
		write(t, filepath.Join(dir, key), value)
	}
	return StoreOptions{
		Provider: S3Store, Bucket: server.Bucket, Prefix: "shoot/main", CredentialsDir: dir,
		DeltaSnapshotPeriod: 50 * time.Millisecond,
	}, server
}

// storedOptions are those of a steward whose only backups are in a store.
func storedOptions(t *testing.T, s StoreOptions) Options {
	t.Helper()
	options := testOptions(t)
	options.BackupDir, options.SnapshotPeriod, options.Store = "", time.Hour, s
	return options
}

// chains are those in the store of a steward.
func chains(t *testing.T, options Options) []backup.Chain {
	t.Helper()
	a := newStoreAccess(options.Store)
	listed, err := a.List(t.Context(), "")
	if err := errors.Join(err, a.close()); err != nil {
		t.Fatal(err)
	}
	return backup.Chains(backup.Objects(listed))
}

// waitForStore waits until the store has a revision, and returns the chain that has it.
func (p *process) waitForStore(t *testing.T, revision int64) backup.Chain {
	t.Helper()
	var newest backup.Chain
	p.waitUntil(t, fmt.Sprintf("revision %d in the store", revision), func() error {
		all := chains(t, p.options)
		if len(all) == 0 || all[0].Last() < revision {
			return fmt.Errorf("have %v", all)
		}
		newest = all[0]
		return nil
	})
	return newest
}

func TestLostVolumeIsRestoredFromTheStore(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := storedOptions(t, open(t))
			p := startProcess(t, options)
			written := writeUntil(t, p, 30)
			seen := p.revision(t)
			if chain := p.waitForStore(t, seen); len(chain.Deltas) == 0 {
				t.Errorf("no deltas lead to revision %d", chain.Last())
			}
			p.kill(t)
			options.DataDir = t.TempDir()

			p = startProcess(t, options)
			checkKeys(t, p, written)
			checkCompacted(t, p, seen)
			got := checkRecovery(t, p, status.DataLost, status.BackupStore, "at most what was written after revision")
			if got.Restored.Revision != seen || !strings.Contains(got.Restored.Backup, "delta-") {
				t.Errorf("restored is %+v, want revision %d", got.Restored, seen)
			}
			// Backups go on after it, and lead to what is written then.
			p.put(t, "key/later", "x")
			p.waitForStore(t, p.revision(t))
			p.kill(t)
			if log := p.log(); !strings.Contains(log, "THE DATA IS GONE") || !strings.Contains(log, "RESTORED") {
				t.Errorf("the log does not tell what happened:\n%s", log)
			}
			options.DataDir = t.TempDir()
			p = startProcess(t, options)
			defer p.kill(t)
			checkKeys(t, p, written+1)
			if left, _ := filepath.Glob(filepath.Join(options.DataDir, "fetched*")); len(left) > 0 {
				t.Errorf("left is %v", left)
			}
		})
	}
}

func TestAnOrderlyStopLosesNothing(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := storedOptions(t, open(t))
			// None but the last delta is cut.
			options.Store.DeltaSnapshotPeriod = time.Hour
			p := startProcess(t, options)
			p.waitForStore(t, p.revision(t))
			written := writeUntil(t, p, 30)
			p.stop(t)
			options.DataDir = t.TempDir()

			p = startProcess(t, options)
			defer p.kill(t)
			checkKeys(t, p, written)
		})
	}
}

// Deltas are in the store that no snapshot in the backup directory has.
func TestWhatHasMostIsRestored(t *testing.T) {
	options := storedOptions(t, localStore(t))
	options.BackupDir = t.TempDir()
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.waitForStore(t, p.revision(t))
	if local, err := ListSnapshots(options.BackupDir); err != nil || len(local) == 0 ||
		local[0].Revision >= p.revision(t) {
		t.Fatalf("in the backup directory are %v, %v", local, err)
	}
	p.kill(t)
	removeAll(t, filepath.Join(options.DataDir, memberDir))
	p = startProcess(t, options)
	checkKeys(t, p, written)
	p.kill(t)

	// Now the backup directory has most: the store does not get what is written.
	options.Store.DeltaSnapshotPeriod, options.SnapshotPeriod = time.Hour, 50*time.Millisecond
	hidden := options.Store.Bucket + ".hidden"
	rename(t, options.Store.Bucket, hidden)
	p = startProcess(t, options)
	p.put(t, "key/more", "x")
	p.waitForSnapshot(t, p.revision(t))
	p.kill(t)
	removeAll(t, filepath.Join(options.DataDir, memberDir))
	rename(t, hidden, options.Store.Bucket)
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written+1)
}

func TestDamagedDataIsReplacedFromTheStore(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	written := writeUntil(t, p, 30)
	p.waitForStore(t, p.revision(t))
	p.kill(t)
	truncate(t, dbPath(options.DataDir), 0)

	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.DataDamaged, status.BackupStore, "")
	if aside, _ := filepath.Glob(filepath.Join(options.DataDir, "damaged-*")); len(aside) != 1 {
		t.Errorf("the damaged data was not kept: %v", aside)
	}
}

// A database is rescued without its log, if the store does not have more.
func TestDamagedLogBesideAStore(t *testing.T) {
	for name, rolledBack := range map[string]bool{"the database has most": false, "the store has most": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := storedOptions(t, localStore(t))
			p := startProcess(t, options)
			p.stop(t)
			old := t.TempDir()
			if err := os.CopyFS(old, os.DirFS(options.DataDir)); err != nil {
				t.Fatal(err)
			}
			p = startProcess(t, options)
			written := writeUntil(t, p, 30)
			p.crash(t)
			if rolledBack {
				options.DataDir = old
				removeAll(t, filepath.Join(old, cleanMarker))
			}
			damageLog(t, options.DataDir)

			p = startProcess(t, options)
			defer p.kill(t)
			checkKeys(t, p, written)
			from := status.Database
			if rolledBack {
				from = status.BackupStore
			}
			checkRecovery(t, p, status.LogDamaged, from, "at most")
			if log := p.log(); strings.Contains(log, "REBUILT") == rolledBack {
				t.Errorf("it was not decided by what has most:\n%s", log)
			}
		})
	}
}

func TestStaleDataIsReplacedFromTheStore(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	p.stop(t)
	rolledBack := t.TempDir()
	if err := os.CopyFS(rolledBack, os.DirFS(options.DataDir)); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, options)
	written := writeUntil(t, p, 30)
	p.stop(t)

	options.DataDir = rolledBack
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.DataStale, status.BackupStore, "at most what was written after revision")
	if aside, _ := filepath.Glob(filepath.Join(rolledBack, "stale-*")); len(aside) != 1 {
		t.Errorf("the stale data was not kept: %v", aside)
	}
}

func TestDamagedDeltaCostsWhatFollows(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	before := p.waitForStore(t, p.revision(t))
	p.put(t, "key/later", "x")
	chain := p.waitForStore(t, p.revision(t))
	p.kill(t)
	newest := chain.Deltas[len(chain.Deltas)-1]
	overwrite(t, filepath.Join(options.Store.Bucket, options.Store.Prefix, newest.String()), newest.Size/2, 10)
	options.DataDir = t.TempDir()

	p = startProcess(t, options)
	checkKeys(t, p, written)
	checkCompacted(t, p, before.Last())
	checkRecovery(t, p, status.DataLost, status.BackupStore,
		fmt.Sprintf("revisions %d to %d, and at most", before.Last()+1, newest.Last))
	p.kill(t)
	if log := p.log(); !strings.Contains(log, "DAMAGED OR MISSING") || !strings.Contains(log, newest.String()) {
		t.Errorf("the log does not tell of the damage:\n%s", log)
	}
}

func TestNothingIsStartedBesideBackupsThatCannotBeRestored(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	writeUntil(t, p, 5)
	seen := p.waitForStore(t, p.revision(t)).Last()
	p.kill(t)
	for _, chain := range chains(t, options) {
		truncate(t, filepath.Join(options.Store.Bucket, options.Store.Prefix, chain.Full.String()), 100)
	}
	options.DataDir = t.TempDir()
	err := newTestSteward(options, zap.NewNop()).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "can be restored") {
		t.Fatalf("got %v, want a refusal", err)
	}
	options.OnDataLoss = StartEmpty
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, 0)
	checkCompacted(t, p, seen)
}

func TestDataThatIsThereServesWithoutTheStore(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.stop(t)
	hidden := options.Store.Bucket + ".hidden"
	rename(t, options.Store.Bucket, hidden)

	p = startProcess(t, options)
	checkKeys(t, p, written)
	p.put(t, "key/later", "x")
	rename(t, hidden, options.Store.Bucket)
	p.waitForStore(t, p.revision(t))
	p.kill(t)
	options.DataDir = t.TempDir()
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written+1)
}

// One that takes requests and never answers holds up neither the start nor the stop.
func TestDataThatIsThereServesBesideASilentStore(t *testing.T) {
	s, _ := s3Store(t)
	options := storedOptions(t, s)
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.stop(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	write(t, filepath.Join(s.CredentialsDir, "endpoint"), "https://"+silent.Addr().String())

	p = startProcess(t, options)
	checkKeys(t, p, written)
	p.stop(t)
}

func TestLostDataWaitsForTheStore(t *testing.T) {
	s, server := s3Store(t)
	options := storedOptions(t, s)
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.stop(t)
	options.DataDir = t.TempDir()
	server.Refuse(func(*http.Request) *storetest.S3Error {
		return &storetest.S3Error{Status: http.StatusForbidden, Code: "AccessDenied"}
	})

	p = launch(t, options)
	p.waitUntil(t, "a steward that waits", func() error {
		if err := p.ready(); err == nil || !strings.Contains(err.Error(), string(status.Awaiting)) {
			return fmt.Errorf("it is ready or says: %w", err)
		}
		return nil
	})
	if hasData(options.DataDir) {
		t.Error("data was made without knowing of backups")
	}
	told := p.told(t)
	if refused := told.Store.Failure(status.Start); told.Phase != status.Awaiting || refused == nil ||
		refused.Reason != status.Permission || len(told.Recoveries) > 0 {
		t.Errorf("told is %+v, of the store %+v", told, told.Store)
	}
	server.Refuse(nil)
	p.connect(t)
	defer p.kill(t)
	checkKeys(t, p, written)
}

// A key that is missing can be brought back: nothing older is restored for want of it.
func TestLostDataWaitsForTheKey(t *testing.T) {
	s, _ := s3Store(t)
	options := storedOptions(t, s)
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.stop(t)
	path := filepath.Join(s.CredentialsDir, encryptionKey)
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	removeAll(t, path)
	options.DataDir = t.TempDir()

	p = launch(t, options)
	p.waitForMetric(t, failure(status.Start, "key"))
	write(t, path, string(key))
	p.connect(t)
	defer p.kill(t)
	checkKeys(t, p, written)
}

func TestAStoreWithoutBackupsIsAFirstStart(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, writeUntil(t, p, 5))
}

// The data that a start without the store served is older than what is there: continuing the log would make backups of
// a history that never was.
func TestBackupsThatAreAheadAreLeftAlone(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	p.stop(t)
	rolledBack := t.TempDir()
	if err := os.CopyFS(rolledBack, os.DirFS(options.DataDir)); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.stop(t)
	before := storetest.Names(t, newStoreAccess(options.Store), "")
	hidden := options.Store.Bucket + ".hidden"
	rename(t, options.Store.Bucket, hidden)

	options.DataDir = rolledBack
	p = startProcess(t, options)
	for i := range 2 * written {
		p.put(t, fmt.Sprintf("other/%d", i), "x")
	}
	rename(t, hidden, options.Store.Bucket)
	p.waitForMetric(t, failure(status.Delta, "behind"))
	p.stop(t)
	// After a restart the revision alone does not tell it any more.
	p = startProcess(t, options)
	p.waitForMetric(t, failure(status.Delta, "behind"))
	p.stop(t)
	if after := storetest.Names(t, newStoreAccess(options.Store), ""); len(after) != len(before) {
		t.Errorf("there were %q, there are %q", before, after)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// An etcd that has been there before does not begin empty: not where its backups are not, and then not before they are.
func TestExpectedBackups(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	written := writeUntil(t, p, 10)
	seen := p.revision(t)
	p.waitForStore(t, seen)
	p.kill(t)

	options.Store.Claim = 1
	elsewhere := options
	elsewhere.DataDir, elsewhere.Store.Bucket = t.TempDir(), t.TempDir()
	err := New(elsewhere, zap.NewNop()).prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "an empty etcd would be another cluster") {
		t.Errorf("without backups it ends with %v", err)
	}
	if hasData(elsewhere.DataDir) {
		t.Error("without backups it made data")
	}
	options.DataDir = t.TempDir()
	p = startProcess(t, options)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.DataLost, status.BackupStore, "at most what was written after revision")
}

// Of two etcds that have the same backups, the one that took them over goes on. The other one does not start any more,
// however whole its data is, and puts nothing while it runs.
func TestBackupsAreTakenOver(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	written := writeUntil(t, p, 10)
	p.waitForStore(t, p.revision(t))

	claiming := func(number int64) Options {
		options := storedOptions(t, options.Store)
		options.Store.Claim = number
		return options
	}
	elsewhere := claiming(7)
	other := startProcess(t, elsewhere)
	checkKeys(t, other, written)
	other.put(t, "key/elsewhere", "x")
	other.waitForStore(t, other.revision(t))
	p.stop(t)
	before := chains(t, elsewhere)[0].Last()
	if err := newTestSteward(options, zap.NewNop()).Run(t.Context()); !errors.Is(err, errTakenOver) {
		t.Errorf("the one before ends with %v", err)
	}
	if after := chains(t, elsewhere)[0].Last(); after != before {
		t.Errorf("the newest revision in the store was %d, and is %d", before, after)
	}
	// Whoever takes them over begins with them, once more.
	other.kill(t)
	checkKeys(t, startProcess(t, claiming(8)), written+1)
}
