package history

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

const (
	partialSuffix = ".part"
	// batch is how many bytes of changes are written in one transaction of the database.
	batch = 16 << 20
	// leaseTTL is how many seconds a lease has that was granted after the full snapshot, and of which the changes tell
	// only that it exists. It is as long as API servers keep events, which have most of the leases.
	leaseTTL = 3600
	// tombstone follows the revision of a deletion in etcd's database.
	tombstone = 't'
)

// Rebuild makes a snapshot of the last revision of a chain, as etcd writes one, with a SHA-256 at its end: restored as
// any other, or saved as a full snapshot, it stands for the whole chain. The file appears only when all of the chain
// was verified and it is on disk. No limit of etcd's requests or size applies, and no lease expires.
func Rebuild(ctx context.Context, s store.Store, chain backup.Chain, keys *backup.Keys, path string) error {
	r := rebuilding{path: path + partialSuffix, leases: map[int64]bool{}}
	err := chain.Read(ctx, s, keys, r.use)
	if err == nil {
		err = r.addLeases()
	}
	if r.db != nil {
		err = errors.Join(err, r.db.Close())
	}
	if err == nil {
		err = appendHash(r.path)
	}
	if err == nil {
		err = os.Rename(r.path, path)
	}
	if err != nil {
		if removal := os.Remove(r.path); !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
		}
		return fmt.Errorf("rebuilding revision %d from %s: %w", chain.Last(), chain.Full.Name, err)
	}
	return syncDir(filepath.Dir(path))
}

// rebuilding is a database to which changes are applied.
type rebuilding struct {
	path string
	db   *bolt.DB
	// leases that keys of changes belong to.
	leases map[int64]bool
}

func (r *rebuilding) use(object *backup.Reader) error {
	if object.Header.Kind == backup.Delta {
		return r.apply(object)
	}
	if err := r.write(object); err != nil {
		return err
	}
	var err error
	// Nothing is synced before the end: until then, all can be done again.
	r.db, err = bolt.Open(r.path, 0o600, &bolt.Options{Timeout: openTimeout, NoSync: true, NoFreelistSync: true})
	if err != nil {
		return err
	}
	return r.db.View(func(tx *bolt.Tx) error {
		revision, err := revisionIn(tx)
		if err == nil && revision != object.Header.Last {
			err = fmt.Errorf("%w: the database has revision %d", backup.ErrDamaged, revision)
		}
		return err
	})
}

// write makes a database of a full snapshot.
func (r *rebuilding) write(content io.Reader) error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		var size int64
		if size, err = snapshotSize(file); err == nil {
			err = file.Truncate(size)
		} else {
			err = fmt.Errorf("%w: %w", backup.ErrDamaged, err)
		}
	}
	return errors.Join(err, file.Close())
}

// apply writes the events of a delta as etcd does.
func (r *rebuilding) apply(object *backup.Reader) error {
	events := backup.NewEventReader(object, object.Header.First, object.Header.Last)
	var revision mvcc.Revision
	for more := true; more; {
		err := r.db.Update(func(tx *bolt.Tx) error {
			changes := tx.Bucket(schema.Key.Name())
			// Revisions only grow, so no page will be filled later.
			changes.FillPercent = 0.9
			for size := 0; size < batch; {
				event, err := events.Next()
				if err == io.EOF {
					more = false
					return nil
				}
				if err != nil {
					return err
				}
				revision = following(revision, event.Kv.ModRevision)
				if err := r.put(changes, revision, event); err != nil {
					return err
				}
				size += event.Kv.Size()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// following is the revision of the next event: those of one revision are numbered.
func following(before mvcc.Revision, main int64) mvcc.Revision {
	if main == before.Main {
		return mvcc.Revision{Main: main, Sub: before.Sub + 1}
	}
	return mvcc.Revision{Main: main}
}

func (r *rebuilding) put(changes *bolt.Bucket, revision mvcc.Revision, event *mvccpb.Event) error {
	key := mvcc.RevToBytes(revision, mvcc.NewRevBytes())
	kv := event.Kv
	if event.Type == mvccpb.DELETE {
		key = append(key, tombstone)
		kv = &mvccpb.KeyValue{Key: kv.Key}
	} else if kv.Lease != 0 {
		r.leases[kv.Lease] = true
	}
	value, err := kv.Marshal()
	if err != nil {
		return err
	}
	return changes.Put(key, value)
}

// addLeases adds those leases that the database does not have. Without, their keys would stay for ever.
func (r *rebuilding) addLeases() error {
	return r.db.Update(func(tx *bolt.Tx) error {
		leases, err := tx.CreateBucketIfNotExists(schema.Lease.Name())
		if err != nil {
			return err
		}
		for id := range r.leases {
			key := binary.BigEndian.AppendUint64(nil, uint64(id))
			if leases.Get(key) != nil {
				continue
			}
			value, err := (&leasepb.Lease{ID: id, TTL: leaseTTL}).Marshal()
			if err == nil {
				err = leases.Put(key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// appendHash completes a snapshot and sees it to disk.
func appendHash(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	if err == nil {
		_, err = file.Write(hash.Sum(nil))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
