package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// memberPace is how often something is done with other members, and how long it may take.
type memberPace struct {
	// retry is the first time after which something that failed or has to wait is tried again; it doubles up to
	// mostRetry.
	retry, mostRetry time.Duration
	// ask is how long a question to another member may take, change one for a change of the members: one that was made
	// although nobody waited for it any more has to be undone.
	ask, change time.Duration
	// care is how often the members are looked after.
	care time.Duration
	// patience is how long a member may be without a leader and count as ready: elections end sooner.
	patience time.Duration
	// quorum is how long the members may be without a quorum until it is told of.
	quorum time.Duration
	// round is the least time between two rounds in which the members defragment.
	round time.Duration
	// compare is how long a member tries to compare its data with that of the others, before it serves without.
	compare time.Duration
	// settle is how long it waits for the others to compact what it has compacted, before it compares that.
	settle time.Duration
	// again is for how long it counts that a member has joined again because its data differed.
	again time.Duration
	// gather is how long the first member waits for the others before it refuses to restore a point in time.
	gather time.Duration
}

func newMemberPace() memberPace {
	return memberPace{
		retry: time.Second, mostRetry: 15 * time.Second, ask: 5 * time.Second, change: 20 * time.Second,
		care: time.Second, patience: 5 * time.Second, quorum: time.Minute, round: 10 * time.Second,
		compare: 30 * time.Second, settle: 30 * time.Second, again: time.Hour,
		gather: 10 * time.Minute,
	}
}

// quorumAdvice is what people can do when the quorum does not come back by itself.
const quorumAdvice = "nothing is given up by itself: bring the missing members back with their volumes. If two of " +
	"the volumes are lost for good, or one while a point in time is restored, stop all members, move the data " +
	"directories of all of them away, deleting none, and start them again: the first member then restores what has " +
	"most of the backups in the store and in its backup directory"

// joiner gets a member ready for a start, by itself or with the others.
type joiner struct {
	*Steward
	peers peers
	held  dataState
	own   identity
	// damage is what is wrong with damaged data.
	damage error
	// awaitsRestored says that the first member is to restore a point in time before this one joins again.
	awaitsRestored atomic.Bool
	// delay before it is looked again, and what was told of last.
	delay time.Duration
	told  string
	since time.Time
}

// isSingle tells whether the member, which holds such data, has no others. One that was started without may have got
// them since. Its data knows that; where it is lost or damaged, those of them that run answer. It waits for no answer:
// as a rule, there is nobody who could give one.
func (s *Steward) isSingle(ctx context.Context, held dataState) bool {
	if !s.options.hasPeers() || !s.options.SingleMember {
		return s.options.startsSingle()
	}
	if held != dataNone {
		own, err := identify(s.options.DataDir)
		if own.several {
			return false
		}
		if held == dataIntact {
			return err != nil || own.alone
		}
	}
	asked := peers{&s.options, s.memberPace.ask}
	isThere := func(a peerAnswer) bool { return a.holds != holdsUnknown }
	return !slices.ContainsFunc(asked.askAll(ctx), isThere)
}

// prepareMember makes the data directory of one of several members fit for a start. It takes as long as it takes: while
// the others do not answer, nothing is done that cannot be undone.
func (s *Steward) prepareMember(ctx context.Context, held dataState, damage error) error {
	j := &joiner{
		Steward: s, peers: peers{&s.options, s.memberPace.ask}, held: held, damage: damage, delay: s.memberPace.retry,
		since: time.Now(),
	}
	var err error
	if j.held != dataNone {
		if j.own, err = identify(s.options.DataDir); err != nil && j.held == dataIntact {
			j.held, j.damage = dataDamaged, err
		}
	}
	s.health.set(status.AwaitingMembers)
	end, err := s.answerPeers(j.answer)
	if err != nil {
		return err
	}
	defer end()
	for {
		if done, err := j.step(ctx); done || err != nil {
			return err
		}
		pause(ctx, j.delay)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the other members: %w", ctx.Err())
		}
		j.delay = min(2*j.delay, s.memberPace.mostRetry)
	}
}

// step observes, decides and acts once. It is done when etcd can start.
func (j *joiner) step(ctx context.Context) (done bool, err error) {
	answers := j.peers.askAll(ctx)
	found, err := j.peers.findQuorum(ctx, answers)
	defer found.close()
	if found != nil {
		err = j.learnOutcomes(ctx, found)
	} else {
		err = errors.Join(err, j.learnReplaced(answers), j.commitRemovals(answers))
	}
	if found != nil && err != nil {
		j.log.Warn("what the other members have restored is not known yet; trying again", zap.Error(err))
		return false, nil
	}
	decided := decide(j.observe(answers, found))
	j.awaitsRestored.Store(decided.restored)
	j.tell(decided, answers, err)
	switch decided.action {
	case actStart:
		return true, nil
	case actBegin:
		return true, j.prepareEmpty(ctx)
	case actLeave:
		j.leave(ctx, found, decided.leaves)
	case actJoin:
		return j.join(ctx, found)
	}
	return false, nil
}

// observe returns all that is known.
func (j *joiner) observe(answers []peerAnswer, found *quorum) observation {
	o := observation{
		self: j.options.self(), members: j.options.Members, data: j.held, own: j.own,
		asksToRestore: j.options.Restore.ID != "", holdings: map[string]holding{}, identities: map[string]identity{},
	}
	for _, a := range answers {
		o.holdings[a.member.Name], o.identities[a.member.Name] = a.holds, a.own
	}
	if found != nil {
		o.cluster = &found.cluster
	}
	return o
}

// tell says what was decided, when that changes. After a while without a quorum it says what people can do.
func (j *joiner) tell(decided decision, answers []peerAnswer, noQuorum error) {
	if decided.because != j.told {
		j.told, j.since = decided.because, time.Now()
		fields := []zap.Field{zap.String("action", string(decided.action)), zap.String("because", decided.because)}
		for _, a := range answers {
			name := a.member.Name
			fields = append(fields, zap.String(name, string(a.holds)), zap.NamedError(name+".error", a.err))
		}
		j.log.Info("one of several members starts", append(fields, zap.NamedError("quorum.error", noQuorum))...)
	}
	if decided.lost && time.Since(j.since) > j.memberPace.quorum {
		j.since = time.Now().Add(repeatAfter)
		j.log.Error("THERE IS NO QUORUM OF THE MEMBERS; "+quorumAdvice, zap.String("because", decided.because))
	}
}

// leave has the cluster remove an identity of this member that is lost.
func (j *joiner) leave(ctx context.Context, with *quorum, id uint64) {
	ctx, cancel := context.WithTimeout(ctx, j.memberPace.change)
	defer cancel()
	if _, err := with.client.MemberRemove(ctx, id); err != nil {
		j.log.Warn("the other members do not remove the lost identity of this one yet; trying again",
			zap.String("member", fmt.Sprintf("%x", id)), zap.Error(err))
		return
	}
	j.log.Warn("THIS MEMBER HAS NO USABLE DATA; the others have removed its identity, it joins them again",
		zap.String("member", fmt.Sprintf("%x", id)), zap.NamedError("damage", j.damage))
	j.delay = j.memberPace.retry
}

// noteFinding notes what was found wrong with the data, and returns what kind it is kept aside as.
func (j *joiner) noteFinding(with *quorum) (kind string) {
	finding := status.Recovery{Cause: status.DataDamaged, Written: lastWritten(j.options.DataDir)}
	switch j.held {
	case dataDamaged:
	case dataDiffering:
		finding.Cause = status.DataDiffers
	case dataIntact:
		if j.own.cluster != with.cluster.id {
			return replacedData
		}
		return staleData
	}
	finding.Reason = j.damage.Error()
	j.recoveries.begin(finding)
	return damagedData
}

// join has the cluster add this member as a learner. Only after that the data which it had is moved aside.
func (j *joiner) join(ctx context.Context, with *quorum) (done bool, err error) {
	asking, cancel := context.WithTimeout(ctx, j.memberPace.change)
	defer cancel()
	added, err := with.client.MemberAddAsLearner(asking, []string{j.options.self().PeerURL})
	if err != nil {
		j.log.Info("the other members do not add this one yet; trying again", zap.Error(err))
		return false, nil
	}
	size := int64(walSegmentBytes)
	if j.held != dataNone {
		if info, err := os.Stat(dbPath(j.options.DataDir)); err == nil {
			size += info.Size()
		}
		if err := j.setAside(j.noteFinding(with)); err != nil {
			return false, err
		}
	}
	j.recoveries.restored(status.Restored{From: status.Members})
	j.joining = initialCluster(&j.options, added)
	j.log.Info("joining the other members as a learner", zap.String("member", fmt.Sprintf("%x", added.Member.ID)),
		zap.String("members", j.joining))
	j.reached("joining")
	return true, j.makeRoomToWrite(size)
}
