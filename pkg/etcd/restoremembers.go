package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// A point in time is restored by the first of three members, when each of the others was asked to restore the same:
//
//   - It leads the others, so that it has all that they agreed on, and removes them, one after the other. It is the
//     only member then, and does what a single one does. Clients are served by nobody meanwhile.
//   - The others find that they were removed, keep their data, and wait. The outcome, which is a part of the data of
//     the first member, tells them that it is done, and which cluster was replaced. Then they keep their data aside,
//     and join as those do that have none.
//   - The first member notes nothing: that others were removed is a part of its data, and so is, after the restore,
//     which cluster was replaced. Whoever is killed finds out where it stopped.
//   - What has the data of the cluster of before is of another cluster, and nobody speaks to it.

// restoreMethod is what a member tells about the point in time that it was asked to restore.
const restoreMethod = "IsAskedToRestore"

// needsOthers tells whether others have to agree to a restore.
func (s *Steward) needsOthers() bool { return s.options.hasPeers() && !s.options.SingleMember }

// gather waits until each of the others is there and asked to restore the same, or waits for that already. Etcd serves
// meanwhile, and is looked after. What is missing in the end is a reason to refuse; with an error, etcd is stopped.
func (s *Steward) gather(ctx context.Context) (missing, err error) {
	s.health.set(status.AwaitingMembers)
	maintained, err := s.startMaintenance(ctx)
	if err != nil {
		maintained()
		return nil, errors.Join(err, s.stop())
	}
	gathering, cancel := context.WithTimeout(ctx, s.memberPace.gather)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.serve(gathering); cancel() }()
	missing = s.awaitOthers(gathering)
	cancel()
	maintained()
	if err := <-ended; err != nil {
		s.closeEtcd()
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), s.stop())
	}
	return missing, nil
}

// awaitOthers waits for the others, and says what is missing.
func (s *Steward) awaitOthers(ctx context.Context) error {
	p := &peers{&s.options, s.memberPace.ask}
	for told := ""; ; pause(ctx, s.memberPace.care) {
		err := s.findMissing(ctx, p)
		if err == nil {
			s.reached("gathered")
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("a point in time is restored when all members are there: %s", cmp.Or(told, err.Error()))
		}
		if told != err.Error() {
			told = err.Error()
			s.log.Warn("a point in time is restored when all members are there; waiting", zap.String("missing", told))
		}
	}
}

// findMissing returns why the others are not ready for a restore.
func (s *Steward) findMissing(ctx context.Context, p *peers) error {
	ctx, cancel := context.WithTimeout(ctx, s.memberPace.ask)
	defer cancel()
	response, err := s.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("listing the members: %w", err)
	}
	for _, m := range response.Members {
		isAt := func(configured Member) bool { return slices.Contains(m.PeerURLs, configured.PeerURL) }
		if !slices.ContainsFunc(s.options.Members, isAt) {
			return fmt.Errorf("member %x (%s) is at %v, which none of --members is", m.ID, m.Name, m.PeerURLs)
		}
		if m.IsLearner {
			return fmt.Errorf("member %x (%s) has not caught up yet", m.ID, m.Name)
		}
	}
	for _, other := range s.options.others() {
		if err := s.checkAsked(ctx, p, other, response.Members); err != nil {
			return fmt.Errorf("%s: %w", other.Name, err)
		}
	}
	return nil
}

// checkAsked makes sure that another member is asked to restore the same, or was removed for that.
func (s *Steward) checkAsked(ctx context.Context, p *peers, other Member, members []*etcdserverpb.Member) error {
	request := s.options.Restore.String()
	for _, m := range members {
		if slices.Contains(m.PeerURLs, other.PeerURL) {
			return p.invoke(ctx, m.ClientURLs, restoreMethod, wrapperspb.String(request), &emptypb.Empty{})
		}
	}
	answer := p.ask(ctx, other)
	if answer.err != nil {
		return answer.err
	}
	if answer.awaits != request {
		return errors.New("it is no member at this time")
	}
	return nil
}

// invoke calls what the steward of another member serves.
func (p *peers) invoke(ctx context.Context, urls []string, method string, request, response any) error {
	if len(urls) == 0 {
		return errors.New("it has not started")
	}
	client, err := p.connect(urls)
	if err != nil {
		return err
	}
	err = client.ActiveConnection().Invoke(ctx, "/"+membersService+"/"+method, request, response)
	return errors.Join(err, client.Close())
}

// confirmAsked answers whether this member is asked to restore the same.
func (s *Steward) confirmAsked(_ context.Context, asked *wrapperspb.StringValue) (*emptypb.Empty, error) {
	if own := s.options.Restore; own.ID == "" || own.String() != asked.GetValue() {
		return nil, grpcstatus.Error(codes.FailedPrecondition, "it is not asked to restore that")
	}
	return &emptypb.Empty{}, nil
}

// removeOthers has the cluster remove all members but this one, which leads it before, and so has all of its data. This
// one serves no clients, so that nobody joins once the others are gone.
func (s *Steward) removeOthers(ctx context.Context) error {
	p := &peers{&s.options, s.memberPace.ask}
	for ; !s.alone(); pause(ctx, s.memberPace.retry) {
		err := s.lead(ctx, p)
		if err == nil {
			s.reached("leading")
			err = s.removeOne(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("becoming the only member: %w", errors.Join(ctx.Err(), err))
		}
		if err != nil {
			s.log.Info("the other members cannot be removed yet; trying again", zap.Error(err))
		}
	}
	s.reached("removed")
	return nil
}

// lead has this member become the leader.
func (s *Steward) lead(ctx context.Context, p *peers) error {
	if s.leads() {
		return nil
	}
	leader := s.etcd.Server.Cluster().Member(s.etcd.Server.Leader())
	if leader == nil {
		return errors.New("there is no leader")
	}
	client, err := p.connect(leader.ClientURLs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.memberPace.change)
	defer cancel()
	if _, err = client.MoveLeader(ctx, uint64(s.etcd.Server.MemberID())); err != nil {
		err = fmt.Errorf("%s does not have this member lead: %w", leader.Name, err)
	}
	return errors.Join(err, client.Close())
}

// removeOne removes one of the others, learners first, of voters the last.
func (s *Steward) removeOne(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.memberPace.change)
	defer cancel()
	response, err := s.client.MemberList(ctx)
	if err != nil {
		return err
	}
	isSelf := func(m *etcdserverpb.Member) bool { return m.ID == uint64(s.etcd.Server.MemberID()) }
	others := slices.DeleteFunc(response.Members, isSelf)
	if len(others) == 0 {
		return nil
	}
	next := slices.MaxFunc(others, func(a, b *etcdserverpb.Member) int {
		if a.IsLearner != b.IsLearner {
			if a.IsLearner {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	s.log.Warn("removing another member, to restore a point in time", zap.String("name", next.Name),
		zap.String("member", fmt.Sprintf("%x", next.ID)))
	if _, err := s.client.MemberRemove(ctx, next.ID); err != nil {
		return err
	}
	s.reached("removing")
	return nil
}

// errLeftBehind says that the etcd of this member was stopped, as others go on without it, or may.
var errLeftBehind = errors.New("the other members have removed this one, or go on in another cluster")

// prepareLeftBehind makes the data directory fit for another start, after errLeftBehind.
func (s *Steward) prepareLeftBehind(ctx context.Context, cause error) error {
	s.log.Warn("this member is left behind; asking the others what it can do", zap.Error(cause))
	s.reached("left")
	pause(ctx, s.memberPace.retry)
	s.single, s.joining, s.withoutClients = false, "", false
	held, damage, err := s.examine(ctx)
	if err != nil {
		return err
	}
	return s.prepareMember(ctx, held, damage)
}

// watchOthers returns true when this member, whose etcd waits for a quorum, is left behind. It returns false when ctx
// is done.
func (s *Steward) watchOthers(ctx context.Context) bool {
	for pause(ctx, s.memberPace.mostRetry); ctx.Err() == nil; pause(ctx, s.memberPace.mostRetry) {
		if s.isLeftBehind(ctx) {
			return true
		}
	}
	return false
}

// watchLeaderless ends serving when this member has no leader and is left behind. One that hangs or is cut off while it
// is removed is never told: when it is back, the others are another cluster, which refuses it.
func (s *Steward) watchLeaderless(ctx context.Context) {
	var without leaderless
	for ; ctx.Err() == nil; pause(ctx, s.memberPace.care) {
		if !without.lasts(s.etcd.Server.Leader() == 0, s.memberPace.patience, time.Now()) {
			continue
		}
		if s.isLeftBehind(ctx) {
			select {
			case s.left <- struct{}{}:
			case <-ctx.Done():
			}
			return
		}
		pause(ctx, s.memberPace.mostRetry)
	}
}

// isLeftBehind asks the others whether they know more than this member, which has no quorum: those who have one do not
// know it, or one of them was removed.
func (s *Steward) isLeftBehind(ctx context.Context) bool {
	p := &peers{&s.options, s.memberPace.ask}
	server := s.etcd.Server
	id, own := uint64(server.Cluster().ID()), uint64(server.MemberID())
	answers := p.askAll(ctx)
	for _, a := range answers {
		if a.own.isRemoved() && a.own.cluster == id && server.Cluster().Member(types.ID(a.own.member)) != nil {
			return true
		}
	}
	found, err := p.findQuorum(ctx, answers)
	if err != nil || found == nil {
		return false
	}
	defer found.close()
	return (found.cluster.id != id || !found.cluster.has(own)) && ctx.Err() == nil
}
