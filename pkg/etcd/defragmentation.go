package etcd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// An etcd that defragments answers nothing meanwhile. So the members take turns, which the leader gives: the followers
// first, itself last, each only when all others answer. A member does what it is told only by the leader that it
// knows, of the term that it knows, and decides by itself whether it is worth it and whether there is room.

const (
	// defragmentPath is where a member takes its turn, on its client URL. Clients can defragment an etcd anyway.
	defragmentPath = "/etcd-steward/defragment"
	// turnTimeout is how long a turn may take.
	turnTimeout = 15 * time.Minute
)

// turn is what a leader sends.
type turn struct {
	Leader uint64 `json:"leader"`
	Term   uint64 `json:"term"`
}

// inTurn returns the members in the order in which they defragment.
func inTurn(members []*etcdserverpb.Member, leader uint64) []*etcdserverpb.Member {
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

// defragmentInTurns has all members defragment, one after the other, when that is due.
func (c *memberCare) defragmentInTurns(ctx context.Context) error {
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
	for _, m := range inTurn(members, uint64(c.etcd.Server.MemberID())) {
		if err := c.giveTurn(ctx, m); err != nil {
			return fmt.Errorf("members defragment in turns: that of %s: %w", m.Name, err)
		}
	}
	return nil
}

// giveTurn has one member defragment if all others answer, and waits until it has.
func (c *memberCare) giveTurn(ctx context.Context, m *etcdserverpb.Member) error {
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
		return c.takeTurn(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	body, err := json.Marshal(turn{Leader: uint64(c.etcd.Server.MemberID()), Term: c.etcd.Server.Term()})
	if err != nil {
		return err
	}
	via, err := c.peers.via(c.peers.clientTLS())
	if err != nil {
		return err
	}
	defer via.CloseIdleConnections()
	return do(ctx, via, http.MethodPost, m.ClientURLs[0]+defragmentPath, bytes.NewReader(body), &turn{})
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

// takeTurn has maintenance defragment this member, if it is worth it.
func (s *Steward) takeTurn(ctx context.Context) error {
	result := make(chan error, 1)
	select {
	case s.errands <- func() { result <- s.defragmentInTurn() }:
	case <-ctx.Done():
		return ctx.Err()
	}
	// It does not end before it is done, whoever still waits for that.
	return <-result
}

// defragmentInTurn defragments if it is worth it.
func (s *Steward) defragmentInTurn() error {
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

// serveDefragmentation takes a turn that the leader gives.
func (s *Steward) serveDefragmentation(w http.ResponseWriter, r *http.Request) {
	var given turn
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostAnswered)).Decode(&given); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	server := s.etcd.Server
	if s.leads() || given != (turn{Leader: uint64(server.Leader()), Term: server.Term()}) {
		http.Error(w, fmt.Sprintf("the leader is %x of term %d", uint64(server.Leader()), server.Term()),
			http.StatusConflict)
		return
	}
	if err := s.takeTurn(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(given)
}
