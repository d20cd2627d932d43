package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// An etcd that defragments answers nothing meanwhile. So the members do so one after the other, as the leader requests:
// the followers first, itself last, each only when all others answer. A member takes requests only from the leader that
// it knows, of the term that it knows, and decides by itself whether it is worth it and whether there is room.

const (
	// membersService and defragmentMethod are what a member serves to the leader, beside etcd's own services for
	// clients: these can defragment an etcd anyway.
	membersService   = "etcdsteward.Members"
	defragmentMethod = "Defragment"
	// defragmentTimeout is how long one member may take.
	defragmentTimeout = 15 * time.Minute
)

// defragmentOrder returns the members in the order in which they defragment.
func defragmentOrder(members []*etcdserverpb.Member, leader uint64) []*etcdserverpb.Member {
	last := func(m *etcdserverpb.Member) int {
		if m.ID == leader {
			return 1
		}
		return 0
	}
	ordered := slices.Clone(members)
	slices.SortFunc(ordered, func(a, b *etcdserverpb.Member) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return ordered
}

// roundDue tells whether the members are to defragment now: each period, when a compaction has freed space, and when
// one has none.
func (c *memberCare) roundDue(now time.Time) bool {
	periodic := c.options.DefragmentationPeriod > 0 && now.After(c.nextRound)
	freed := c.fragmented.Load() || len(c.spaceAlarms()) > 0
	return now.After(c.soonest) && (periodic || freed)
}

// defragmentMembers has all members defragment, one after the other, when that is due.
func (c *memberCare) defragmentMembers(ctx context.Context) error {
	if !c.roundDue(time.Now()) {
		return nil
	}
	c.fragmented.Store(false)
	defer func() {
		now := time.Now()
		c.nextRound, c.soonest = now.Add(c.options.DefragmentationPeriod), now.Add(c.memberPace.round)
	}()
	members, err := c.list(ctx)
	if err != nil {
		return err
	}
	for _, m := range defragmentOrder(members, uint64(c.etcd.Server.MemberID())) {
		if err := c.defragmentMember(ctx, m); err != nil {
			return fmt.Errorf("members defragment one after the other: %s: %w", m.Name, err)
		}
	}
	return nil
}

// defragmentMember has one member defragment if all others answer, and waits until it has.
func (c *memberCare) defragmentMember(ctx context.Context, m *etcdserverpb.Member) error {
	members, err := c.list(ctx)
	if err != nil {
		return err
	}
	for _, other := range members {
		if err := c.answers(ctx, other); err != nil {
			return fmt.Errorf("%s does not answer: %w", cmp.Or(other.Name, fmt.Sprintf("%x", other.ID)), err)
		}
	}
	if !c.leads() {
		return errors.New("this member leads no longer")
	}
	if m.ID == uint64(c.etcd.Server.MemberID()) {
		return c.defragmentOnRequest(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	return c.peers.requestDefragmentation(ctx, m.ClientURLs, &etcdserverpb.ResponseHeader{
		MemberId: uint64(c.etcd.Server.MemberID()), RaftTerm: c.etcd.Server.Term(),
	})
}

// requestDefragmentation has a member defragment, and waits until it has. The leader tells who it is, and of which
// term.
func (p *peers) requestDefragmentation(ctx context.Context, urls []string,
	leader *etcdserverpb.ResponseHeader) error {
	return p.invoke(ctx, urls, defragmentMethod, leader, &etcdserverpb.DefragmentResponse{})
}

// answers makes sure that a member does: one that defragments does not.
func (c *memberCare) answers(ctx context.Context, m *etcdserverpb.Member) error {
	if len(m.ClientURLs) == 0 {
		return errors.New("it has not started")
	}
	client, err := c.peers.connect(m.ClientURLs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.memberPace.ask)
	defer cancel()
	_, err = client.Get(ctx, "\x00", clientv3.WithSerializable(), clientv3.WithCountOnly())
	return errors.Join(err, client.Close())
}

// defragmentOnRequest has maintenance defragment this member, if it is worth it.
func (s *Steward) defragmentOnRequest(ctx context.Context) error {
	result := make(chan error, 1)
	select {
	case s.errands <- func() { result <- s.defragmentIfWorth() }:
	case <-ctx.Done():
		return ctx.Err()
	}
	// It does not end before it is done, whoever still waits for that.
	return <-result
}

// defragmentIfWorth defragments if it is worth it.
func (s *Steward) defragmentIfWorth() error {
	v, err := s.measure(s.options.DataDir)
	if err != nil {
		return err
	}
	backend := s.etcd.Server.Backend()
	size, inUse := backend.Size(), backend.SizeInUse()
	nearQuota := size > part(s.options.QuotaBackendBytes, compactPercent)
	switch {
	case len(s.spaceAlarms()) > 0 && s.relievedByDefragmenting(v.free < v.resume()):
		return s.defragmentNow(volume.leastReserve)
	case worthDefragmenting(size, inUse), nearQuota && mostlyFree(size, inUse):
		return s.defragmentNow(volume.reserve)
	default:
		return nil
	}
}

// serveMembers serves what others ask of this member.
func (s *Steward) serveMembers(server *grpc.Server) {
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: membersService, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			memberMethod(defragmentMethod, (*Steward).defragmentFor),
			memberMethod(restoreMethod, (*Steward).confirmAsked),
		},
	}, s)
}

// memberMethod is what the generator of gRPC would write: requests pass etcd's own interceptors.
func memberMethod[Request, Response any](name string,
	answer func(*Steward, context.Context, *Request) (*Response, error)) grpc.MethodDesc {
	handle := func(s any, ctx context.Context, decode func(any) error,
		intercept grpc.UnaryServerInterceptor) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		typed := func(ctx context.Context, request any) (any, error) {
			return answer(s.(*Steward), ctx, request.(*Request))
		}
		if intercept == nil {
			return typed(ctx, request)
		}
		info := &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + membersService + "/" + name}
		return intercept(ctx, request, info, typed)
	}
	return grpc.MethodDesc{MethodName: name, Handler: handle}
}

// defragmentFor takes a request of the leader.
func (s *Steward) defragmentFor(ctx context.Context,
	leader *etcdserverpb.ResponseHeader) (*etcdserverpb.DefragmentResponse, error) {
	server := s.etcd.Server
	if s.leads() || leader.MemberId != uint64(server.Leader()) || leader.RaftTerm != server.Term() {
		return nil, grpcstatus.Errorf(codes.FailedPrecondition, "the leader is %x of term %d", uint64(server.Leader()),
			server.Term())
	}
	if err := s.defragmentOnRequest(ctx); err != nil {
		return nil, err
	}
	return &etcdserverpb.DefragmentResponse{}, nil
}
