package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

const (
	// drillDir is where backups are restored on trial, below the data directory.
	drillDir = "verifying"
	// firstDrill is the part of the period after which a steward verifies first, so that restarts do not put it off.
	firstDrill = 24
	// expansion is about how much larger changes are than what is stored of them.
	expansion = 4
)

// errNoBackups says that there is nothing to verify.
var errNoBackups = errors.New("there are no backups in the store yet")

// verifyRegularly verifies the newest backups until ctx is done. databaseSize is that of etcd's database.
func (b *backups) verifyRegularly(ctx context.Context, databaseSize func() int64) {
	if b.pace.verify == 0 {
		return
	}
	for pause(ctx, b.pace.verify/firstDrill); ctx.Err() == nil; pause(ctx, b.pace.verify) {
		began := time.Now()
		err := b.verify(ctx, databaseSize())
		if ctx.Err() != nil {
			return
		}
		b.notices.report(status.Verification, err)
		if err == nil {
			took := time.Since(began)
			storeVerification.Set(took.Seconds())
			b.notices.succeeded(status.Verification,
				status.Operation{Succeeded: time.Now().UTC(), Seconds: took.Seconds()})
			b.log.Info("verified the newest backups in the store", zap.Duration("took", took))
		}
	}
}

// verify reads all that would be restored now, and makes a database of it.
func (b *backups) verify(ctx context.Context, databaseSize int64) error {
	keys, err := b.store.keys()
	if err != nil {
		return err
	}
	objects, err := b.list(ctx)
	if err != nil {
		return err
	}
	chains := backup.Chains(objects)
	if len(chains) == 0 {
		return errNoBackups
	}
	// What is damaged is found even where there is no room for the database.
	err = chains[0].Verify(ctx, b.store, keys)
	if err == nil {
		err = b.restoreOnTrial(ctx, chains[0], keys, databaseSize)
	}
	if err != nil {
		b.giveUp(err)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verified = append(b.verified, chains[0].Full.ID)
	return nil
}

// restoreOnTrial makes a database of a chain and deletes it. It needs room beside all that etcd does, and ends when
// that is used up meanwhile.
func (b *backups) restoreOnTrial(ctx context.Context, chain backup.Chain, keys *backup.Keys, size int64) (err error) {
	for _, delta := range chain.Deltas {
		size += delta.Size * expansion
	}
	dir := filepath.Join(b.options.DataDir, drillDir)
	if err := b.checkRoom(size, volume.reserve); err != nil {
		return fmt.Errorf("restoring backups on trial: %w", err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return fmt.Errorf("restoring backups on trial: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	from := guardedStore{Store: b.store, check: func() error {
		return errors.Join(ctx.Err(), b.checkRoom(0, func(v volume) int64 { return v.reserve() / 2 }))
	}}
	path := filepath.Join(dir, "db")
	if err := history.Rebuild(ctx, from, chain, keys, path); err != nil {
		return fmt.Errorf("restoring backups on trial: %w", err)
	}
	if b.compare != nil {
		b.compare(ctx, path, status.BackupStore, chain.Newest().String())
	}
	return nil
}

// checkRoom deletes nothing: what is verified is no more worth than what is there.
func (b *backups) checkRoom(needed int64, reserve func(volume) int64) error {
	v, err := b.measure(b.options.DataDir)
	if err == nil && v.free < needed+reserve(v) {
		return &noRoomError{dir: b.options.DataDir, needed: needed, reserve: reserve(v), free: v.free}
	}
	return err
}

// guardedStore reads on only while check has no objection.
type guardedStore struct {
	store.Store
	check func() error
}

// Get implements store.Store.
func (g guardedStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	body, err := g.Store.Get(ctx, name)
	return guardedReader{body, g.check}, err
}

type guardedReader struct {
	io.ReadCloser
	check func() error
}

func (r guardedReader) Read(p []byte) (int, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}
