package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
)

// leads tells whether this member is the leader, as far as it knows.
func (s *Steward) leads() bool {
	return s.etcd.Server.Leader() == s.etcd.Server.MemberID()
}

// alone tells whether the etcd has no other member at this time.
func (s *Steward) alone() bool { return len(s.etcd.Server.Cluster().Members()) == 1 }

// decidesAlone tells whether no other member has a vote at this time.
func (s *Steward) decidesAlone() bool {
	hasVote := func(m *membership.Member) bool { return m.ID != s.etcd.Server.MemberID() && !m.IsLearner }
	return !slices.ContainsFunc(s.etcd.Server.Cluster().Members(), hasVote)
}

// leaderless is since when a member has had no leader.
type leaderless struct {
	mu    sync.Mutex
	since time.Time
}

// lasts takes whether there is no leader now, and tells whether that has been so for longer than patience.
func (l *leaderless) lasts(missing bool, patience time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !missing {
		l.since = time.Time{}
		return false
	}
	if l.since.IsZero() {
		l.since = now
	}
	return now.Sub(l.since) >= patience
}

// memberCare looks after the members while this one leads.
type memberCare struct {
	*Steward
	peers peers
	// delay is until a learner is promoted again, at the time next.
	delay time.Duration
	next  time.Time
	// withheld says that learners get no vote yet, which was told.
	withheld bool
	// nextRound is when the members defragment next, soonest the earliest that they may.
	nextRound, soonest time.Time
	// quorumSince is when there was one last.
	quorumSince time.Time
}

// careForMembers looks after the members until ctx is done.
func (s *Steward) careForMembers(ctx context.Context) {
	now := time.Now()
	c := &memberCare{
		Steward: s, peers: peers{&s.options, s.memberPace.ask}, delay: s.memberPace.retry, quorumSince: now,
		nextRound: now.Add(s.options.DefragmentationPeriod),
	}
	for ; ctx.Err() == nil; pause(ctx, s.memberPace.care) {
		c.tellQuorum(time.Now())
		if !s.leads() {
			continue
		}
		err := c.look(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("looking after the members failed, it is tried again", zap.Error(err))
		}
	}
}

// tellQuorum tells, after a while without a leader, what people can do.
func (c *memberCare) tellQuorum(now time.Time) {
	if c.etcd.Server.Leader() != 0 {
		c.quorumSince = now
	}
	if now.Sub(c.quorumSince) > c.memberPace.quorum {
		c.quorumSince = now.Add(repeatAfter)
		c.log.Error("THERE IS NO QUORUM OF THE MEMBERS; " + quorumAdvice)
	}
}

// look does once what is to do. One that is alone defragments when it wants to.
func (c *memberCare) look(ctx context.Context) error {
	if c.alone() {
		c.nextRound = time.Now().Add(c.options.DefragmentationPeriod)
		return c.advertise(ctx)
	}
	members, err := c.list(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.promoteConfirmed(ctx, members), c.defragmentMembers(ctx))
}

// list returns all members, after a quorum has confirmed that the list is the last.
func (c *memberCare) list(ctx context.Context) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, c.memberPace.ask)
	defer cancel()
	response, err := c.client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the members: %w", err)
	}
	return response.Members, nil
}

// advertise tells the cluster the peer URL of a member that is alone, where that of before it had one still stands.
// Others join only after it.
func (c *memberCare) advertise(ctx context.Context) error {
	self, peerURLs := c.etcd.Server.Cluster().Members()[0], []string{c.options.self().PeerURL}
	if slices.Equal(self.PeerURLs, peerURLs) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.memberPace.change)
	defer cancel()
	if _, err := c.client.MemberUpdate(ctx, uint64(self.ID), peerURLs); err != nil {
		return fmt.Errorf("telling the cluster the peer URL of this member: %w", err)
	}
	c.log.Info("others can join this member", zap.Strings("peerURLs", peerURLs))
	return nil
}

// confirmed tells whether the data is known to be no older than the backups in the store.
func (s *Steward) confirmed() (bool, error) {
	_, err := os.Stat(filepath.Join(s.options.DataDir, unconfirmedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return s.backups == nil, err
}

// promoteConfirmed makes voters of learners once the data is known to be no older than the backups: one that leads
// could go on with those, and does not know what this one has noted of its data.
func (c *memberCare) promoteConfirmed(ctx context.Context, members []*etcdserverpb.Member) error {
	confirmed, err := c.confirmed()
	if err != nil {
		return err
	}
	withheld := c.withheld
	isLearner := func(m *etcdserverpb.Member) bool { return m.IsLearner }
	if c.withheld = !confirmed && slices.ContainsFunc(members, isLearner); !c.withheld {
		return c.promote(ctx, members)
	}
	if !withheld {
		c.log.Warn("others get no vote before the store of backups answers: the data may be older than they are")
	}
	return nil
}

// promote makes a voter of each learner that has caught up. It looks at the list each time, so that a promotion which
// got lost is made up for. It leaves those alone that are no configured members.
func (c *memberCare) promote(ctx context.Context, members []*etcdserverpb.Member) error {
	if time.Now().Before(c.next) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.memberPace.change)
	defer cancel()
	for _, m := range members {
		isConfigured := func(configured Member) bool { return slices.Contains(m.PeerURLs, configured.PeerURL) }
		if !m.IsLearner || !slices.ContainsFunc(c.options.Members, isConfigured) {
			continue
		}
		_, err := c.client.MemberPromote(ctx, m.ID)
		if err == nil {
			c.log.Info("a learner has caught up and is a voter now", zap.String("name", m.Name),
				zap.String("member", fmt.Sprintf("%x", m.ID)))
			c.delay = c.memberPace.retry
			continue
		}
		c.next = time.Now().Add(c.delay)
		c.delay = min(2*c.delay, c.memberPace.mostRetry)
		if errors.Is(err, rpctypes.ErrMemberLearnerNotReady) {
			return nil
		}
		return fmt.Errorf("promoting learner %x (%s): %w", m.ID, m.Name, err)
	}
	return nil
}

// backUpWhileLeading saves changes in the store whenever this member leads, until ctx is done. Should two members
// believe for a moment that they do, their backups fork, and either branch is right: what a member tells of a change
// is what a quorum has agreed on.
//
// Where ctx is done already, that is an orderly stop, before which a last delta is saved.
func (s *Steward) backUpWhileLeading(ctx context.Context) {
	for ; s.backups != nil; pause(ctx, s.memberPace.care) {
		if s.leads() {
			leads, end := s.leadership(ctx)
			err := s.backUp(ctx, leads)
			if err != nil && leads.Err() == nil {
				s.log.Error("backing up the etcd failed, it is tried again", zap.Error(err))
			}
			end()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// leadership is done when this member no longer leads; not when ctx is done, which is followed by a last delta.
func (s *Steward) leadership(ctx context.Context) (context.Context, func()) {
	leads, lost := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer lost()
		for s.leads() {
			select {
			case <-leads.Done():
				return
			case <-s.etcd.Server.StopNotify():
				return
			case <-s.etcd.Server.LeaderChangedNotify():
			case <-time.After(s.memberPace.care):
			}
		}
	}()
	return leads, lost
}

// backUp follows this member until ctx is done or it no longer leads.
func (s *Steward) backUp(ctx, leads context.Context) error {
	f, err := s.newFollower(leads)
	if err != nil {
		return err
	}
	s.log.Info("this member leads, and saves changes in the store", zap.Int64("revision", f.started))
	verifying, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(leads, cancel)()
	var running sync.WaitGroup
	running.Go(func() { s.backups.verifyRegularly(verifying, s.etcd.Server.Backend().Size) })
	f.run(ctx, leads)
	cancel()
	running.Wait()
	s.log.Info("this member no longer saves changes in the store")
	return nil
}
