package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

func TestWhatHashesAgreeOn(t *testing.T) {
	const self, other, third uint32 = 1, 2, 3
	silent := memberHash{err: errIncomparable}
	of := func(hash uint32) memberHash { return memberHash{hash: hash} }
	for _, test := range []struct {
		name    string
		others  []memberHash
		learner bool
		want    agreement
	}{
		{"all alike", []memberHash{of(self), of(self)}, false, likeQuorum},
		{"one does not answer", []memberHash{of(self), silent}, false, likeQuorum},
		{"nobody answers", []memberHash{silent, silent}, false, unknownAgreement},
		{"another is wrong", []memberHash{of(other), of(self)}, false, likeQuorum},
		{"this one is wrong", []memberHash{of(other), of(other)}, false, unlikeQuorum},
		{"all differ", []memberHash{of(other), of(third)}, false, unlikeSome},
		{"one differs, one does not answer", []memberHash{of(other), silent}, false, unlikeSome},
		{"of two members, the other differs", []memberHash{of(other)}, false, unlikeSome},
		{"of two members, both are alike", []memberHash{of(self)}, false, likeQuorum},
		{"a learner is wrong", []memberHash{of(other), of(other)}, true, unlikeQuorum},
		{"a learner has one like it", []memberHash{of(self), silent}, true, unknownAgreement},
		{"a learner has both like it", []memberHash{of(self), of(self)}, true, likeQuorum},
	} {
		c := comparison{own: memberHash{hash: self}, others: test.others}
		if c.reckon(2, !test.learner); c.agreement != test.want {
			t.Errorf("%s: got %q, want %q", test.name, c.agreement, test.want)
		}
	}
	c := comparison{own: memberHash{err: errIncomparable}, others: []memberHash{of(0), of(0)}}
	if c.reckon(2, true); c.agreement != unknownAgreement {
		t.Errorf("without an own hash: got %q", c.agreement)
	}
}

// A member that is behind, or has compacted more or less, has another hash without being wrong.
func TestHashesOfOtherRevisionsAreNotCompared(t *testing.T) {
	of := func(revision, compacted int64) *clientv3.HashKVResponse {
		return &clientv3.HashKVResponse{Hash: 1, HashRevision: revision, CompactRevision: compacted}
	}
	for _, test := range []struct {
		name string
		got  *clientv3.HashKVResponse
		want error
	}{
		{"the same", of(7, 5), nil},
		{"less", of(6, 5), errIncomparable},
		{"more", of(8, 5), errIncomparable},
		{"compacted less", of(7, 4), errIncomparable},
		{"compacted more", of(7, 7), errIncomparable},
		{"compacted never", of(7, -1), errIncomparable},
	} {
		if err := sameRevisions(of(7, 5), test.got); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
}

// While etcd is updated member by member, those of the other version are not waited for, but those that do not answer.
func TestMembersOfAnotherVersionAreNotWaitedFor(t *testing.T) {
	other := memberHash{err: fmt.Errorf("%w: it is of version 3.5.0", errOtherVersion)}
	silent := memberHash{err: context.DeadlineExceeded}
	for _, test := range []struct {
		name    string
		others  []memberHash
		learner bool
		want    bool
	}{
		{"all others", []memberHash{other, other}, false, true},
		{"one of the others", []memberHash{other, silent}, false, false},
		{"one of the others, beside a learner", []memberHash{other, silent}, true, true},
		{"none", []memberHash{silent, {err: errIncomparable}}, false, false},
	} {
		c := comparison{own: memberHash{hash: 1}, others: test.others}
		if c.reckon(2, !test.learner); c.decided() {
			t.Errorf("%s: decided too soon", test.name)
		}
		if c.despair(2, !test.learner); c.hopeless != test.want || c.decided() != test.want {
			t.Errorf("%s: got %t, want %t", test.name, c.hopeless, test.want)
		}
	}
}

// TestAttackOneMemberHasNoDataThrownAway plays who has taken over one of three members, which answers with whatever
// hash: neither of the others gives its data up for that.
func TestAttackOneMemberHasNoDataThrownAway(t *testing.T) {
	const right uint32 = 0
	for _, answers := range []memberHash{{hash: right}, {err: errIncomparable}} {
		for lie := range uint32(5) {
			c := comparison{own: memberHash{hash: right}, others: []memberHash{answers, {hash: lie}}}
			if c.reckon(2, true); c.agreement == unlikeQuorum {
				t.Errorf("beside %+v, the hash %d has a member give its data up", answers, lie)
			}
		}
	}
}

func TestTheGateServesNoData(t *testing.T) {
	options := testOptions(t)
	s, _ := startSteward(t, options)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{options.ListenClientURL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	requests := map[string]func(ctx context.Context) error{
		"put":   func(ctx context.Context) error { _, err := client.Put(ctx, "key", "x"); return err },
		"get":   func(ctx context.Context) error { _, err := client.Get(ctx, "key"); return err },
		"lease": func(ctx context.Context) error { _, err := client.Grant(ctx, 60); return err },
		"snapshot": func(ctx context.Context) error {
			body, err := client.Snapshot(ctx)
			if err == nil {
				_, err = body.Read(make([]byte, 1))
			}
			return err
		},
		"a new member": func(ctx context.Context) error {
			_, err := client.MemberAdd(ctx, []string{"http://127.0.0.1:1"})
			return err
		},
	}
	s.gate.close()
	for name, request := range requests {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := request(ctx); err == nil || !isRefused(err) {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
	}
	_, hashed := client.HashKV(t.Context(), options.ListenClientURL, 0)
	_, listed := client.MemberList(t.Context())
	_, told := client.Status(t.Context(), options.ListenClientURL)
	if err := errors.Join(hashed, listed, told); err != nil {
		t.Errorf("other members cannot ask: %v", err)
	}
	s.gate.open()
	delete(requests, "a new member")
	for name, request := range requests {
		if err := request(t.Context()); err != nil {
			t.Errorf("%s, with an open gate: %v", name, err)
		}
	}
}

// isRefused tells of errors of requests that clients try again until they give up.
func isRefused(err error) bool {
	code := grpcstatus.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// liveValue returns key and bytes of the newest value in the database of a stopped etcd whose key has a prefix and that
// was neither written anew nor deleted.
func liveValue(t *testing.T, dataDir, prefix string) (key string, stored []byte) {
	t.Helper()
	db, err := bolt.Open(dbPath(dataDir), 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		seen := map[string]bool{}
		cursor := tx.Bucket(schema.Key.Name()).Cursor()
		for revision, value := cursor.Last(); revision != nil && stored == nil; revision, value = cursor.Prev() {
			var kv mvccpb.KeyValue
			if err := kv.Unmarshal(value); err != nil {
				return err
			}
			if !seen[string(kv.Key)] && len(kv.Value) > 0 && strings.HasPrefix(string(kv.Key), prefix) {
				key, stored = string(kv.Key), bytes.Clone(value)
			}
			seen[string(kv.Key)] = true
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if stored == nil {
		t.Fatalf("no value of %s is in the database", prefix)
	}
	return key, stored
}

// otherBits are those that tests change of a byte of a value: no client writes that, whatever it was.
const otherBits = 0x40

// changeStored changes bits of one byte of what a database has stored, wherever it did, as a disk may. It tells how
// often.
func changeStored(t *testing.T, dataDir string, stored []byte, at int, bits byte) int {
	t.Helper()
	content, err := os.ReadFile(dbPath(dataDir))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for from := 0; ; count++ {
		found := bytes.Index(content[from:], stored)
		if found < 0 {
			return count
		}
		from += found + len(stored)
		overwriteWith(t, dbPath(dataDir), int64(from-len(stored)+at), []byte{stored[at] ^ bits})
	}
}

// changeValue changes a byte of a live value of a stopped etcd, whose key it returns.
func changeValue(t *testing.T, dataDir, prefix string) (key string) {
	t.Helper()
	key, stored := liveValue(t, dataDir, prefix)
	var kv mvccpb.KeyValue
	if err := kv.Unmarshal(stored); err != nil {
		t.Fatal(err)
	}
	if changeStored(t, dataDir, stored, bytes.LastIndex(stored, kv.Value), otherBits) == 0 {
		t.Fatalf("%s is not in the file", key)
	}
	return key
}

// checkJoinedAgain checks that a member tells that it gave its data up for that of the others.
func checkJoinedAgain(t *testing.T, c *testCluster, ordinal int) {
	t.Helper()
	checkRecovery(t, c.processes[ordinal], status.DataDiffers, status.Members, "")
	told := c.processes[ordinal].told(t)
	if text := told.Recoveries[0].Describe(); !strings.Contains(text, "of revision") ||
		!strings.Contains(text, "restored from the other members") || strings.Contains(text, "Missing") {
		t.Errorf("told is %s", text)
	}
	if told.Differs != nil {
		t.Errorf("it is told to differ yet: %+v", told.Differs)
	}
}

// checkAlike checks that all members have a key with a value.
func (c *testCluster) checkAlike(t *testing.T, key, want string) {
	t.Helper()
	for i, o := range c.options {
		response, err := c.connect(t, o).Get(t.Context(), key)
		if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != want {
			t.Errorf("member %d has %v, error %v", i, response, err)
		}
	}
}

func TestAMemberThatDiffersJoinsAgain(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 20)
	before := c.voters(t)
	ordinal := c.leader(t)
	c.processes[ordinal].crash(t)
	key := changeValue(t, c.options[ordinal].DataDir, "key/")
	// What is compacted meanwhile cannot be compared before the member has caught up.
	c.write(t, 20, 5)
	c.compact(t)

	c.launch(t, ordinal)
	c.waitReady(t)
	c.check(t, 25)
	c.checkAlike(t, key, strings.Repeat("x", 1000))
	if others := common(before, c.voters(t)); others != memberCount-1 {
		t.Errorf("%d of the members are as before", others)
	}
	checkJoinedAgain(t, c, ordinal)
	// Before data is given up, something is written to compare it again.
	c.checkAlike(t, comparedKey, "")
}

// A member that gets no hashes of the others serves without: they are where they say that they are not.
func TestAMemberThatGetsNoHashesServes(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 5)
	for i := range c.options {
		c.options[i].AdvertiseClientURL = "https://" + freeAddress(t)
	}
	// With the first start they tell each other of that, with the second one they know it.
	for range 2 {
		c.stop(t)
		c.launch(t)
		c.waitReady(t)
	}
	c.check(t, 5)
	for i, p := range c.processes {
		p.waitForLog(t, "could not be compared")
		if told := p.told(t); told.Differs != nil || len(told.Recoveries) > 0 {
			t.Errorf("member %d tells %+v", i, told)
		}
	}
}

// To reckon a hash, an etcd reads all its data, and applies nothing meanwhile. A follower does so for another one that
// starts, and the leader does not.
func TestAStartHasOneFollowerReadItsData(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 5)
	leader := c.leader(t)
	starts, other := (leader+1)%memberCount, (leader+2)%memberCount
	reads := func(ordinal int) float64 {
		t.Helper()
		count, err := c.processes[ordinal].metric("etcd_mvcc_hash_rev_duration_seconds_count")
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	ofLeader, ofOther := reads(leader), reads(other)
	c.processes[starts].stop(t)
	c.launch(t, starts)
	c.waitReady(t)
	if own := reads(starts); own != 1 {
		t.Errorf("the member that starts reads its data %v times", own)
	}
	if now := c.leader(t); now != leader {
		t.Fatalf("the leader was %d, and is %d", leader, now)
	}
	if l, o := reads(leader)-ofLeader, reads(other)-ofOther; l != 0 || o != 1 {
		t.Errorf("the leader reads its data %v times, the other follower %v times", l, o)
	}
}

// Members that are alike find that without waiting, also where nothing was written since a compaction: those that have
// compacted then have other hashes than those that were started since.
func TestAlikeMembersServeSoon(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 20)
	c.compact(t)
	c.processes[1].stop(t)
	c.launch(t, 1)
	c.waitReady(t)
	c.compact(t)
	c.processes[2].crash(t)
	c.launch(t, 2)
	c.waitReady(t)
	c.compact(t)
	c.checkCompared(t)
	c.stop(t)
	c.launch(t)
	c.waitReady(t)
	c.check(t, 20)
	c.checkCompared(t)
}

// checkCompared checks that all members could compare their data, and have found it alike.
func (c *testCluster) checkCompared(t *testing.T) {
	t.Helper()
	for i, p := range c.processes {
		for _, says := range []string{"could not be compared", "THE DATA DIFFERS"} {
			if log := p.output.String(); strings.Contains(log, says) {
				t.Errorf("member %d says %q:\n%s", i, says, log)
			}
		}
		if told := p.told(t); told.Differs != nil || len(told.Recoveries) > 0 {
			t.Errorf("member %d tells %+v", i, told)
		}
	}
}

// compact compacts all history.
func (c *testCluster) compact(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response, err := c.client.Put(ctx, "compacted", "x")
	if err == nil {
		_, err = c.client.Compact(ctx, response.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A value that is changed while it is served is found with the next compaction.
func TestAMemberThatComesToDifferEnds(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	const value = "a value that no other is like"
	if _, err := c.client.Put(t.Context(), "kept", value); err != nil {
		t.Fatal(err)
	}
	c.processes[1].waitUntil(t, "a value in the database", func() error {
		if changeStored(t, c.options[1].DataDir, []byte(value), 0, otherBits) == 0 {
			return errors.New("it is not there")
		}
		return nil
	})
	c.write(t, 0, 5)
	c.compact(t)
	<-c.processes[1].exited
	if log := c.processes[1].output.String(); !strings.Contains(log, "it is given up for theirs with the next start") {
		t.Errorf("it does not say why it ends:\n%s", log)
	}
	if told := newTestRecoveries(t, c.options[1].DataDir).difference(); told == nil || told.From != status.Members {
		t.Errorf("it does not remember that its data differs: %+v", told)
	}
	c.waitReady(t, 0, 2)

	c.launch(t, 1)
	c.waitReady(t)
	c.checkAlike(t, "kept", value)
	checkJoinedAgain(t, c, 1)
}

// Of two members that differ, nobody knows who is right. The third one tells.
func TestADifferenceWithoutAQuorumIsTold(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 20)
	c.processes[1].crash(t)
	c.write(t, 20, 1)
	c.processes[2].stop(t)
	changeValue(t, c.options[1].DataDir, "key/")

	c.launch(t, 1)
	c.waitReady(t, 0, 1)
	told := c.processes[1].told(t)
	if told.Differs == nil || told.Differs.From != status.Members || len(told.Recoveries) > 0 {
		t.Fatalf("told is %+v", told)
	}
	if text := told.Differs.Describe(); !strings.Contains(text, "no quorum agrees: of revision") {
		t.Errorf("told is %s", text)
	}
	// It serves, and keeps what it has, until a quorum knows better.
	c.write(t, 21, 1)
	c.launch(t, 2)
	c.waitReady(t)
	c.compact(t)
	<-c.processes[1].exited
	c.launch(t, 1)
	c.waitReady(t)
	c.check(t, 22)
	checkJoinedAgain(t, c, 1)
}

// A member that differs again and again, for another reason than its disk, does not join again and again.
func TestJoiningAgainEnds(t *testing.T) {
	s, logs := startSteward(t, testOptions(t))
	c := comparison{agreement: unlikeQuorum, own: memberHash{hash: 1}, others: []memberHash{{hash: 2}, {hash: 2}}}
	for n := range mostJoins {
		if !s.mustJoinAgain(c) {
			t.Fatalf("after %d times it does not join again", n)
		}
		s.recoveries.begin(status.Recovery{Cause: status.DataDiffers})
		s.recoveries.restored(status.Restored{From: status.Members})
		s.recoveries.end()
	}
	if s.mustJoinAgain(c) || s.recoveries.difference() == nil {
		t.Fatalf("told is %+v", s.recoveries.difference())
	}
	if text := s.recoveries.difference().Describe(); !strings.Contains(text, "did not help") {
		t.Errorf("told is %s", text)
	}
	if logs.FilterMessageSnippet("stays as it is").Len() == 0 {
		t.Error("the log does not tell of it")
	}
	s.recoveries.now = func() time.Time { return time.Now().Add(s.memberPace.again) }
	if !s.mustJoinAgain(c) {
		t.Error("it does not join again after some time either")
	}
	if c.agreement = likeQuorum; s.mustJoinAgain(c) || s.recoveries.difference() != nil {
		t.Errorf("told is %+v yet", s.recoveries.difference())
	}
}

// changeOneByte changes what a member has of a key that is not written any more. Whoever reads it must not see that.
func changeOneByte(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
	t.Helper()
	before := fmt.Sprintf("check/%04d/", h.epoch.Add(1)-1)
	h.await(t, 200)
	c.processes[ordinal].crash(t)
	h.await(t, 100)
	key := changeValue(t, c.options[ordinal].DataDir, before)
	c.launch(t, ordinal)
	client := c.connect(t, c.options[ordinal])
	c.processes[ordinal].waitUntil(t, "a member that serves", func() error {
		h.readBy(t.Context(), client, key)
		return c.processes[ordinal].ready()
	})
	c.processes[ordinal].waitUntil(t, "a read", func() error {
		if !h.readBy(t.Context(), client, key) {
			return errors.New("it does not answer")
		}
		return nil
	})
	c.processes[ordinal].waitForLog(t, "joins them again")
}
