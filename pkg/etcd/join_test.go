package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/zap"
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
		if log := p.log(); strings.Contains(log, "learner") || strings.Contains(log, "not stopped in order") {
			t.Errorf("member %d did not just go on:\n%s", i, log)
		}
	}
}

func TestASingleMemberGrows(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.options[0].BackupDir = t.TempDir()
	alone := c.grow(t, 50)
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

// A single member whose data may be older than the backups must not hand it on to members that do not know of that.
func TestASingleMemberGrowsOnlyOnceItsDataIsConfirmed(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	bucket := c.options[0].Store.Bucket
	single := c.singleOptions(t)
	p := launch(t, single)
	p.waitUntil(t, "ready", p.ready)
	c.write(t, 0, 5)
	p.stop(t)
	rename(t, bucket, bucket+".hidden")

	c.launch(t)
	c.waitReady(t, 0)
	c.processes[1].waitForLog(t, "none of --members is")
	rename(t, bucket+".hidden", bucket)
	c.waitReady(t)
	c.check(t, 5)
}

// singleOptions are those of the first member before there were others. It had another name then.
func (c *testCluster) singleOptions(t *testing.T) Options {
	t.Helper()
	single := c.options[0]
	single.Name = "etcd"
	single.Members, single.PeerCertFile, single.PeerKeyFile, single.PeerTrustedCAFile = nil, "", "", ""
	single.ListenPeerURL = "http://" + freeAddress(t)
	return single
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
func (c *testCluster) grow(t *testing.T, writes int) (alone string) {
	t.Helper()
	single := c.singleOptions(t)
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
	alone := c.grow(t, 10)
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
