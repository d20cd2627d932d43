package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// History is compacted when this part of the quota is in use, and again when so much more is.
	compactPercent, compactAgainPercent = 80, 5
	// keptHistory is how many revisions stay then, if that suffices, for clients that are about to read them.
	keptHistory = 100
	// writablePercent is how much of the quota the database may take for writes to be served again.
	writablePercent = 90
)

// part returns so many percent of a size.
func part(size int64, percent int64) int64 { return size / 100 * percent }

// careForSpace looks at quota and volume: it tells how full they are, gives back what may be given back, and where
// that is not enough makes etcd read-only before the volume is full, which etcd would not survive.
func (s *Steward) careForSpace(ctx context.Context) error {
	v, err := s.measure(s.options.DataDir)
	if err != nil {
		return err
	}
	if err := errors.Join(s.tellLevels(v), s.keepBallast(v)); err != nil {
		return err
	}
	var short *noRoomError
	if err := s.makeRoom(s.options.DataDir, 0, volume.reserve); err != nil && !errors.As(err, &short) {
		return err
	}
	alarm := s.spaceAlarm()
	switch {
	case alarm != nil:
		return s.relieve(ctx, alarm, short)
	case short != nil:
		return s.stopWrites(ctx, short)
	case !s.leads():
		// History is that of all members: one of them compacts it.
		s.compactions = compactions{}
		return nil
	default:
		return s.compactNearQuota(ctx)
	}
}

// spaceAlarm returns the alarm that makes etcd read-only, if this member has raised it, or one that is no more.
func (s *Steward) spaceAlarm() *etcdserverpb.AlarmMember {
	for _, alarm := range s.spaceAlarms() {
		isOwn := alarm.MemberID == uint64(s.etcd.Server.MemberID())
		if isOwn || (s.leads() && s.etcd.Server.Cluster().Member(types.ID(alarm.MemberID)) == nil) {
			return alarm
		}
	}
	return nil
}

// spaceAlarms are those of all members.
func (s *Steward) spaceAlarms() []*etcdserverpb.AlarmMember {
	return slices.DeleteFunc(s.etcd.Server.Alarms(), func(alarm *etcdserverpb.AlarmMember) bool {
		return alarm.Alarm != etcdserverpb.AlarmType_NOSPACE
	})
}

// stopWrites raises the alarm for a volume, as etcd does for the quota.
func (s *Steward) stopWrites(ctx context.Context, short *noRoomError) error {
	if err := s.setSpaceAlarm(ctx, etcdserverpb.AlarmRequest_ACTIVATE, uint64(s.etcd.Server.MemberID())); err != nil {
		return fmt.Errorf("making etcd read-only: %w", err)
	}
	s.told.writes("the volume is full: " + short.Error())
	s.log.Error("THE VOLUME IS FULL: only reads and deletions are served until there is room", zap.Error(short))
	return nil
}

// setSpaceAlarm raises or ends the alarm of a member.
func (s *Steward) setSpaceAlarm(ctx context.Context, action etcdserverpb.AlarmRequest_AlarmAction, of uint64) error {
	_, err := s.etcd.Server.Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: action, MemberID: of, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	return err
}

// putReadOnly puts a small key into an etcd that is read-only for want of space: the alarm is raised while there is
// space for that. It ends the alarm for a moment, in which clients may get a write through. Members that are short of
// space may be sooner to raise it again, so it tries more than once.
func (s *Steward) putReadOnly(ctx context.Context, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, s.memberPace.change)
	defer cancel()
	for ; ; pause(ctx, s.memberPace.retry) {
		err := s.putBetweenAlarms(ctx, key, value)
		// A key beyond the quota is put, and that is called an error.
		is, getErr := s.client.Get(ctx, key)
		if getErr == nil && len(is.Kvs) == 1 && string(is.Kvs[0].Value) == value {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(err, getErr)
		}
	}
}

// putBetweenAlarms ends all alarms for want of space, puts a key, and raises them again.
func (s *Steward) putBetweenAlarms(ctx context.Context, key, value string) (err error) {
	for _, alarm := range s.spaceAlarms() {
		if err := s.setSpaceAlarm(ctx, etcdserverpb.AlarmRequest_DEACTIVATE, alarm.MemberID); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, s.setSpaceAlarm(ctx, etcdserverpb.AlarmRequest_ACTIVATE, alarm.MemberID))
		}()
	}
	// Not by the client, which looks at the quota before.
	_, err = s.etcd.Server.Put(ctx, &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value)})
	return err
}

// relieve ends an alarm, by compacting all history and giving the space back. What then is in use, someone has to
// delete.
func (s *Steward) relieve(ctx context.Context, alarm *etcdserverpb.AlarmMember, short *noRoomError) error {
	backend, quota := s.etcd.Server.Backend(), s.options.QuotaBackendBytes
	if err := s.compact(ctx, 0); err != nil {
		return err
	}
	if s.relievedByDefragmenting(short != nil) {
		if !s.alone() {
			// Several members defragment one after the other, as the leader requests.
			return nil
		}
		if err := s.defragmentNow(volume.leastReserve); err != nil {
			return err
		}
	}
	if size := backend.Size(); size > part(quota, writablePercent) {
		s.sayReadOnly(fmt.Errorf("the database has %d of %d bytes, of which %d are in use; delete objects or raise "+
			"--quota-backend-bytes", size, quota, backend.SizeInUse()), "THE QUOTA IS EXHAUSTED")
		return nil
	}
	if err := s.makeRoom(s.options.DataDir, 0, volume.resume); err != nil {
		if errors.As(err, &short) {
			s.sayReadOnly(err, "THE VOLUME IS FULL")
			return nil
		}
		return err
	}
	if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
		return fmt.Errorf("serving writes again: %w", err)
	}
	s.changed(readOnly, "")
	s.told.writes("")
	s.log.Warn("there was no space; there is again, writes are served")
	return nil
}

// relievedByDefragmenting tells whether the database takes too much room, of which much can be given back.
func (s *Steward) relievedByDefragmenting(short bool) bool {
	backend := s.etcd.Server.Backend()
	tight := short || backend.Size() > part(s.options.QuotaBackendBytes, writablePercent)
	return tight && backend.SizeInUse() <= part(backend.Size(), writablePercent)
}

// readOnly is the subject of why writes are not served.
const readOnly = "read-only"

// sayReadOnly says why only reads are served, when the reason changes.
func (s *Steward) sayReadOnly(reason error, what string) {
	if s.changed(readOnly, what) {
		s.told.writes(strings.ToLower(what) + ": " + reason.Error())
		s.log.Error(what+": only reads and deletions are served", zap.Error(reason))
	}
}

// compactions are those that a quota nearly in use has led to.
type compactions struct {
	count int
	// inUse is what they left.
	inUse int64
}

// compactNearQuota compacts history before it fills the quota, which would stop all writes: first all but the newest,
// and if that does not suffice by the next look, all. What is in use then is not history; it is tried again only after
// that has grown.
func (s *Steward) compactNearQuota(ctx context.Context) error {
	quota, inUse := s.options.QuotaBackendBytes, s.etcd.Server.Backend().SizeInUse()
	if inUse <= part(quota, compactPercent) {
		return s.endCompactions()
	}
	kept := int64(keptHistory)
	switch done := s.compactions; {
	case done.count == 1:
		kept = 0
	case done.count == 2:
		s.compactions = compactions{count: 3, inUse: inUse}
		return nil
	case done.count == 3 && inUse < done.inUse+part(quota, compactAgainPercent):
		return nil
	case done.count == 3:
		s.compactions.count = 0
	}
	s.compactions.count++
	s.log.Warn("the quota is nearly in use; compacting history", zap.Int64("inUse", inUse), zap.Int64("quota", quota),
		zap.Int64("keptRevisions", kept))
	return s.compact(ctx, kept)
}

// endCompactions gives the space back that compactions have freed, if it is worth it.
func (s *Steward) endCompactions() error {
	backend, compacted := s.etcd.Server.Backend(), s.compactions.count > 0
	s.compactions = compactions{}
	if !compacted || s.options.DefragmentationPeriod == 0 || !mostlyFree(backend.Size(), backend.SizeInUse()) {
		return nil
	}
	if !s.alone() {
		s.fragmented.Store(true)
		return nil
	}
	return s.defragmentNow(volume.reserve)
}

// compact takes history away but for some revisions. Its space is free as soon as nobody reads from it any more.
func (s *Steward) compact(ctx context.Context, kept int64) error {
	revision, err := currentRevision(ctx, s.client)
	if err != nil {
		return fmt.Errorf("compacting: %w", err)
	}
	_, err = s.client.Compact(ctx, revision-kept, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compacting: %w", err)
	}
	// Pages count as free from the second commit on at the earliest.
	s.etcd.Server.Backend().ForceCommit()
	s.etcd.Server.Backend().ForceCommit()
	return nil
}
