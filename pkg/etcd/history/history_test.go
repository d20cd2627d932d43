package history_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

// startEtcd runs an etcd in process, on the data in a directory, until the test ends.
func startEtcd(t *testing.T, dir string) *clientv3.Client {
	t.Helper()
	config := embed.NewConfig()
	config.Name, config.Dir = "etcd", dir
	config.InitialCluster = "etcd=http://127.0.0.1:2380"
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenPeerUrls, config.ListenClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case <-t.Context().Done():
		t.Fatal("etcd does not start")
	}
	client := must(clientv3.New(clientv3.Config{
		Endpoints: []string{server.Clients[0].Addr().String()}, Logger: zap.NewNop(),
	}))(t)
	t.Cleanup(func() {
		_ = client.Close()
		server.Close()
	})
	return client
}

// snapshot has etcd write a snapshot to a file.
func snapshot(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	reader, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := errors.Join(err, reader.Close(), os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func saveFull(t *testing.T, s store.Store, client *clientv3.Client, log backup.Position) backup.Position {
	t.Helper()
	log, err := history.SaveFull(t.Context(), s, keys, snapshot(t, client), log, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return log
}

var keys = &backup.Keys{Current: "one", ByID: map[string][]byte{"one": []byte("01234567890123456789012345678901")}}

// record runs a recorder, until the test ends or it is stopped.
func record(t *testing.T, options history.RecorderOptions) (recorder *history.Recorder, ended <-chan error) {
	t.Helper()
	recorder = history.NewRecorder(options)
	result := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		result <- recorder.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
	})
	return recorder, result
}

func options(s store.Store, client *clientv3.Client, log backup.Position) history.RecorderOptions {
	return history.RecorderOptions{
		Watcher: client, Store: s, Keys: keys, Position: log, MaxBytes: 8 << 20, Now: time.Now,
	}
}

func openStore(t *testing.T) store.Store {
	t.Helper()
	d, err := store.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func chains(t *testing.T, s store.Store) []backup.Chain {
	t.Helper()
	listed, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return backup.Chains(backup.Objects(listed))
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// change does what API servers and users do, at random: puts, deletions of one key and of many, transactions, leases
// that are granted and revoked, compaction. It returns the revision after it.
func change(t *testing.T, client *clientv3.Client, random *rand.Rand, n int) int64 {
	t.Helper()
	key := func() string { return fmt.Sprintf("/registry/%d/%d", random.IntN(4), random.IntN(30)) }
	value := func() string { return fmt.Sprintf("%0*d", 10+random.IntN(500), random.Int64()) }
	var leases []clientv3.LeaseID
	for range n {
		var err error
		switch random.IntN(12) {
		case 0:
			_, err = client.Delete(t.Context(), key())
		case 1:
			_, err = client.Delete(t.Context(), fmt.Sprintf("/registry/%d/1", random.IntN(4)), clientv3.WithPrefix())
		case 2:
			_, err = client.Txn(t.Context()).Then(
				clientv3.OpPut("/registry/txn/a", value()), clientv3.OpDelete("/registry/txn/b"),
				clientv3.OpPut("/registry/txn/c", value()),
				clientv3.OpDelete(fmt.Sprintf("/registry/%d/2", random.IntN(4)), clientv3.WithPrefix()),
			).Commit()
		case 3:
			granted := must(client.Grant(t.Context(), 3000))(t)
			leases = append(leases, granted.ID)
			_, err = client.Put(t.Context(), key(), value(), clientv3.WithLease(granted.ID))
		case 4:
			if len(leases) > 3 {
				_, err = client.Revoke(t.Context(), leases[0])
				leases = leases[1:]
			}
		default:
			_, err = client.Put(t.Context(), key(), value())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return revision(t, client)
}

func revision(t *testing.T, client *clientv3.Client) int64 {
	t.Helper()
	return must(client.Get(t.Context(), "/"))(t).Header.Revision
}

// state is all that an etcd holds, by key.
func state(t *testing.T, client *clientv3.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kv := range must(client.Get(t.Context(), "/", clientv3.WithPrefix()))(t).Kvs {
		all[string(kv.Key)] = (*mvccpb.KeyValue)(kv).String()
	}
	return all
}

// restored starts an etcd from a chain and returns a client of it.
func restored(t *testing.T, s store.Store, chain backup.Chain) *clientv3.Client {
	t.Helper()
	path, data := filepath.Join(t.TempDir(), "rebuilt"), t.TempDir()
	if err := history.Rebuild(t.Context(), s, chain, keys, path); err != nil {
		t.Fatal(err)
	}
	if got := must(history.Revision(path))(t); got != chain.Last() {
		t.Errorf("rebuilt is revision %d, want %d", got, chain.Last())
	}
	if err := etcd.Restore("etcd", data, etcd.Snapshot{Path: path}, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	return startEtcd(t, data)
}

func compare(t *testing.T, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	for key := range got {
		if _, found := want[key]; !found {
			t.Errorf("%s is there, which was deleted", key)
		}
	}
}

func TestEachFullSnapshotLeadsToTheLastChange(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	change(t, client, random, 50)
	log := saveFull(t, s, client, backup.Position{})
	recorder, _ := record(t, options(s, client, log))
	for range 2 {
		log = must(recorder.Cut(t.Context(), change(t, client, random, 200)))(t)
		// Compaction takes from etcd what the deltas have.
		must(client.Compact(t.Context(), log.Revision))(t)
	}
	saveFull(t, s, client, log)
	last := change(t, client, random, 200)
	if log = must(recorder.Cut(t.Context(), last))(t); log.Revision != last {
		t.Errorf("the log ends at revision %d, want %d", log.Revision, last)
	}
	all := chains(t, s)
	if len(all) != 2 {
		t.Fatalf("%d chains", len(all))
	}
	want := state(t, client)
	for _, chain := range all {
		if chain.Last() != last {
			t.Errorf("a chain leads to revision %d, want %d", chain.Last(), last)
		}
		again := restored(t, s, chain)
		compare(t, state(t, again), want)
		// Clients that saw later revisions must not take new ones for old.
		if got := revision(t, again); got <= last+1_000_000 {
			t.Errorf("the revision goes on at %d, after %d", got, last)
		}
		must(again.Put(t.Context(), "/registry/new", "value"))(t)
	}
}

// What is rebuilt can be saved: deltas are compacted into a full snapshot without etcd.
func TestDeltasAreCompacted(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	log := saveFull(t, s, client, backup.Position{})
	recorder, _ := record(t, options(s, client, log))
	log = must(recorder.Cut(t.Context(), change(t, client, random, 100)))(t)
	path := filepath.Join(t.TempDir(), "rebuilt")
	if err := history.Rebuild(t.Context(), s, chains(t, s)[0], keys, path); err != nil {
		t.Fatal(err)
	}
	if got := must(history.SaveFull(t.Context(), s, keys, path, log, time.Now()))(t); got != log {
		t.Errorf("the log goes on at %v, not at %v", got, log)
	}
	last := change(t, client, random, 100)
	must(recorder.Cut(t.Context(), last))(t)
	newest := chains(t, s)[0]
	if len(newest.Deltas) != 1 || newest.Last() != last {
		t.Fatalf("%d deltas lead to revision %d", len(newest.Deltas), newest.Last())
	}
	compare(t, state(t, restored(t, s, newest)), state(t, client))
}

// Leases that were granted after the full snapshot are there, with a time of their own: their keys do not stay for
// ever.
func TestKeysKeepALease(t *testing.T) {
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	before := must(client.Grant(t.Context(), 500))(t).ID
	log := saveFull(t, s, client, backup.Position{})
	recorder, _ := record(t, options(s, client, log))
	after := must(client.Grant(t.Context(), 500))(t).ID
	var last int64
	for key, lease := range map[string]clientv3.LeaseID{"/before": before, "/after": after} {
		last = must(client.Put(t.Context(), key, "value", clientv3.WithLease(lease)))(t).Header.Revision
	}
	must(recorder.Cut(t.Context(), last))(t)
	again := restored(t, s, chains(t, s)[0])
	for lease, want := range map[clientv3.LeaseID]int64{before: 500, after: 3600} {
		got := must(again.TimeToLive(t.Context(), lease, clientv3.WithAttachedKeys()))(t)
		if got.GrantedTTL != want || len(got.Keys) != 1 {
			t.Errorf("a lease has %d seconds and %d keys, want %d and 1", got.GrantedTTL, len(got.Keys), want)
		}
	}
	must(again.Revoke(t.Context(), after))(t)
	if got := state(t, again); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
}

func TestDeltasAreCutBySizeAndWhereAsked(t *testing.T) {
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	log := saveFull(t, s, client, backup.Position{})
	o := options(s, client, log)
	o.MaxBytes = 2000
	recorder, _ := record(t, o)
	if got := must(recorder.Cut(t.Context(), 0))(t); got != log {
		t.Errorf("nothing has changed and the log ends at %v, want %v", got, log)
	}
	var last int64
	for range 20 {
		last = must(client.Put(t.Context(), "/a", string(storetest.Bytes(1000))))(t).Header.Revision
	}
	must(recorder.Cut(t.Context(), last))(t)
	if got := len(chains(t, s)[0].Deltas); got < 5 || got > 10 {
		t.Errorf("20 changes of 1000 bytes are cut into %d deltas", got)
	}
	// Several changes come before the cut is asked for, at the first of them.
	first := must(client.Put(t.Context(), "/a", "1"))(t).Header.Revision
	last = must(client.Put(t.Context(), "/a", "2"))(t).Header.Revision
	for _, want := range []int64{first, last} {
		if got := must(recorder.Cut(t.Context(), want))(t); got.Revision != want {
			t.Errorf("the log ends at revision %d, want %d", got.Revision, want)
		}
	}
}

func TestARecorderGoesOnWhereTheLogEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	log := saveFull(t, s, client, backup.Position{})
	failing := &failingStore{Store: s}
	recorder, ended := record(t, options(failing, client, log))
	must(recorder.Cut(t.Context(), change(t, client, random, 20)))(t)
	failing.err = store.ErrFull
	last := change(t, client, random, 20)
	if _, err := recorder.Cut(t.Context(), last); !errors.Is(err, store.ErrFull) {
		t.Errorf("cut: got %v", err)
	}
	if err := <-ended; !errors.Is(err, store.ErrFull) {
		t.Errorf("run: got %v", err)
	}
	if _, err := recorder.Cut(t.Context(), last); !errors.Is(err, history.ErrEnded) {
		t.Errorf("got %v", err)
	}
	log = must(chains(t, s)[0].End(t.Context(), s, keys))(t)
	recorder, _ = record(t, options(s, client, log))
	must(recorder.Cut(t.Context(), last))(t)
	newest := chains(t, s)[0]
	if len(newest.Deltas) != 2 || newest.Last() != last {
		t.Errorf("%d deltas lead to revision %d, want 2 and %d", len(newest.Deltas), newest.Last(), last)
	}
	compare(t, state(t, restored(t, s, newest)), state(t, client))
}

type failingStore struct {
	store.Store
	err error
}

func (f *failingStore) Put(ctx context.Context, name string, content io.Reader, size int64) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Put(ctx, name, content, size)
}

func TestALogThatEtcdCannotContinue(t *testing.T) {
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	log := saveFull(t, s, client, backup.Position{})
	for range 5 {
		must(client.Put(t.Context(), "/a", "value"))(t)
	}
	last := revision(t, client)
	must(client.Compact(t.Context(), last))(t)
	ahead := log
	ahead.Revision = last + 10
	for name, position := range map[string]backup.Position{"etcd has compacted it": log, "etcd is behind": ahead} {
		_, ended := record(t, options(s, client, position))
		if err := <-ended; !errors.Is(err, history.ErrGap) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAFullSnapshotOfAnotherRevisionBeginsALog(t *testing.T) {
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	log := saveFull(t, s, client, backup.Position{})
	last := must(client.Put(t.Context(), "/a", "value"))(t).Header.Revision
	if got := saveFull(t, s, client, log); got.ID == log.ID || got.Revision != last {
		t.Errorf("the log goes on at %v", got)
	}
}

// The revision of a snapshot is that of its database, even where compaction left nothing of the last change.
func TestRevisionOfASnapshot(t *testing.T) {
	client := startEtcd(t, t.TempDir())
	if got := must(history.Revision(snapshot(t, client)))(t); got != 1 {
		t.Errorf("that of an empty etcd is %d", got)
	}
	must(client.Put(t.Context(), "/a", "value"))(t)
	last := must(client.Delete(t.Context(), "/a"))(t).Header.Revision
	must(client.Compact(t.Context(), last, clientv3.WithCompactPhysical()))(t)
	if got := must(history.Revision(snapshot(t, client)))(t); got != last {
		t.Errorf("got %d, want %d", got, last)
	}
}

func TestNoDatabaseIsMadeOfADamagedChain(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	client, dir := startEtcd(t, t.TempDir()), t.TempDir()
	s := must(store.NewDirectory(dir))(t)
	t.Cleanup(func() { _ = s.Close() })
	log := saveFull(t, s, client, backup.Position{})
	recorder, _ := record(t, options(s, client, log))
	for range 2 {
		must(recorder.Cut(t.Context(), change(t, client, random, 20)))(t)
	}
	chain := chains(t, s)[0]
	for _, object := range append(chain.Deltas, chain.Full) {
		name, path := object.String(), filepath.Join(dir, object.String())
		content := must(os.ReadFile(path))(t)
		damaged := append([]byte(nil), content...)
		damaged[len(damaged)/2] ^= 1
		folder := t.TempDir()
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		err := history.Rebuild(t.Context(), s, chain, keys, filepath.Join(folder, "db"))
		if !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: got %v", name, err)
		}
		if left := must(os.ReadDir(folder))(t); len(left) > 0 {
			t.Errorf("%s: left is %s", name, left[0].Name())
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsNoSnapshotIsNotSaved(t *testing.T) {
	client, s := startEtcd(t, t.TempDir()), openStore(t)
	good := must(os.ReadFile(snapshot(t, client)))(t)
	damaged := append([]byte(nil), good...)
	damaged[len(damaged)/2] ^= 1
	for name, content := range map[string][]byte{
		"empty": nil, "cut off": good[:len(good)/2], "without a hash": good[:len(good)-32], "damaged": damaged,
	} {
		path := filepath.Join(t.TempDir(), "snapshot")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := history.SaveFull(t.Context(), s, keys, path, backup.Position{}, time.Now()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got := storetest.Names(t, s, ""); len(got) > 0 {
		t.Errorf("listed %q", got)
	}
}
