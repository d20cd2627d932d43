package history

import (
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Append adds a key to a snapshot, as etcd would after its last revision, and returns the revision of that. The key
// must be a new one. A snapshot for which it failed is of no use.
func Append(path, key, value string) (revision int64, err error) {
	if err = cutHash(path); err == nil {
		revision, err = appendChange(path, key, value)
	}
	if err == nil {
		err = appendHash(path)
	}
	if err != nil {
		return 0, fmt.Errorf("adding key %s to snapshot %s: %w", key, path, err)
	}
	return revision, nil
}

// cutHash leaves the database of a snapshot.
func cutHash(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	size, err := snapshotSize(file)
	if err == nil {
		err = file.Truncate(size)
	}
	return errors.Join(err, file.Close())
}

func appendChange(path, key, value string) (revision int64, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout, NoFreelistSync: true})
	if err != nil {
		return 0, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		last, err := revisionIn(tx)
		if err != nil {
			return err
		}
		revision = last + 1
		kv := mvccpb.KeyValue{
			Key: []byte(key), Value: []byte(value), CreateRevision: revision, ModRevision: revision, Version: 1,
		}
		content, err := kv.Marshal()
		if err != nil {
			return err
		}
		at := mvcc.RevToBytes(mvcc.Revision{Main: revision}, mvcc.NewRevBytes())
		return tx.Bucket(schema.Key.Name()).Put(at, content)
	})
	return revision, errors.Join(err, db.Close())
}
