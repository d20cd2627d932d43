package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

const (
	// requestedData is a complete member of the point in time that was asked for. A start finishes what was cut off.
	requestedData = "requested"
	// replacedData is the kind of data that was good, and had to make way for it.
	replacedData = "before-restore"
)

// requestTimeout is how long clients wait for a restore at most, before it is refused.
const requestTimeout = 40 * time.Minute

// errNoSuchTime says that the store has no state of the time that was asked for.
var errNoSuchTime = errors.New("that time cannot be restored")

// restoreOnRequest restores the point in time that the options ask for, unless that was done or refused before. Etcd
// serves before and after it. With an error, etcd is stopped. A refusal is an error too, once: the next start serves
// the data as it was. Of several members, only the first one restores.
func (s *Steward) restoreOnRequest(ctx context.Context) error {
	request := s.options.Restore
	if request.ID == "" || !s.options.first() {
		return nil
	}
	if !s.needsOthers() && !s.alone() {
		s.log.Error("NO POINT IN TIME IS RESTORED while others join a single member", zap.String("to", request.To))
		return nil
	}
	settled, err := s.isSettled(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("asking etcd for restore request %s: %w", request.ID, err), s.stop())
	}
	if settled {
		return nil
	}
	s.log.Warn("A POINT IN TIME IS TO BE RESTORED", zap.String("request", request.ID), zap.String("to", request.To))
	if s.needsOthers() {
		if err := s.agree(ctx); err != nil {
			return err
		}
	}
	return s.restoreAlone(ctx)
}

// isSettled tells whether the request was dealt with before. It asks until etcd answers, which of several members needs
// a quorum.
func (s *Steward) isSettled(ctx context.Context) (bool, error) {
	id := s.options.Restore.ID
	for ; ; pause(ctx, s.memberPace.retry) {
		asking, cancel := context.WithTimeout(ctx, s.memberPace.ask)
		before, err := s.client.Get(asking, outcomePrefix+id)
		cancel()
		switch {
		case err == nil && len(before.Kvs) > 0:
			s.log.Info("the restore request was dealt with before", zap.String("request", id),
				zap.ByteString("outcome", before.Kvs[0].Value))
			return true, nil
		case err == nil:
			return false, nil
		case s.hasEnded():
			return false, s.endedByItself()
		case ctx.Err() != nil:
			return false, err
		}
		s.log.Warn("etcd is asked again for a restore request", zap.String("request", id), zap.Error(err))
	}
}

// hasEnded tells whether etcd has ended by itself.
func (s *Steward) hasEnded() bool {
	select {
	case <-s.etcd.Server.StopNotify():
		return true
	default:
		return false
	}
}

// agree waits for the other members. What can be known of a refusal is found before any of them is removed. With an
// error, etcd is stopped.
func (s *Steward) agree(ctx context.Context) error {
	missing, err := s.gather(ctx)
	if err != nil {
		return err
	}
	if missing == nil {
		missing = s.checkRequested(ctx)
	}
	if missing == nil {
		return nil
	}
	if ctx.Err() == nil {
		missing = s.refuse(ctx, missing)
	}
	return errors.Join(missing, s.stop())
}

// checkRequested looks whether the store has the time that is asked for, and whether there is room for its state.
func (s *Steward) checkRequested(ctx context.Context) error {
	to, err := s.options.Restore.Time()
	if err != nil {
		return err
	}
	return s.withStore(ctx, func() error {
		objects, err := s.backups.list(ctx)
		if err != nil {
			return err
		}
		if err := checkTime(objects, to, time.Now()); err != nil {
			return err
		}
		chain, _ := backup.At(objects, to)
		return s.makeRoomFor(chain)
	})
}

// restoreAlone restores a point in time in an etcd that has no other members, or has none then.
func (s *Steward) restoreAlone(ctx context.Context) error {
	s.health.set(status.Restoring)
	// What clients write from now on could not be saved before it is replaced.
	if err := s.restart(ctx, true); err != nil {
		return err
	}
	s.health.set(status.Restoring)
	if err := s.makeRequested(ctx); err != nil {
		if ctx.Err() == nil {
			err = s.refuse(ctx, err)
		}
		return errors.Join(err, s.stop())
	}
	s.reached("built")
	if err := s.stop(); err != nil {
		return err
	}
	s.reached("stopped")
	if err := s.replaceByRequested(); err != nil {
		return err
	}
	return s.startAgain(ctx, false)
}

// restart stops etcd and starts it with or without clients.
func (s *Steward) restart(ctx context.Context, withoutClients bool) error {
	if err := s.stop(); err != nil {
		return err
	}
	return s.startAgain(ctx, withoutClients)
}

// startAgain starts an etcd that was stopped in order by this process.
func (s *Steward) startAgain(ctx context.Context, withoutClients bool) error {
	if err := os.Remove(filepath.Join(s.options.DataDir, cleanMarker)); err != nil {
		return err
	}
	s.withoutClients = withoutClients
	return s.start(ctx)
}

// refuse notes that a request is refused, and returns the error that says so. Asked once more, it would come at a time
// that nobody expects.
func (s *Steward) refuse(ctx context.Context, why error) error {
	refusal := s.options.Restore.Refusal(fmt.Errorf("%w; the data stays as it is", why))
	s.log.Error("THE POINT IN TIME IS NOT RESTORED, the data stays as it is", zap.Error(why))
	key, value, err := s.noteOutcome(outcome{Refused: why.Error()})
	if err == nil {
		_, err = s.client.Put(ctx, key, value)
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		err = s.putReadOnly(ctx, key, value)
	}
	if err != nil {
		return fmt.Errorf("noting that %w: %w", refusal, err)
	}
	return refusal
}

// noteOutcome returns key and value that tell what came of the request.
func (s *Steward) noteOutcome(o outcome) (key, value string, err error) {
	o.To, o.At = s.options.Restore.To, time.Now().UTC().Truncate(time.Second)
	content, err := json.Marshal(o)
	return outcomePrefix + s.options.Restore.ID, string(content), err
}

// makeRequested saves the data that is there and builds that of the point in time beside it.
func (s *Steward) makeRequested(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	to, err := s.options.Restore.Time()
	if err != nil {
		return err
	}
	// Without clients, nobody joins any more.
	if !s.alone() && !s.needsOthers() {
		return errors.New("another member has joined the etcd, whose data cannot be replaced")
	}
	if err := s.removeOthers(ctx); err != nil {
		return err
	}
	if err := s.withStore(ctx, func() error { return s.saveAll(ctx) }); err != nil {
		return fmt.Errorf("saving the data that is there: %w", err)
	}
	s.reached("saved")
	revision, err := currentRevision(ctx, s.client)
	if err != nil {
		return err
	}
	var from Snapshot
	if err := s.withStore(ctx, func() error {
		from, err = s.fetchRequested(ctx, to, revision)
		return err
	}); err != nil {
		return err
	}
	s.reached("fetched")
	return s.buildRequested(ctx, from, revision)
}

// withStore tries something on the store again as long as a failure may pass soon.
func (s *Steward) withStore(ctx context.Context, try func() error) error {
	end := time.Now().Add(s.backups.pace.request)
	for delay := s.backups.pace.retry; ; delay = min(2*delay, s.backups.pace.mostRetry) {
		err := try()
		if err == nil || ctx.Err() != nil || time.Now().After(end) || !passes(err) {
			return err
		}
		s.log.Warn("the store of backups cannot be used; it is tried again", zap.Error(err))
		pause(ctx, delay)
	}
}

// passes tells whether an error may pass by itself.
func passes(err error) bool {
	switch storeReason(err) {
	case "unavailable", "timeout", "permission", "key":
		return !errors.Is(err, errNoSuchTime)
	}
	return false
}

// saveAll sees to it that the store has all that etcd has.
func (s *Steward) saveAll(ctx context.Context) error {
	f, err := s.newFollower(ctx)
	if err != nil {
		return err
	}
	return f.saveOnce(ctx)
}

// mostLogs is how often saving begins anew before it is given up.
const mostLogs = 5

// saveOnce saves all that etcd has.
func (f *follower) saveOnce(ctx context.Context) error {
	atOnce := make(chan struct{})
	close(atOnce)
	last := errors.New("it goes on elsewhere each time")
	for range mostLogs {
		finished, err := f.session(ctx, atOnce)
		switch {
		case errors.Is(err, history.ErrGap):
			last, f.afresh = err, true
		case err != nil || finished:
			return err
		}
	}
	return fmt.Errorf("the log of backups does not become whole: %w", last)
}

// fetchRequested makes a snapshot of the newest state that was saved until a time. The present revision is in the
// store, or nothing is fetched. A state that is damaged is not made up for by an older one: that would lose more than
// somebody has agreed to.
func (s *Steward) fetchRequested(ctx context.Context, to time.Time, present int64) (Snapshot, error) {
	objects, err := s.backups.list(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	if err := checkTime(objects, to, time.Now()); err != nil {
		return Snapshot{}, err
	}
	if all := backup.Chains(objects); all[0].Last() < present {
		return Snapshot{}, fmt.Errorf("%w: the store has revision %d, the data %d: what is there would be lost",
			errNoSuchTime, all[0].Last(), present)
	}
	chain, _ := backup.At(objects, to)
	for {
		fetched, err := s.fetchWithin(ctx, chain)
		name, lost := s.backups.giveUp(err)
		if err == nil || !lost {
			return fetched, err
		}
		objects = withoutObject(objects, name)
		other, found := backup.At(objects, to)
		if !found || other.Last() < chain.Last() {
			return Snapshot{}, fmt.Errorf("%w: %w%s", errNoSuchTime, err, before(other, found))
		}
		chain = other
	}
}

// before says what can be restored instead.
func before(chain backup.Chain, found bool) string {
	if !found {
		return "; there is none before it"
	}
	return "; the one before it is of " + chain.Taken().Format(time.RFC3339)
}

func withoutObject(objects []backup.Object, name backup.Name) []backup.Object {
	var others []backup.Object
	for _, object := range objects {
		if object.Name != name {
			others = append(others, object)
		}
	}
	return others
}

// checkTime tells which times there are if the one that is asked for is none.
func checkTime(objects []backup.Object, to, now time.Time) error {
	chains := backup.Chains(objects)
	if len(chains) == 0 {
		return fmt.Errorf("%w: there are no backups", errNoSuchTime)
	}
	oldest := chains[0].Full.Taken
	for _, chain := range chains {
		if chain.Full.Taken.Before(oldest) {
			oldest = chain.Full.Taken
		}
	}
	if !to.Before(oldest) && !to.After(now) {
		return nil
	}
	return fmt.Errorf("%w: %s is not from %s, the oldest backup, to %s, now", errNoSuchTime,
		to.UTC().Format(time.RFC3339), oldest.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

// fetchWithin makes a snapshot of a chain, if there is room for it beside the data, which stays.
func (s *Steward) fetchWithin(ctx context.Context, chain backup.Chain) (Snapshot, error) {
	keys, err := s.backups.store.keys()
	if err != nil {
		return Snapshot{}, err
	}
	if err := s.makeRoomFor(chain); err != nil {
		return Snapshot{}, err
	}
	path := filepath.Join(s.options.DataDir, fetchedDatabase)
	if err := history.Rebuild(ctx, s.backups.store, chain, keys, path); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Path: path, Revision: chain.Last(), Taken: chain.Taken()}, nil
}

// makeRoomFor makes room for a snapshot of a chain beside the data.
func (s *Steward) makeRoomFor(chain backup.Chain) error {
	return s.makeRoom(s.options.DataDir, chain.Size()*expansion, volume.reserve)
}

// buildRequested builds and verifies the data of a snapshot, in which the outcome is noted. Its revision goes on beyond
// the present one, which clients have seen.
func (s *Steward) buildRequested(ctx context.Context, from Snapshot, present int64) error {
	done := outcome{Taken: &from.Taken, Revision: from.Revision}
	if s.options.hasPeers() {
		done.Replaces = strconv.FormatUint(uint64(s.etcd.Server.Cluster().ID()), 16)
	}
	key, value, err := s.noteOutcome(done)
	if err != nil {
		return err
	}
	revision, err := history.Append(from.Path, key, value)
	if err != nil {
		return err
	}
	info, err := os.Stat(from.Path)
	if err != nil {
		return err
	}
	if err := s.makeRoom(s.options.DataDir, info.Size()+walSegmentBytes, volume.reserve); err != nil {
		return err
	}
	temporary := filepath.Join(s.options.DataDir, unfinishedRestore)
	err = build(s.options.founder(), temporary, database{
		path: from.Path, hasChecksum: true, bump: revisionBeyond(max(present, revision), time.Now()) - revision,
	}, s.log)
	if err == nil {
		err = verifyInProcess(ctx, temporary)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("building the data of %s: %w", from.Taken.Format(time.RFC3339), err),
			os.RemoveAll(temporary), s.removeFetched())
	}
	return s.removeFetched()
}

// replaceByRequested puts what was built in the place of the data, which is kept aside. Once it has begun, there is no
// way back: a start finishes it.
func (s *Steward) replaceByRequested() error {
	temporary := filepath.Join(s.options.DataDir, unfinishedRestore)
	err := os.Rename(filepath.Join(temporary, memberDir), filepath.Join(s.options.DataDir, requestedData))
	if err := errors.Join(err, os.RemoveAll(temporary), syncDir(s.options.DataDir)); err != nil {
		return fmt.Errorf("putting the data of a point in time in place: %w", err)
	}
	s.reached("complete")
	return s.finishRequested()
}

// finishRequested puts the data of a point in time in its place, if there is any.
func (s *Steward) finishRequested() error {
	return s.putInPlace(requestedData, replacedData,
		"RESTORED a point in time, as was asked for; what was written after it is in the store and kept aside")
}

// reached is told of each step of a restore, at which tests interrupt it.
func (s *Steward) reached(step string) {
	if s.onStep != nil {
		s.onStep(step)
	}
}

// Restorable returns what can be restored from a store, the chain with the newest state first.
func Restorable(ctx context.Context, options StoreOptions) ([]backup.Chain, error) {
	if options.Provider == NoStore {
		return nil, errors.New("--store-provider must be set")
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	access := newStoreAccess(options)
	defer func() { _ = access.close() }()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed, err := access.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing the store of backups: %w", err)
	}
	return backup.Chains(backup.Objects(listed)), nil
}
