package etcd

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// committed is what the log of a data directory has as committed, and its last entry.
func committed(t *testing.T, dataDir string) (commit, last uint64) {
	t.Helper()
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), walDir(dataDir))
	if err != nil {
		t.Fatal(err)
	}
	log, err := wal.OpenForRead(zap.NewNop(), walDir(dataDir), snapshots[len(snapshots)-1])
	if err != nil {
		t.Fatal(err)
	}
	_, state, entries, err := log.ReadAll()
	_ = log.Close()
	if err != nil {
		t.Fatal(err)
	}
	return state.Commit, entries[len(entries)-1].Index
}

// aLaggingLog has a log that ends with the removal of members 11 and 12, which it does not have as committed.
func aLaggingLog(t *testing.T, o Options) (commit uint64) {
	t.Helper()
	s := newTestSteward(o, zap.NewNop())
	if err := s.startEmpty(0); err != nil {
		t.Fatal(err)
	}
	dir := walDir(o.DataDir)
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		t.Fatal(err)
	}
	log, err := wal.Open(zap.NewNop(), dir, snapshots[len(snapshots)-1])
	if err != nil {
		t.Fatal(err)
	}
	_, state, _, err := log.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	state.Term = logTerm
	entries := []raftpb.Entry{{Term: logTerm, Index: state.Commit + 1}}
	for i, member := range []uint64{12, 11} {
		change := raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode, NodeID: member}
		content, err := change.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, raftpb.Entry{
			Term: logTerm, Index: state.Commit + 2 + uint64(i), Type: raftpb.EntryConfChange, Data: content,
		})
	}
	if err := errors.Join(log.Save(state, entries), log.Close()); err != nil {
		t.Fatal(err)
	}
	return state.Commit
}

// logTerm is the term of the entries of aLaggingLog.
const logTerm = 3

// apply has the database of a data directory say that an entry of a term was applied.
func apply(t *testing.T, dataDir string, index, term uint64) {
	t.Helper()
	db, err := bolt.Open(dbPath(dataDir), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		meta := tx.Bucket(schema.Meta.Name())
		return errors.Join(meta.Put(schema.MetaTermKeyName, binary.BigEndian.AppendUint64(nil, term)),
			meta.Put(schema.MetaConsistentIndexKeyName, binary.BigEndian.AppendUint64(nil, index)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatTheOnlyMemberHasAppliedIsCommitted(t *testing.T) {
	for name, test := range map[string]struct{ applied, term, want uint64 }{
		"nothing more":            {0, 1, 0},
		"the first removal":       {2, logTerm, 2},
		"all":                     {3, logTerm, 3},
		"another entry":           {3, logTerm + 1, 0},
		"more than the log holds": {9, logTerm, 0},
	} {
		o := testOptions(t)
		from := aLaggingLog(t, o)
		apply(t, o.DataDir, from+test.applied, test.term)
		for range 2 {
			newTestSteward(o, zap.NewNop()).commitWhatIsApplied()
			if commit, last := committed(t, o.DataDir); commit != from+test.want || last != from+3 {
				t.Errorf("%s: up to %d is committed of a log up to %d, which began with %d", name, commit, last, from)
			}
		}
	}
}

// Who was removed knows that the first has to have it as committed.
func TestWhatARemovedMemberKnowsIsCommitted(t *testing.T) {
	for name, test := range map[string]struct {
		own  identity
		want uint64
	}{
		"it was removed":         {identity{cluster: 7, member: 11, removed: []uint64{11}}, 3},
		"the other one":          {identity{cluster: 7, member: 12, removed: []uint64{12}}, 2},
		"it does not know it":    {identity{cluster: 7, member: 11}, 0},
		"of another cluster":     {identity{cluster: 8, member: 11, removed: []uint64{11}}, 0},
		"one that nobody knows":  {identity{cluster: 7, member: 13, removed: []uint64{13}}, 0},
		"one that does not tell": {identity{}, 0},
	} {
		o := testOptions(t)
		from := aLaggingLog(t, o)
		j := &joiner{
			Steward: newTestSteward(o, zap.NewNop()), held: dataIntact,
			own: identity{cluster: 7, member: 10, several: true},
		}
		if err := j.commitRemovals([]peerAnswer{{own: test.own}}); err != nil {
			t.Fatal(err)
		}
		if commit, _ := committed(t, o.DataDir); commit != from+test.want {
			t.Errorf("%s: up to %d is committed, it began with %d", name, commit, from)
		}
	}
}

// A log that cannot be written, as on a full disk, is no reason to give the data up for a backup.
func TestALogThatCannotBeWrittenIsNoDamage(t *testing.T) {
	c := newTestCluster(t)
	o := c.singleOptions()
	from := aLaggingLog(t, o)
	apply(t, o.DataDir, from+1, logTerm)
	held, err := fileutil.TryLockFile(firstWAL(t, o.DataDir), 0x2, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if raised, err := commitApplied(o.DataDir); err == nil {
		t.Errorf("a log that another has locked was written: %v", raised)
	}
	s := newTestSteward(o, zap.NewNop())
	if err := s.prepare(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
	if kept, _ := filepath.Glob(filepath.Join(o.DataDir, "damaged-*")); len(kept) > 0 || !hasData(o.DataDir) {
		t.Errorf("the data was given up: %v", kept)
	}
	if commit, _ := committed(t, o.DataDir); commit != from {
		t.Errorf("up to %d is committed, it began with %d", commit, from)
	}
}
