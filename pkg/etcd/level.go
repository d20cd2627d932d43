package etcd

import (
	"os"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// fillLevel returns how full something is: 0, 70 or 85 percent. It goes down only five percent below, so that it does
// not go to and fro.
func fillLevel(before int, used, size int64) int {
	if size <= 0 {
		return 0
	}
	percent := int(float64(used) / float64(size) * 100)
	for _, level := range []int{status.NearlyFull, 70} {
		if percent >= level || (before >= level && percent >= level-5) {
			return level
		}
	}
	return 0
}

// tellLevel tells how full something is, when the level changes.
func (s *Steward) tellLevel(subject string, used, size int64) {
	level := fillLevel(s.told.level(subject), used, size)
	before := s.told.fills(status.Space{Of: subject, Level: level, Used: used, Size: size})
	fillLevels.WithLabelValues(subject).Set(float64(level))
	fields := []zap.Field{zap.Int("percent", level), zap.Int64("used", used), zap.Int64("size", size)}
	switch {
	case level == before:
	case level == 0:
		s.log.Info("the "+subject+" has room again", fields...)
	case level < status.NearlyFull:
		s.log.Warn("THE "+subject+" FILLS UP; delete objects or enlarge it", fields...)
	default:
		s.log.Error("THE "+subject+" IS NEARLY FULL; delete objects or enlarge it", fields...)
	}
}

// tellLevels tells how full quota and volume are. History that was compacted and snapshots that are deleted for
// lack of room do not count.
func (s *Steward) tellLevels(v volume) error {
	prunable, err := s.prunableBytes(v)
	if err != nil {
		return err
	}
	volumeSize.Set(float64(v.size))
	volumeFree.Set(float64(v.free))
	s.tellLevel(status.Quota, s.etcd.Server.Backend().SizeInUse(), s.options.QuotaBackendBytes)
	s.tellLevel(status.Volume, v.size-v.free-prunable, v.size)
	return nil
}

// prunableBytes is what all snapshots but the newest take of a volume.
func (s *Steward) prunableBytes(v volume) (int64, error) {
	snapshots, err := ListSnapshots(s.options.BackupDir)
	if err != nil || len(snapshots) < 2 {
		return 0, err
	}
	if of, err := s.measure(s.options.BackupDir); err != nil || of.device != v.device {
		return 0, err
	}
	var bytes int64
	for _, snapshot := range snapshots[1:] {
		info, err := os.Stat(snapshot.Path)
		if err != nil {
			return 0, err
		}
		bytes += info.Size()
	}
	return bytes, nil
}
