package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// quotaCheckPeriod is how often the alarm of an exhausted quota is looked at.
	quotaCheckPeriod = 30 * time.Second
	// firstSnapshotDelay lets a starting control plane settle before the first snapshot.
	firstSnapshotDelay = time.Minute
	// defragmentation happens when the database is at least this large and this part of it is free.
	defragmentMinimumBytes = 100 << 20
	defragmentFreePercent  = 50
)

// maintain runs everything periodic until ctx is done.
func (s *Steward) maintain(ctx context.Context) {
	quota := time.NewTicker(quotaCheckPeriod)
	defer quota.Stop()
	snapshot := time.NewTimer(s.untilNextSnapshot(time.Now()))
	defer snapshot.Stop()
	defragment := time.NewTicker(max(s.options.DefragmentationPeriod, time.Minute))
	defer defragment.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-quota.C:
			err = s.relieveQuota(ctx)
		case <-snapshot.C:
			err = s.snapshot(ctx)
			snapshot.Reset(s.untilNextSnapshot(time.Now()))
		case <-defragment.C:
			err = s.defragment(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("maintenance failed, it is tried again", zap.Error(err))
		}
	}
}

// untilNextSnapshot returns when the next snapshot is due, so that restarts do not put it off.
func (s *Steward) untilNextSnapshot(now time.Time) time.Duration {
	if s.options.BackupDir == "" {
		return 1<<63 - 1
	}
	snapshots, err := ListSnapshots(s.options.BackupDir)
	if err != nil || len(snapshots) == 0 {
		return min(firstSnapshotDelay, s.options.SnapshotPeriod)
	}
	due := snapshots[0].Taken.Add(s.options.SnapshotPeriod).Sub(now)
	return max(due, min(firstSnapshotDelay, s.options.SnapshotPeriod))
}

// snapshot takes a full snapshot when something has changed since the last one, and prunes.
func (s *Steward) snapshot(ctx context.Context) error {
	if s.options.BackupDir == "" {
		return nil
	}
	revision, err := currentRevision(ctx, s.client)
	if err != nil {
		return err
	}
	snapshots, err := ListSnapshots(s.options.BackupDir)
	if err != nil || (len(snapshots) > 0 && snapshots[0].Revision == revision) {
		return err
	}
	// The revision was read before, so the file may hold a little more than its name says, never less.
	taken, err := takeSnapshot(s.etcd.Server.Backend(), revision, s.options.BackupDir, time.Now())
	if err != nil {
		return err
	}
	s.log.Info("took a snapshot", zap.String("path", taken.Path), zap.Int64("revision", taken.Revision))
	return PruneSnapshots(s.options.BackupDir, s.options.SnapshotRetention)
}

// defragment gives space back when much of the database is free.
func (s *Steward) defragment(_ context.Context) error {
	backend := s.etcd.Server.Backend()
	if s.options.DefragmentationPeriod == 0 || !worthDefragmenting(backend.Size(), backend.SizeInUse()) {
		return nil
	}
	return s.defragmentNow()
}

func worthDefragmenting(size, inUse int64) bool {
	return size >= defragmentMinimumBytes && (size-inUse)*100 >= size*defragmentFreePercent
}

func (s *Steward) defragmentNow() error {
	backend := s.etcd.Server.Backend()
	before := backend.Size()
	if err := backend.Defrag(); err != nil {
		return fmt.Errorf("defragmenting: %w", err)
	}
	s.log.Info("defragmented", zap.Int64("bytesBefore", before), zap.Int64("bytesAfter", backend.Size()))
	return nil
}

// relieveQuota ends the alarm of an exhausted quota once compaction has freed enough: etcd itself stays read-only
// until someone defragments and disarms it.
func (s *Steward) relieveQuota(ctx context.Context) error {
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return err
	}
	for _, alarm := range alarms.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		backend := s.etcd.Server.Backend()
		if backend.SizeInUse() > s.options.QuotaBackendBytes*9/10 {
			return fmt.Errorf("THE QUOTA IS EXHAUSTED: %d of %d bytes are in use, only reads are served; delete "+
				"objects or raise --quota-backend-bytes",
				backend.SizeInUse(), s.options.QuotaBackendBytes)
		}
		if err := s.defragmentNow(); err != nil {
			return err
		}
		if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return err
		}
		s.log.Warn("the quota was exhausted; there is space again, writes are served")
	}
	return nil
}
