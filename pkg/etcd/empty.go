package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// emptyDatabase is where a database without keys is made, which data is then built from.
const emptyDatabase = "empty.db"

// startEmpty makes data without keys, whose revision is beyond that of data which was there before and of backups that
// cannot be used, as far as it is known. It does so on the first start too, which looks like that after the loss of a
// volume: clients whose caches are of an earlier life must find their revisions compacted.
func (s *Steward) startEmpty(known int64) error {
	s.recoveries.restored(status.Restored{From: status.Nothing})
	path := filepath.Join(s.options.DataDir, emptyDatabase)
	err := makeEmptyDatabase(path)
	if err == nil {
		from := database{path: path, bump: revisionBeyond(known, time.Now())}
		err = fill(s.options.founder(), s.options.DataDir, from, s.log)
	}
	if err := errors.Join(err, os.RemoveAll(path)); err != nil {
		return fmt.Errorf("making empty data in %s: %w", s.options.DataDir, err)
	}
	return nil
}

// makeEmptyDatabase writes a database that has what bumping a revision needs.
func makeEmptyDatabase(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, keys := tx.CreateBucket(schema.Key.Name())
		_, meta := tx.CreateBucket(schema.Meta.Name())
		return errors.Join(keys, meta)
	})
	return errors.Join(err, db.Close())
}
