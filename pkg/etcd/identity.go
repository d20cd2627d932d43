package etcd

import (
	"errors"

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
	members, applied, err := readMembers(dbPath(dataDir))
	own.several = members > 1
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

// readMembers returns how many members a database knows, as of which entry of the log.
func readMembers(path string) (members int, applied uint64, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		applied = readState(tx).applied
		if bucket := tx.Bucket(schema.Members.Name()); bucket != nil {
			members = bucket.Stats().KeyN
		}
		return nil
	})
	return members, applied, err
}
