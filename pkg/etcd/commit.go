package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Etcd writes that entries of its log are committed with the entries that come next. One that was killed may have less
// as committed in its log than applied to its database, or than others have. Of the removal of members, that is fatal:
// who has removed all others starts as one of those that the log has as committed, and waits for votes of members that
// it has removed, which wait for it. So what is known to be committed is written to the log before etcd starts.

// commitWhatIsApplied has the log of a stopped etcd know as committed what its database has applied. What fails is told
// and no more: that a log cannot be written does not make its data damaged.
func (s *Steward) commitWhatIsApplied() {
	raised, err := commitApplied(s.options.DataDir)
	if err != nil {
		s.log.Warn("the write-ahead log does not learn what is committed; starting nevertheless", zap.Error(err))
	}
	if raised {
		s.log.Info("the write-ahead log has less as committed than the database has applied; that is made up for")
	}
}

func commitApplied(dataDir string) (raised bool, err error) {
	defer recoverFault(&err)()
	applied, err := readApplied(dbPath(dataDir))
	if err != nil {
		return false, err
	}
	return raiseCommit(walDir(dataDir), func(entries []raftpb.Entry) uint64 {
		for _, entry := range slices.Backward(entries) {
			// Of the same term it is the same entry, and so are all before it.
			if entry.Index == applied.Index {
				if entry.Term == applied.Term {
					return entry.Index
				}
				break
			}
		}
		return 0
	})
}

// readApplied returns index and term of the last entry that a database has applied.
func readApplied(path string) (applied walpb.Snapshot, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return applied, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		applied.Index = readState(tx).applied
		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			if term := meta.Get(schema.MetaTermKeyName); len(term) == 8 {
				applied.Term = binary.BigEndian.Uint64(term)
			}
		}
		return nil
	})
	return applied, err
}

// commitRemovals has the log know as committed that members were removed which say so: they would not know it
// otherwise.
func (j *joiner) commitRemovals(answers []peerAnswer) error {
	var removed []uint64
	for _, a := range answers {
		if a.own.isRemoved() && a.own.cluster == j.own.cluster {
			removed = append(removed, a.own.member)
		}
	}
	if j.held != dataIntact || j.own.cluster == 0 || len(removed) == 0 {
		return nil
	}
	raised, err := raiseCommit(walDir(j.options.DataDir), func(entries []raftpb.Entry) uint64 {
		return lastRemoval(entries, removed)
	})
	if raised {
		j.log.Info("others know that they were removed; so does the write-ahead log now")
	}
	return err
}

// lastRemoval is the index of the last entry that removes one of some members; 0 if none does. A member is removed only
// once, as nobody gets its ID again.
func lastRemoval(entries []raftpb.Entry, members []uint64) uint64 {
	for _, entry := range slices.Backward(entries) {
		var change raftpb.ConfChange
		if entry.Type != raftpb.EntryConfChange || change.Unmarshal(entry.Data) != nil {
			continue
		}
		if change.Type == raftpb.ConfChangeRemoveNode && slices.Contains(members, change.NodeID) {
			return entry.Index
		}
	}
	return 0
}

// raiseCommit writes to a log that more of its entries are committed, if upTo returns the index of a later one.
func raiseCommit(dir string, upTo func([]raftpb.Entry) uint64) (raised bool, err error) {
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err == nil && len(snapshots) == 0 {
		err = fmt.Errorf("%s holds no snapshot record", dir)
	}
	if err != nil {
		return false, err
	}
	from := snapshots[len(snapshots)-1]
	log, err := wal.OpenForRead(zap.NewNop(), dir, from)
	if err != nil {
		return false, err
	}
	_, state, entries, err := log.ReadAll()
	_ = log.Close()
	if err != nil {
		return false, err
	}
	to := upTo(entries)
	if to <= state.Commit {
		return false, nil
	}
	state.Commit = to
	return true, appendState(dir, from, state)
}

// appendState writes to the end of a log. What a crash has torn there is cut off before, as etcd does at its start.
func appendState(dir string, from walpb.Snapshot, state raftpb.HardState) error {
	log, err := openToWrite(dir, from)
	if errors.Is(err, io.ErrUnexpectedEOF) && wal.Repair(zap.NewNop(), dir) {
		log, err = openToWrite(dir, from)
	}
	if err != nil {
		return err
	}
	return errors.Join(log.Save(state, nil), log.Sync(), log.Close())
}

func openToWrite(dir string, from walpb.Snapshot) (*wal.WAL, error) {
	log, err := wal.Open(zap.NewNop(), dir, from)
	if err != nil {
		return nil, err
	}
	if _, _, _, err := log.ReadAll(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}
