package etcd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Backups go on with the next leader, and lead to what it has written.
func TestBackupsFollowTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launch(t)
	c.waitReady(t)
	written := 0
	for range 3 {
		c.write(t, written, 10)
		written += 10
		leader := c.leader(t)
		p := c.processes[leader]
		p.waitForStore(t, p.revision(t))
		p.kill(t)
		others := []int{(leader + 1) % 3, (leader + 2) % 3}
		c.waitReady(t, others...)
		c.write(t, written, 10)
		written += 10
		next := c.processes[others[0]]
		next.waitForStore(t, next.revision(t))
		c.launch(t, leader)
		c.waitReady(t)
	}
	for i, p := range c.processes {
		p.kill(t)
		c.options[i].DataDir = t.TempDir()
	}
	c.launch(t)
	c.waitReady(t)
	c.check(t, written)
}

// Only the leader writes to the store.
func TestFollowersWriteNoBackups(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launch(t)
	c.waitReady(t)
	leader := c.leader(t)
	c.write(t, 0, 20)
	c.processes[leader].waitForStore(t, c.processes[leader].revision(t))
	for i, p := range c.processes {
		value, err := p.metric(`etcd_steward_store_bytes_total{kind="delta"}`)
		if err != nil || (value > 0) != (i == leader) {
			t.Errorf("member %d has put %f bytes while %d leads, error %v", i, value, leader, err)
		}
	}
}

func TestMembersDefragmentOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	for i := range c.options {
		c.options[i].QuotaBackendBytes = testQuota
	}
	c.launch(t)
	c.waitReady(t)
	// History fills the quota, as it is written faster than it is compacted.
	value := make([]byte, 1<<20)
	c.processes[0].waitUntil(t, "all defragmented", func() error {
		_, _ = rand.Read(value)
		_, err := c.client.Put(t.Context(), "key/same", string(value))
		if err != nil && !errors.Is(err, rpctypes.ErrNoSpace) {
			return err
		}
		for _, p := range c.processes {
			if !strings.Contains(p.output.String(), `"defragmented"`) {
				return fmt.Errorf("%s has not", p.options.Name)
			}
		}
		return nil
	})
	c.processes[0].waitUntil(t, "writes", func() error {
		_, err := c.client.Put(t.Context(), "key/later", "x")
		return err
	})
}

func TestTheLeaderDefragmentsLast(t *testing.T) {
	members := []*etcdserverpb.Member{{ID: 3, Name: "a"}, {ID: 1, Name: "c"}, {ID: 2, Name: "b"}}
	for leader, want := range map[uint64]string{3: "b c a", 1: "a b c", 2: "a c b"} {
		var got []string
		for _, m := range defragmentOrder(members, leader) {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with leader %d: %v, want %s", leader, got, want)
		}
	}
}

// One that was the leader, or says it was, is not obeyed.
func TestMembersDefragmentForTheLeaderOnly(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	leader := c.leader(t)
	follower := (leader + 1) % memberCount
	status, err := c.client.Status(t.Context(), c.options[follower].ListenClientURL)
	if err != nil {
		t.Fatal(err)
	}
	type header = etcdserverpb.ResponseHeader
	leaderID, term := status.Leader, status.RaftTerm
	for name, test := range map[string]struct {
		to      int
		from    *header
		refused bool
	}{
		"the leader":           {follower, &header{MemberId: leaderID, RaftTerm: term}, false},
		"an earlier term":      {follower, &header{MemberId: leaderID, RaftTerm: term - 1}, true},
		"another member":       {follower, &header{MemberId: status.Header.MemberId, RaftTerm: term}, true},
		"a leader is told":     {leader, &header{MemberId: leaderID, RaftTerm: term}, true},
		"nobody in particular": {follower, &header{}, true},
	} {
		p := peers{&c.options[0], 5 * time.Second}
		err := p.requestDefragmentation(t.Context(), []string{c.options[test.to].ListenClientURL}, test.from)
		if (err != nil) != test.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
