package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// rebuiltData is a complete member, which takes the place of the damaged one. A start finishes what was interrupted.
const rebuiltData = "rebuilt"

// mend replaces damaged data by what has most: the database, where only the log beside it is damaged, or a backup.
func (s *Steward) mend(ctx context.Context, damage error) error {
	revision, err := inspectInProcess(ctx, s.options.DataDir)
	var databaseDamage *damageError
	if errors.As(err, &databaseDamage) {
		return s.replaceDamaged(ctx, damage)
	}
	if err != nil {
		return fmt.Errorf("verifying the database: %w", err)
	}
	found, err := s.findSoon(ctx)
	if err != nil {
		return err
	}
	finding := status.Recovery{
		Cause: status.LogDamaged, Reason: damage.Error(), Revision: revision, Written: lastWritten(s.options.DataDir),
		KnownRevision: max(revision, found.last()),
	}
	if newer, ok := s.ahead(ctx, found, revision); ok {
		return s.replaceBy(newer, damagedData, finding)
	}
	return s.rebuild(finding)
}

// rebuild makes a new member of the database. What only the log held is lost: at most what was written in the moment
// before etcd ended, as the database is on disk ten times a second.
func (s *Steward) rebuild(finding status.Recovery) error {
	s.health.set(status.Restoring)
	revision := finding.Revision
	s.log.Error("THE WRITE-AHEAD LOG IS DAMAGED, the database is not; rebuilding from it",
		zap.String("reason", finding.Reason), zap.Int64("revision", revision))
	s.recoveries.begin(finding)
	s.recoveries.restored(status.Restored{From: status.Database, Revision: revision})
	info, err := os.Stat(dbPath(s.options.DataDir))
	if err != nil {
		return err
	}
	if err := s.makeRoomToWrite(info.Size() + walSegmentBytes); err != nil {
		return err
	}
	temporary := filepath.Join(s.options.DataDir, unfinishedRestore)
	err = build(s.options.founder(), temporary, database{
		path: dbPath(s.options.DataDir), bump: revisionBeyond(revision, time.Now()) - revision,
	}, s.log)
	if err == nil {
		err = os.Rename(filepath.Join(temporary, memberDir), filepath.Join(s.options.DataDir, rebuiltData))
	}
	if err := errors.Join(err, os.RemoveAll(temporary), syncDir(s.options.DataDir)); err != nil {
		return fmt.Errorf("rebuilding from the database in %s: %w", s.options.DataDir, err)
	}
	return s.finishRebuild()
}

// finishRebuild puts rebuilt data in its place, if there is any.
func (s *Steward) finishRebuild() error {
	return s.putInPlace(rebuiltData, damagedData,
		"REBUILT from the database; what only the write-ahead log held is lost")
}

// putInPlace has a complete member, if there is one of that name, take the place of the data, which is kept aside as
// one of a kind. Then it is told.
func (s *Steward) putInPlace(name, kind, told string) error {
	complete := filepath.Join(s.options.DataDir, name)
	if _, err := os.Stat(complete); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if hasData(s.options.DataDir) {
		if err := s.setAside(kind); err != nil {
			return err
		}
	}
	s.reached("aside")
	if err := os.Rename(complete, filepath.Join(s.options.DataDir, memberDir)); err != nil {
		return fmt.Errorf("putting %s data in place: %w", name, err)
	}
	s.reached("placed")
	s.log.Warn(told)
	return syncDir(s.options.DataDir)
}
