package etcd

import (
	"bytes"
	"context"
	"errors"
	"slices"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// A revision never changes. Where etcd and a backup have the same one, with other bytes, a disk has changed it: backups
// have checksums. So a member, also a single one, compares what it serves with its last snapshot before it takes the
// next one, and with what is restored on trial of the store. That needs no hash: those of etcd depend on what was
// compacted, and of a backup they would need an index of all keys in memory, as etcd has one.
//
// It is told, and no more: only a person can say whether what was written since the backup is worth less than the
// value, which the next write of its key makes good, too. What a disk changes before a first backup has it is not
// found, nor what it changes of the number of a revision.

// revisionsAtOnce is how many are compared while a transaction of the database lasts.
const revisionsAtOnce = 1000

// findChanged returns the revisions of the database in a file that etcd has, too, with other bytes: the first ones. It
// ends when the room on the volume is used up meanwhile, for which maintenance, which waits for it, has to care.
func (s *Steward) findChanged(ctx context.Context, path string) (found []status.Changed, err error) {
	defer recoverFault(&err)()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(schema.Key.Name())
		if bucket == nil {
			return nil
		}
		cursor := bucket.Cursor()
		for key, value := cursor.First(); key != nil && len(found) < status.MostChanged; {
			var keys, values [][]byte
			for ; key != nil && len(keys) < revisionsAtOnce; key, value = cursor.Next() {
				keys, values = append(keys, key), append(values, value)
			}
			found = append(found, changedOf(s.etcd.Server.Backend(), keys, values)...)
			if err := errors.Join(ctx.Err(), s.checkRoomLeft(s.options.DataDir)); err != nil {
				return err
			}
		}
		return nil
	})
	return found[:min(status.MostChanged, len(found))], err
}

// changedOf compares some revisions, in order.
func changedOf(served backend.Backend, keys, values [][]byte) (found []status.Changed) {
	tx := served.ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	after := append(bytes.Clone(keys[len(keys)-1]), 0)
	servedKeys, servedValues := tx.UnsafeRange(schema.Key, keys[0], after, 0)
	next := 0
	for i, key := range servedKeys {
		for next < len(keys) && bytes.Compare(keys[next], key) < 0 {
			next++
		}
		if next == len(keys) || !bytes.Equal(keys[next], key) || bytes.Equal(values[next], servedValues[i]) {
			continue
		}
		changed := status.Changed{Revision: mvcc.BytesToRev(key).Main}
		var kv mvccpb.KeyValue
		if kv.Unmarshal(values[next]) == nil {
			changed.Key = status.Text(string(kv.Key))
		}
		found = append(found, changed)
	}
	return found
}

// compareWithBackup compares what etcd serves with the database of a backup, and tells of a difference.
func (s *Steward) compareWithBackup(ctx context.Context, path string, from status.Source, backup string) {
	// Data that was rolled back goes on with revisions of its own, of which is told otherwise.
	if confirmed, err := s.confirmed(); err != nil || !confirmed {
		return
	}
	changed, err := s.findChanged(ctx, path)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Error("the data cannot be compared with a backup", zap.String("backup", backup), zap.Error(err))
	case len(changed) > 0:
		s.recoveries.differs(status.Difference{From: from, Backup: backup, Changed: changed})
		s.log.Error("THE DATA DIFFERS from a backup: a disk may have changed it", zap.String("backup", backup),
			zap.Any("changed", changed))
	}
}

// compareWithSnapshots compares what etcd serves with the newest snapshot that is intact.
func (s *Steward) compareWithSnapshots(ctx context.Context) error {
	list, err := ListSnapshots(s.options.BackupDir)
	if err != nil {
		return err
	}
	if newest, found := newestIntact(list); found {
		s.compareWithBackup(ctx, newest.Path, status.BackupDirectory, newest.name())
	}
	return nil
}

// forgetWrittenAnew forgets of the revisions that differed from a backup those that etcd has no more: their keys were
// written anew, and they are compacted.
func (s *Steward) forgetWrittenAnew() {
	told := s.recoveries.difference()
	if told == nil || told.From == status.Members || !slices.ContainsFunc(told.Changed, s.isGone) {
		return
	}
	s.recoveries.left(func(c status.Changed) bool { return !s.isGone(c) })
	s.log.Info("of what differed from a backup, something was written anew")
}

func (s *Steward) isGone(c status.Changed) bool {
	tx := s.etcd.Server.Backend().ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	from := mvcc.RevToBytes(mvcc.Revision{Main: c.Revision}, mvcc.NewRevBytes())
	after := mvcc.RevToBytes(mvcc.Revision{Main: c.Revision + 1}, mvcc.NewRevBytes())
	keys, _ := tx.UnsafeRange(schema.Key, from, after, 1)
	return len(keys) == 0
}
