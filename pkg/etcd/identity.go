package etcd

import (
	"errors"
	"slices"
	"strconv"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// identify reads from the data of a stopped etcd whose it is. With an error it returns what could be read yet.
func identify(dataDir string) (own identity, err error) {
	defer recoverFault(&err)()
	entries, logErr := own.readLog(walDir(dataDir))
	known, applied, err := readMembers(dbPath(dataDir))
	members := known.count
	own.several, own.removed = members > 1, known.removed
	if err := errors.Join(logErr, err); err != nil {
		return own, err
	}
	if members == 0 {
		return own, errors.New("the database knows of no member")
	}
	changes := false
	for _, entry := range entries {
		changes = changes || (entry.Index > applied && entry.Type != raftpb.EntryNormal)
	}
	own.alone = members == 1 && !changes
	return own, nil
}

// readLog reads the write-ahead log: what it says of the member, and its entries after the newest snapshot.
func (own *identity) readLog(dir string) ([]raftpb.Entry, error) {
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return nil, err
	}
	if len(snapshots) == 0 {
		return nil, errors.New("the write-ahead log holds no snapshot record")
	}
	log, err := wal.OpenForRead(zap.NewNop(), dir, snapshots[len(snapshots)-1])
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	content, _, entries, err := log.ReadAll()
	if err != nil {
		return nil, err
	}
	var metadata etcdserverpb.Metadata
	if err := metadata.Unmarshal(content); err != nil {
		return nil, err
	}
	own.cluster, own.member = metadata.ClusterID, metadata.NodeID
	return entries, nil
}

// isRemoved tells whether the data knows that the member whose it is was removed.
func (own *identity) isRemoved() bool { return slices.Contains(own.removed, own.member) }

// outlives tells whether the data is what came of that of another identity: the same cluster, which has removed that
// member, or one that has taken its place.
func (own *identity) outlives(other identity) bool {
	if other.cluster == 0 {
		return false
	}
	return slices.Contains(own.replaced, other.cluster) ||
		(own.cluster == other.cluster && slices.Contains(own.removed, other.member))
}

// membersInDatabase are those that a database knows.
type membersInDatabase struct {
	count   int
	removed []uint64
}

// readMembers returns which members a database knows, as of which entry of the log.
func readMembers(path string) (members membersInDatabase, applied uint64, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return members, 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		applied = readState(tx).applied
		if bucket := tx.Bucket(schema.Members.Name()); bucket != nil {
			members.count = bucket.Stats().KeyN
		}
		bucket := tx.Bucket(schema.MembersRemoved.Name())
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(key, _ []byte) error {
			id, err := strconv.ParseUint(string(key), 16, 64)
			members.removed = append(members.removed, id)
			return err
		})
	})
	return members, applied, err
}
