package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// A byte that a disk has changed in a value is served by etcd: no page of its database has a checksum. But all members
// have the same hash of a revision, which etcd reckons (HashKV). Each member compares its own with those of the others,
// before it serves and after each compaction. One that differs from a quorum of the others joins them again; without
// such a quorum it is not known who is right, and it is only told. What a single member does, changed.go tells.
//
// Etcd's own checks do not fit, and stay off. With --experimental-initial-corrupt-check, a member whose hash differs
// from that of any other does not start: the good ones neither, beside a bad one, and it compares before the member has
// caught up, so that after a compaction there is nothing to compare. --experimental-corrupt-check-time and
// --experimental-compact-hash-check-enabled raise the alarm CORRUPT, by which all members refuse reads and writes until
// a person ends it.

// agreement is what a comparison with the other members came to.
type agreement string

const (
	// unknownAgreement says that too few could be asked.
	unknownAgreement agreement = "unknown"
	// likeQuorum and unlikeQuorum say what a quorum agrees on: what this member has too, or something else.
	likeQuorum   agreement = "like a quorum"
	unlikeQuorum agreement = "unlike a quorum"
	// unlikeSome says that there are differences, and no quorum agrees.
	unlikeSome agreement = "unlike some"
)

// memberHash is the hash of one member.
type memberHash struct {
	member string
	hash   uint32
	// err says why there is none that can be compared.
	err error
}

// comparison of a member with the others.
type comparison struct {
	agreement agreement
	// revision of which the hashes are.
	revision int64
	own      memberHash
	others   []memberHash
	// hopeless says that asking again finds no more: too many may reckon otherwise for a quorum to agree with this
	// member or against it, or no member takes the write that they would have to compare.
	hopeless bool
}

// reckon finds what hashes of one revision agree on; own is one of those that a quorum needs unless the member has no
// vote.
func (c *comparison) reckon(quorum int, hasVote bool) {
	alike := map[uint32]int{}
	c.agreement = unknownAgreement
	if c.own.err != nil {
		return
	}
	for _, other := range c.others {
		if other.err == nil {
			alike[other.hash]++
		}
	}
	withOwn := alike[c.own.hash]
	if hasVote {
		withOwn++
	}
	if withOwn >= quorum {
		c.agreement = likeQuorum
		return
	}
	for hash, members := range alike {
		if hash == c.own.hash {
			continue
		}
		if c.agreement = unlikeSome; members >= quorum {
			c.agreement = unlikeQuorum
			return
		}
	}
}

// decided tells whether asking again would change nothing.
func (c *comparison) decided() bool {
	return c.agreement == likeQuorum || c.agreement == unlikeQuorum || c.hopeless
}

// despair finds whether it is hopeless, once all others have answered or failed to.
func (c *comparison) despair(quorum int, hasVote bool) {
	comparable := 0
	for _, other := range c.others {
		if !errors.Is(other.err, errOtherVersion) {
			comparable++
		}
	}
	if hasVote {
		comparable++
	}
	c.hopeless = comparable < quorum
}

// describe says what the hashes are.
func (c *comparison) describe() string {
	all := []string{fmt.Sprintf("of revision %d, its hash is %08x", c.revision, c.own.hash)}
	for _, other := range c.others {
		if other.err == nil {
			all = append(all, fmt.Sprintf("that of %s %08x", other.member, other.hash))
		}
	}
	return strings.Join(all, ", ")
}

// errors says why hashes are not known.
func (c *comparison) errors() error {
	all := []error{c.own.err}
	for _, other := range c.others {
		if other.err != nil {
			all = append(all, fmt.Errorf("%s: %w", other.member, other.err))
		}
	}
	return errors.Join(all...)
}

var (
	// errIncomparable says that two members have not compacted alike yet.
	errIncomparable = errors.New("its hash cannot be compared yet")
	// errOtherVersion says that two members may not reckon alike.
	errOtherVersion = errors.New("its hash cannot be compared")
)

// compare compares once, at a revision; 0 is the newest that this member has. For a hash that it has not reckoned while
// it compacted, an etcd reads all its data and applies nothing meanwhile. So the others are asked one after the other,
// the leader last, and no more of them than a quorum needs. None is waited for much longer than the own hash took.
func (s *Steward) compare(ctx context.Context, revision int64) comparison {
	c := comparison{agreement: unknownAgreement}
	if revision == 0 {
		if err := s.catchUp(ctx); err != nil {
			c.own.err, c.hopeless = err, errors.Is(err, rpctypes.ErrNoSpace)
			return c
		}
	}
	began := time.Now()
	own, err := s.client.HashKV(ctx, "", revision)
	if err != nil {
		c.own.err = err
		return c
	}
	c.revision, c.own.hash = own.HashRevision, own.Hash
	looks, asks := peers{&s.options, s.memberPace.ask}, peers{&s.options, s.memberPace.ask + 4*time.Since(began)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	members := s.etcd.Server.Cluster().Members()
	voters := slices.DeleteFunc(members, func(m *membership.Member) bool { return m.IsLearner })
	self := func(m *membership.Member) bool { return m.ID == s.etcd.Server.MemberID() }
	hasVote, quorum := slices.ContainsFunc(voters, self), len(voters)/2+1
	others := slices.DeleteFunc(voters, self)
	answers := make(chan looked, len(others))
	for _, other := range others {
		go func() { answers <- looks.look(ctx, other) }()
	}
	var leaders []looked
	c.reckon(quorum, hasVote)
	for waiting := len(others); waiting+len(leaders) > 0 && !c.decided(); c.reckon(quorum, hasVote) {
		var next looked
		if waiting == 0 {
			next, leaders = leaders[0], leaders[1:]
		} else {
			next = <-answers
			if waiting--; next.leads && waiting > 0 {
				leaders = append(leaders, next)
				continue
			}
		}
		c.others = append(c.others, asks.hash(ctx, next, own))
	}
	if c.agreement == unknownAgreement {
		c.despair(quorum, hasVote)
	}
	return c
}

// catchUp waits until this member has all that a quorum had when it was asked, compactions too: what it has before that
// can seldom be compared. Where nothing was written since a compaction, it writes.
func (s *Steward) catchUp(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, s.memberPace.ask)
	defer cancel()
	if _, err := currentRevision(asking, s.client); err != nil {
		return fmt.Errorf("catching up with the other members: %w", err)
	}
	if kv := s.etcd.Server.KV(); kv.Rev() > kv.FirstRev() {
		return nil
	}
	if err := s.writeToCompare(ctx); err != nil {
		return fmt.Errorf("nothing was written since a compaction: %w", err)
	}
	return nil
}

// comparedKey is written to have a revision to compare. API servers have keys below /registry.
const comparedKey = "etcd-steward/compared"

// writeToCompare makes a revision that nobody has compacted. Of the one that was compacted last, a member returns the
// hash that it reckoned while it compacted, which is of all that there was since the compaction before; but one that
// was started since then has only what is left, and reckons another one. These cannot be compared, and as long as
// nothing is written there is nothing else.
func (s *Steward) writeToCompare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.memberPace.ask)
	defer cancel()
	_, err := s.client.Put(ctx, comparedKey, "")
	return err
}

// looked is another member, of which err says why its hash cannot be compared.
type looked struct {
	*membership.Member
	leads bool
	err   error
}

// look finds out whether it is worth it to ask another member for its hash. Versions of etcd may reckon differently, as
// those before 3.5.16 did.
func (p *peers) look(ctx context.Context, other *membership.Member) looked {
	found := looked{Member: other}
	if len(other.ClientURLs) == 0 {
		found.err = errors.New("it has not started")
		return found
	}
	client, err := p.connect(other.ClientURLs)
	if err != nil {
		found.err = err
		return found
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	told, err := client.Status(ctx, other.ClientURLs[0])
	if err != nil {
		found.err = err
		return found
	}
	id := told.Header.GetMemberId()
	switch {
	case id != uint64(other.ID):
		found.err = fmt.Errorf("%s is answered by member %x, it is %x", other.ClientURLs[0], id, uint64(other.ID))
	case told.Version != version.Version:
		found.err = fmt.Errorf("%w: it is of version %s, this one of %s", errOtherVersion, told.Version,
			version.Version)
	}
	found.leads = told.Leader == id
	return found
}

// hash asks another member for its hash of what an own one is of.
func (p *peers) hash(ctx context.Context, other looked, own *clientv3.HashKVResponse) memberHash {
	if other.err != nil {
		return memberHash{member: other.Name, err: other.err}
	}
	client, err := p.connect(other.ClientURLs)
	if err != nil {
		return memberHash{member: other.Name, err: err}
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	got, err := client.HashKV(ctx, other.ClientURLs[0], own.HashRevision)
	if err == nil {
		err = sameRevisions(own, got)
	}
	if err != nil {
		return memberHash{member: other.Name, err: err}
	}
	return memberHash{member: other.Name, hash: got.Hash}
}

// sameRevisions makes sure that two hashes are of the same: up to the same revision, after the same compaction. One
// that has not got so far, or has compacted more, differs without being wrong.
func sameRevisions(own, got *clientv3.HashKVResponse) error {
	if got.HashRevision != own.HashRevision || got.CompactRevision != own.CompactRevision {
		return fmt.Errorf("%w: it is of revision %d after compaction %d, this one of %d after %d", errIncomparable,
			got.HashRevision, got.CompactRevision, own.HashRevision, own.CompactRevision)
	}
	return nil
}

// compareLong compares again until a quorum agrees, for some time: the members have to catch up and compact. After that
// it returns what was found last.
func (s *Steward) compareLong(ctx context.Context, revision int64) comparison {
	ctx, cancel := context.WithTimeout(ctx, s.memberPace.compare)
	defer cancel()
	var last comparison
	for delay := s.memberPace.retry; ; delay = min(2*delay, s.memberPace.mostRetry) {
		if c := s.compare(ctx, revision); c.agreement != unknownAgreement || last.agreement != unlikeSome {
			last = c
		}
		if last.decided() {
			return last
		}
		if pause(ctx, delay); ctx.Err() != nil {
			return last
		}
	}
}

// compareSurely is compareLong, but does not find at once that the data has to go. A hash of the past is no reason for
// that; nor are those of a moment in which nothing but deleted keys is there, which etcd reckons in one way before it
// has compacted them, and in another one after. So it writes, and compares again.
func (s *Steward) compareSurely(ctx context.Context, revision int64) comparison {
	first := s.compareLong(ctx, revision)
	if first.agreement != unlikeQuorum {
		return first
	}
	if err := s.writeToCompare(ctx); err != nil {
		s.log.Warn("nothing can be written to compare the data again; it is compared as it is", zap.Error(err))
	}
	second := s.compareLong(ctx, 0)
	if second.agreement == unknownAgreement {
		first.agreement = unlikeSome
		return first
	}
	return second
}

// startCompared starts etcd, and has it serve when its data was compared with that of the other members. Data that
// differs is kept aside, and the member joins again.
func (s *Steward) startCompared(ctx context.Context) error {
	for {
		// Who waits for a member that starts without others is not refused for a moment.
		if !s.single && s.joining == "" {
			s.gate.close()
		}
		if err := s.start(ctx); err != nil {
			return err
		}
		// Of a member that has just joined, the data comes yet.
		if s.alone() || s.joining != "" {
			break
		}
		s.gate.close()
		s.health.set(status.Comparing)
		c := s.compareSurely(ctx, 0)
		if !s.mustJoinAgain(c) {
			break
		}
		if err := s.joinAgain(ctx, c); err != nil {
			return err
		}
	}
	// Who ends meanwhile has not compared, and serves nobody either.
	if ctx.Err() == nil {
		s.gate.open()
	}
	return nil
}

// mostJoins is how often a member joins again, within memberPace.again, because it differs. When that does not help,
// the reason is another one than what a disk changes.
const mostJoins = 3

// mustJoinAgain tells of a comparison, and whether the data has to go.
func (s *Steward) mustJoinAgain(c comparison) bool {
	reason := "no quorum agrees"
	switch c.agreement {
	case likeQuorum:
		s.recoveries.settled(status.Members)
		return false
	case unlikeQuorum:
		if s.recoveries.count(status.DataDiffers, s.memberPace.again) < mostJoins {
			return true
		}
		reason = fmt.Sprintf("a quorum agrees on other data, and joining again %d times did not help", mostJoins)
	case unknownAgreement:
		s.log.Warn("the data could not be compared with that of the other members", zap.Error(c.errors()))
		return false
	}
	s.log.Error("THE DATA DIFFERS from that of other members, and stays as it is", zap.String("hashes", c.describe()),
		zap.String("it is", string(c.agreement)), zap.NamedError("others", c.errors()))
	s.recoveries.differs(status.Difference{From: status.Members, Message: reason + ": " + c.describe()})
	return false
}

// joinAgain stops an etcd whose data is not that of a quorum of the others, and prepares to join them.
func (s *Steward) joinAgain(ctx context.Context, c comparison) error {
	s.log.Error("THE DATA DIFFERS from that of a quorum of the others", zap.String("hashes", c.describe()))
	if err := s.stop(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.options.DataDir, cleanMarker)); err != nil {
		return err
	}
	s.single = false
	return s.prepareMember(ctx, dataDiffering, errors.New(c.describe()))
}

// compareAfterCompactions compares some time after each compaction, until ctx is done: all members have then reckoned
// the hash of what was compacted. A member that has to join again stops to serve; it does the rest when it is started.
func (s *Steward) compareAfterCompactions(ctx context.Context) {
	last := s.compactedHash().Revision
	for ; ctx.Err() == nil; pause(ctx, s.memberPace.care) {
		revision := s.compactedHash().Revision
		if revision <= last || s.alone() || s.etcd.Server.IsLearner() {
			continue
		}
		last = revision
		pause(ctx, s.memberPace.settle)
		c := s.compareSurely(ctx, revision)
		if ctx.Err() == nil && s.mustJoinAgain(c) {
			s.gate.close()
			// Should the next start find too few to compare with, this is told yet.
			s.recoveries.differs(status.Difference{
				From: status.Members, Message: "a quorum agrees on other data: " + c.describe(),
			})
			s.differing <- fmt.Errorf("the data differs from that of a quorum of the other members (%s); it is given "+
				"up for theirs with the next start", c.describe())
			return
		}
	}
}

// compactedHash is the last that etcd has reckoned while it compacted; zero if it has not since it was started.
func (s *Steward) compactedHash() mvcc.KeyValueHash {
	var last mvcc.KeyValueHash
	for _, hash := range s.etcd.Server.KV().HashStorage().Hashes() {
		if hash.Revision > last.Revision {
			last = hash
		}
	}
	return last
}
