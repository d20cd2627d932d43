package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// advertisedPeerURL is, in the membership, the address of a member that others never join; nobody connects to it.
const advertisedPeerURL = "http://127.0.0.1:2380"

const (
	// unfinishedRestore is where data is built.
	unfinishedRestore = "restoring"
	// damagedData and staleData are the kinds of unusable data, which their names below the data directory begin with.
	damagedData, staleData = "damaged", "stale"
)

// prepare makes the data directory fit for a start: nothing to do for an orderly stopped one; after a crash it is
// verified; when the data is lost or damaged, it is restored; when there was none, it is made. Where there are other
// members, they are asked before.
func (s *Steward) prepare(ctx context.Context) error {
	if err := os.MkdirAll(s.options.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	s.recoveries.load()
	if err := s.removeLeftovers(); err != nil {
		return err
	}
	if err := s.finishRebuild(); err != nil {
		return err
	}
	if err := s.finishRequested(); err != nil {
		return err
	}
	if err := s.makeRoomToWrite(0); err != nil {
		return err
	}
	held, damage, err := s.examine(ctx)
	if err != nil {
		return err
	}
	if held == dataIntact && s.options.hasPeers() {
		s.commitWhatIsApplied()
	}
	s.single = s.isSingle(ctx, held)
	switch {
	case !s.single:
		return s.prepareMember(ctx, held, damage)
	case held == dataNone:
		return s.prepareEmpty(ctx)
	case held == dataDamaged:
		return s.mend(ctx, damage)
	}
	return nil
}

// examine tells what the data directory holds. It verifies data whose etcd was not stopped in order, and then also
// returns what is wrong with it.
func (s *Steward) examine(ctx context.Context) (held dataState, damage, err error) {
	if !hasData(s.options.DataDir) {
		return dataNone, nil, nil
	}
	marker := filepath.Join(s.options.DataDir, cleanMarker)
	if _, err := os.Stat(marker); err == nil {
		return dataIntact, nil, os.Remove(marker)
	}
	s.health.set(status.Verifying)
	s.log.Info("etcd was not stopped in order, verifying its data")
	err = verifyInProcess(ctx, s.options.DataDir)
	var found *damageError
	if errors.As(err, &found) {
		return dataDamaged, found, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("verifying the data: %w", err)
	}
	return dataIntact, nil, nil
}

func (s *Steward) prepareEmpty(ctx context.Context) error {
	if s.backups != nil && s.options.Store.Claim > 0 {
		if err := s.insist(ctx, func() error { return s.backups.claim(ctx) }); err != nil {
			return err
		}
	}
	found, err := s.find(ctx)
	if err == nil {
		err = confirm(s.options.DataDir)
	}
	if err != nil {
		return err
	}
	if found.count() == 0 && s.options.Store.Claim > 0 {
		return fmt.Errorf("there is no data in %s, and no backup in %q%s, although there must be one "+
			"(--store-claim): look whether this is the bucket, and the prefix, that it was backed up to; an empty "+
			"etcd would be another cluster", s.options.DataDir, s.options.BackupDir, s.options.Store.described())
	}
	if found.count() == 0 {
		return s.startEmpty(0)
	}
	s.log.Error("THE DATA IS GONE although there are backups; restoring", zap.String("dataDir", s.options.DataDir))
	s.recoveries.begin(status.Recovery{Cause: status.DataLost, KnownRevision: found.last()})
	return s.restoreMost(ctx, found)
}

// replaceDamaged moves damaged data aside and restores what has most of the backups that are intact.
func (s *Steward) replaceDamaged(ctx context.Context, reason error) error {
	found, err := s.find(ctx)
	if err != nil {
		return err
	}
	if found.count() == 0 && s.options.OnDataLoss == Fail {
		return fmt.Errorf("the data in %s is %s (%w) and there is no backup in %q%s; restore one there, or start once "+
			"with --on-data-loss=%s to give the data up", s.options.DataDir, damagedData, reason, s.options.BackupDir,
			s.options.Store.described(), StartEmpty)
	}
	s.log.Error("THE DATA IS UNUSABLE", zap.String("kind", damagedData), zap.Error(reason))
	s.recoveries.begin(status.Recovery{
		Cause: status.DataDamaged, Reason: reason.Error(), Written: lastWritten(s.options.DataDir),
		KnownRevision: found.last(),
	})
	if err := s.setAside(damagedData); err != nil {
		return err
	}
	if found.count() == 0 {
		s.log.Error("STARTING EMPTY: there is no backup and the policy allows it")
		return s.startEmpty(0)
	}
	return s.restoreMost(ctx, found)
}

// replaceBy moves data aside that has less than a backup, and restores that.
func (s *Steward) replaceBy(from Snapshot, kind string, finding status.Recovery) error {
	s.log.Error("THE DATA IS UNUSABLE", zap.String("kind", kind), zap.String("reason", finding.Reason))
	s.recoveries.begin(finding)
	if err := s.setAside(kind); err != nil {
		return err
	}
	return s.restore(from)
}

// setAside moves data out of the way, for people to look at. It keeps one of a kind; more would fill the
// volume.
func (s *Steward) setAside(kind string) error {
	earlier, err := filepath.Glob(filepath.Join(s.options.DataDir, kind+"-*"))
	for _, path := range earlier {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return fmt.Errorf("deleting data that was kept aside earlier: %w", err)
	}
	aside := filepath.Join(s.options.DataDir, kind+"-"+time.Now().UTC().Format("20060102T150405Z"))
	if err := os.Rename(filepath.Join(s.options.DataDir, memberDir), aside); err != nil {
		return fmt.Errorf("setting data aside: %w", err)
	}
	s.recoveries.setAside(aside)
	if kind == replacedData {
		s.recoveries.replaced()
	}
	s.log.Warn("data is kept aside", zap.String("movedTo", aside))
	return confirm(s.options.DataDir)
}

// restore restores one backup, and makes room for it once its checksum is found right: to that end, the data that it
// replaces may be deleted.
func (s *Steward) restore(from Snapshot) error {
	if err := checkSnapshot(from.Path); err != nil {
		return err
	}
	info, err := os.Stat(from.Path)
	if err != nil {
		return err
	}
	if err := s.makeRoomToWrite(info.Size() + walSegmentBytes); err != nil {
		return err
	}
	s.recoveries.restored(status.Restored{
		From: from.source(), Backup: from.name(), Revision: from.Revision, Taken: from.Taken.UTC(),
	})
	if err := restore(s.options.founder(), s.options.DataDir, from, s.log); err != nil {
		return err
	}
	s.log.Warn("RESTORED from a backup; what was written after it is lost", zap.String("snapshot", from.Path),
		zap.Int64("revision", from.Revision), zap.Time("taken", from.Taken))
	return s.removeFetched()
}

// Restore builds the data directory of a single member from a snapshot, whose checksum is verified. The directory must
// hold no data; it is filled in one step, so an interrupted restore leaves none.
func Restore(name, dataDir string, from Snapshot, log *zap.Logger) error {
	return restore((&Options{Name: name}).founder(), dataDir, from, log)
}

func restore(f founder, dataDir string, from Snapshot, log *zap.Logger) error {
	if from.Revision == 0 {
		named, _ := parseSnapshotName(filepath.Base(from.Path))
		from.Revision = named.Revision
	}
	return fill(f, dataDir, database{
		path: from.Path, hasChecksum: true, bump: revisionBeyond(from.Revision, time.Now()) - from.Revision,
	}, log)
}

// database is the file of one, which data is built from.
type database struct {
	path string
	// hasChecksum says that it ends in one, as snapshots do.
	hasChecksum bool
	// bump is added to its revision.
	bump int64
}

// fill builds the data of a member in a directory that has none, in one step.
func fill(f founder, dataDir string, from database, log *zap.Logger) error {
	if hasData(dataDir) {
		return fmt.Errorf("%s holds data already", dataDir)
	}
	temporary := filepath.Join(dataDir, unfinishedRestore)
	err := build(f, temporary, from, log)
	if err == nil {
		err = os.Rename(filepath.Join(temporary, memberDir), filepath.Join(dataDir, memberDir))
	}
	return errors.Join(err, os.RemoveAll(temporary), syncDir(dataDir))
}

// build writes a data directory for the only member of a new cluster. What clients know is compacted there.
func build(f founder, dataDir string, from database, log *zap.Logger) error {
	if err := os.RemoveAll(dataDir); err != nil {
		return err
	}
	return snapshot.NewV3(withoutDebug(log)).Restore(snapshot.RestoreConfig{
		SnapshotPath:        from.path,
		SkipHashCheck:       !from.hasChecksum,
		Name:                f.name,
		OutputDataDir:       dataDir,
		PeerURLs:            []string{f.peerURL},
		InitialCluster:      f.name + "=" + f.peerURL,
		InitialClusterToken: f.token,
		RevisionBump:        uint64(from.bump),
		MarkCompacted:       true,
	})
}

// withoutDebug spares the log each transaction of the database.
func withoutDebug(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.IncreaseLevel(zap.InfoLevel))
}
