package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

func TestThreeMembersAreOneCluster(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.voters(t)
	c.write(t, 0, 20)
	c.check(t, 20)
	c.processes[0].waitUntil(t, "the leader, and nobody else, says that it leads", func() error {
		leader := c.leader(t)
		for i, p := range c.processes {
			if told := p.told(t); told.Leads != (i == leader) {
				return fmt.Errorf("member %d says that it leads: %v; the leader is %d", i, told.Leads, leader)
			}
		}
		return nil
	})
	c.stop(t)

	c.launch(t)
	c.waitReady(t)
	c.check(t, 20)
	for i, p := range c.processes {
		if log := p.log(); strings.Contains(log, "as a learner") || strings.Contains(log, "not stopped in order") {
			t.Errorf("member %d did not just go on:\n%s", i, log)
		}
	}
}

// One that was stopped, as that of a control plane which sleeps, is started together with the others.
func TestASingleMemberGrows(t *testing.T) {
	for name, optionsOf := range map[string]func(*testCluster, *testing.T) Options{
		"one that listens for peers": func(c *testCluster, _ *testing.T) Options { return c.singleOptions() },
		"one of before":              (*testCluster).optionsOfBefore,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t)
			c.store(t)
			c.options[0].BackupDir = t.TempDir()
			c.checkGrowth(t, c.grow(t, optionsOf(c, t), 50))
		})
	}
}

// checkGrowth checks an etcd that has grown after 50 writes, given a copy of what it was.
func (c *testCluster) checkGrowth(t *testing.T, alone string) {
	t.Helper()
	c.waitReady(t)
	for _, m := range c.voters(t) {
		if m.PeerURLs[0] == advertisedPeerURL {
			t.Errorf("%v is where nobody reaches it", m)
		}
	}
	c.write(t, 50, 5)
	c.check(t, 55)
	// It goes on where it was: clients notice nothing.
	before, err := Inspect(alone)
	if err != nil {
		t.Fatal(err)
	}
	if after := c.processes[0].revision(t); after < before+5 || after > before+100 {
		t.Errorf("revision %d became %d by five writes and what of them was tried again", before, after)
	}
	// It could be any of them now.
	c.processes[0].kill(t)
	c.waitReady(t, 1, 2)
	c.write(t, 55, 5)
}

// It serves on, in the same process, while the others join it. Only then it is started as one of them.
func TestASingleMemberServesWhileItGrows(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launchSingle(t)
	c.write(t, 0, 20)
	c.launch(t, 1, 2)
	written := 20
	// The wait fails when the process of the first ends.
	c.processes[0].waitUntil(t, "others that have joined", func() error {
		c.write(t, written, 1)
		written++
		return errors.Join(c.processes[1].ready(), c.processes[2].ready())
	})
	before := c.voters(t)
	c.processes[0].stop(t)
	c.waitReady(t, 1, 2)
	c.write(t, written, 5)

	c.launch(t, 0)
	c.waitReady(t)
	c.check(t, written+5)
	if same := common(before, c.voters(t)); same != memberCount {
		t.Errorf("%d of the members are as before", same)
	}
}

// With the first start that has it listen for peers, a single member of before tells where others reach it.
func TestASingleMemberOfBeforeListensForPeers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	before := launch(t, c.optionsOfBefore(t))
	before.waitUntil(t, "ready", before.ready)
	c.write(t, 0, 5)
	before.stop(t)

	c.launchSingle(t)
	want := c.options[0].Members[0]
	c.processes[0].waitUntil(t, "the peer URL of the member", func() error {
		response, err := c.client.MemberList(t.Context())
		if err != nil {
			return err
		}
		if m := response.Members[0]; m.Name != want.Name || !slices.Equal(m.PeerURLs, []string{want.PeerURL}) {
			return fmt.Errorf("it is %v", m)
		}
		return nil
	})
	c.othersJoin(t, 5)
}

// othersJoin starts the two members that are missing, and waits until all three vote and have so many keys.
func (c *testCluster) othersJoin(t *testing.T, keys int) {
	t.Helper()
	c.launch(t, 1, 2)
	c.waitReady(t)
	c.voters(t)
	c.check(t, keys)
}

// A single member has nobody to wait for. Others join what came of its data.
func TestASingleMemberThatListensForPeersIsRestored(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, o *Options){
		"a lost volume":      func(t *testing.T, o *Options) { o.DataDir = t.TempDir() },
		"a damaged database": func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t)
			c.store(t)
			c.launchSingle(t)
			c.write(t, 0, 20)
			c.processes[0].waitForStore(t, c.processes[0].revision(t))
			c.processes[0].kill(t)
			harm(t, &c.options[0])

			c.launchSingle(t)
			c.processes[0].waitForLog(t, "RESTORED")
			c.othersJoin(t, 20)
		})
	}
}

// What was started as a single member is one of several once others have joined it, whatever becomes of its data: that
// of backups beside theirs would be a second cluster.
func TestASingleMemberThatHasGrownIsRestoredByNoBackup(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, o *Options){
		"intact data":        func(*testing.T, *Options) {},
		"a lost volume":      func(t *testing.T, o *Options) { o.DataDir = t.TempDir() },
		"a damaged log":      func(t *testing.T, o *Options) { damageLog(t, o.DataDir) },
		"a damaged database": func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t)
			c.store(t)
			c.launchSingle(t)
			c.write(t, 0, 20)
			c.processes[0].waitForStore(t, c.processes[0].revision(t))
			c.launch(t, 1, 2)
			c.waitReady(t)
			c.processes[0].kill(t)
			harm(t, &c.options[0])
			c.waitReady(t, 1, 2)
			c.write(t, 20, 5)

			c.launchSingle(t)
			c.waitReady(t)
			c.voters(t)
			c.check(t, 25)
			if log := c.processes[0].log(); strings.Contains(log, "RESTORED") || strings.Contains(log, "REBUILT") {
				t.Errorf("it did not go on, or join again:\n%s", log)
			}
		})
	}
}

// Without quorum, it waits as any of several does.
func TestASingleMemberThatHasGrownWaitsForAQuorum(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launchSingle(t)
	c.launch(t, 1, 2)
	c.waitReady(t)
	for _, p := range c.processes {
		p.kill(t)
	}
	c.options[0].DataDir = t.TempDir()
	c.launch(t, 1)
	c.waitData(t, 1)
	c.processes[0] = launch(t, c.singleOptions())
	c.processes[0].waitForLog(t, quorumAdvice)
	if hasData(c.options[0].DataDir) {
		t.Error("it has made data")
	}
}

// Its etcd serves while nobody can join yet.
func TestAGrowingMemberWaitsForNobody(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	alone := newTestSteward(c.options[0], zap.NewNop())
	if err := alone.startEmpty(0); err != nil {
		t.Fatal(err)
	}
	c.launch(t, 0)
	c.waitReady(t, 0)
	c.write(t, 0, 5)
	c.launch(t, 1, 2)
	c.waitReady(t)
	c.check(t, 5)
}

// A single member whose data may be older than the backups must not hand it on to members that do not know of that:
// as long as they have no vote, they do not lead, and save nothing.
func TestASingleMemberGrowsOnlyOnceItsDataIsConfirmed(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	bucket := c.options[0].Store.Bucket
	c.launchSingle(t)
	c.write(t, 0, 5)
	c.processes[0].stop(t)
	rename(t, bucket, bucket+".hidden")

	c.launchSingle(t)
	c.launch(t, 1, 2)
	c.processes[0].waitForLog(t, "others get no vote before the store of backups answers")
	c.waitLearner(t)
	c.write(t, 5, 1)
	// Who is started again remembers that.
	c.processes[0].kill(t)
	c.launchSingle(t)
	c.processes[0].waitForLog(t, "others get no vote before the store of backups answers")
	c.write(t, 6, 1)
	response, err := c.connect(t, c.options[0]).MemberList(t.Context())
	if err != nil || len(response.Members) != 2 || response.Members[0].IsLearner == response.Members[1].IsLearner {
		t.Errorf("the members are %v, %v", response, err)
	}
	rename(t, bucket+".hidden", bucket)
	c.waitReady(t)
	c.check(t, 7)
}

// The data of others cannot be replaced by that of a point in time.
func TestNoPointInTimeIsRestoredOnceAnotherHasJoined(t *testing.T) {
	c := newTestCluster(t)
	c.store(t)
	options := c.singleOptions()
	options.Restore = request.Restore{ID: "one", To: time.Now().UTC().Format(time.RFC3339)}
	s := newTestSteward(options, zap.NewNop())
	if err := errors.Join(s.readCertificates(), s.prepare(t.Context()), s.start(t.Context())); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.stop() }()
	if _, err := s.client.MemberAddAsLearner(t.Context(), []string{options.Members[1].PeerURL}); err != nil {
		t.Fatal(err)
	}
	if err := s.makeRequested(t.Context()); err == nil || !strings.Contains(err.Error(), "has joined the etcd") {
		t.Errorf("got %v", err)
	}
}

// singleOptions are those of the first member while there are no others.
func (c *testCluster) singleOptions() Options {
	single := c.options[0]
	single.SingleMember = true
	return single
}

// optionsOfBefore are those of a single member before it listened for peers. It had another name then.
func (c *testCluster) optionsOfBefore(t *testing.T) Options {
	t.Helper()
	single := c.options[0]
	single.Name = "etcd"
	single.Members, single.PeerCertFile, single.PeerKeyFile, single.PeerTrustedCAFile = nil, "", "", ""
	single.ListenPeerURL = "http://" + freeAddress(t)
	return single
}

// launchSingle starts the first member while there are no others, or as if that were so, and waits until it serves.
func (c *testCluster) launchSingle(t *testing.T) {
	t.Helper()
	c.processes[0] = launch(t, c.singleOptions())
	c.processes[0].client = c.client
	c.waitReady(t, 0)
}

func TestALostOrDamagedMemberJoinsAgain(t *testing.T) {
	for name, test := range map[string]struct {
		ordinal int
		harm    func(t *testing.T, o *Options)
	}{
		"the volume of the first": {0, func(t *testing.T, o *Options) { o.DataDir = t.TempDir() }},
		"the directory of another": {
			2, func(t *testing.T, o *Options) { removeAll(t, filepath.Join(o.DataDir, memberDir)) },
		},
		"the log of the first": {0, func(t *testing.T, o *Options) { damageLog(t, o.DataDir) }},
		"the database of another": {
			1, func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t)
			c.store(t)
			c.launch(t)
			c.waitReady(t)
			c.write(t, 0, 20)
			before := c.voters(t)
			c.processes[test.ordinal].kill(t)
			test.harm(t, &c.options[test.ordinal])
			c.write(t, 20, 5)

			c.launch(t, test.ordinal)
			c.waitReady(t)
			c.check(t, 25)
			if others := common(before, c.voters(t)); others != memberCount-1 {
				t.Errorf("%d of the members are as before", others)
			}
			log := c.processes[test.ordinal].log()
			if !strings.Contains(log, "joins them again") || strings.Contains(log, "RESTORED") ||
				strings.Contains(log, "REBUILT") {
				t.Errorf("it did not just join again:\n%s", log)
			}
		})
	}
}

// common counts the members that two lists have.
func common(a, b []*etcdserverpb.Member) int {
	known := map[uint64]bool{}
	for _, m := range a {
		known[m.ID] = true
	}
	count := 0
	for _, m := range b {
		if known[m.ID] {
			count++
		}
	}
	return count
}

// The way that the log advises leads back to what was backed up, and nothing else does.
func TestALostQuorumIsForPeople(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 20)
	c.processes[0].waitForStore(t, c.processes[0].revision(t))
	for _, p := range c.processes {
		p.kill(t)
	}
	for i := range 2 {
		c.options[i].DataDir = t.TempDir()
	}
	c.launch(t)
	for i, p := range c.processes {
		p.waitForLog(t, quorumAdvice)
		if hasData(c.options[i].DataDir) != (i == 2) {
			t.Errorf("member %d has made data, or lost it", i)
		}
		if err := p.ready(); err == nil || !strings.Contains(err.Error(), "waiting for") {
			t.Errorf("member %d says %v", i, err)
		}
	}
	for i, p := range c.processes {
		p.kill(t)
		c.options[i].DataDir = t.TempDir()
	}
	c.launch(t)
	c.waitReady(t)
	c.voters(t)
	c.check(t, 20)
	if log := c.processes[0].log(); !strings.Contains(log, "RESTORED") {
		t.Errorf("it was not restored:\n%s", log)
	}
}

// The first member, without data, may be the one that has lost it.
func TestTheFirstMemberWaitsForAllOthers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t, 0, 1)
	c.processes[0].waitForLog(t, "which may have data, do not answer")
	for i := range 2 {
		if hasData(c.options[i].DataDir) {
			t.Errorf("member %d has made data", i)
		}
	}
	c.launch(t, 2)
	c.waitReady(t)
	c.voters(t)
}

// grow starts a single member, stops it after some writes, and has it grow. It returns a copy of what it was.
func (c *testCluster) grow(t *testing.T, single Options, writes int) (alone string) {
	t.Helper()
	p := launch(t, single)
	p.waitUntil(t, "ready", p.ready)
	c.write(t, 0, writes)
	p.stop(t)
	alone = t.TempDir()
	if err := os.CopyFS(alone, os.DirFS(single.DataDir)); err != nil {
		t.Fatal(err)
	}
	c.launch(t)
	return alone
}

// Data that was alone at its time starts no second cluster beside the one that came of it.
func TestDataOfBeforeTheOthersJoinedIsReplaced(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	alone := c.grow(t, c.singleOptions(), 10)
	c.waitReady(t)
	c.write(t, 10, 10)
	for _, p := range c.processes {
		p.kill(t)
	}
	c.options[0].DataDir = alone
	c.launch(t, 1)
	c.waitData(t, 1)
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "of a time before they joined")
	c.launch(t, 2)
	c.waitReady(t)
	c.voters(t)
	c.check(t, 20)
}

func TestDataOfAnotherClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.processes[0].kill(t)
	c.options[0].DataDir = t.TempDir()
	if err := New(c.options[0], zap.NewNop()).startEmpty(0); err != nil {
		t.Fatal(err)
	}
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "move away what is not needed")
	c.write(t, 0, 10)
	c.processes[0].kill(t)
	if own, err := identify(c.options[0].DataDir); err != nil || !own.alone {
		t.Errorf("the data is now that of %+v, %v", own, err)
	}
}
