package etcd

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A longer run: go test ./pkg/etcd -run Linearizable -timeout 0 -v -parallel 6 -faults 1000 -seed 7
var (
	faultCount = flag.Int("faults", 10, "how many faults are injected while histories are recorded")
	faultSeed  = flag.Uint64("seed", rand.Uint64(), "seed of the faults and of what clients do")
)

// roundFaults are the most that happen to one etcd and have one history.
const roundFaults = 50

// inRounds has as many faults happen as are asked for, each round of them to an etcd of its own: one history of all
// would be kept in memory to the end, and checked for longer than anybody waits. Rounds wait most of the time, and run
// side by side, as many as -parallel says. A round logs the flags that repeat it.
func inRounds(t *testing.T, round func(t *testing.T, seed uint64, faults int)) {
	t.Helper()
	for n, left := uint64(0), *faultCount; left > 0; n, left = n+1, left-roundFaults {
		seed, count := *faultSeed+n, min(left, roundFaults)
		t.Run(fmt.Sprintf("round %d", n), func(t *testing.T) {
			t.Parallel()
			t.Logf("-seed %d -faults %d", seed, count)
			round(t, seed, count)
		})
	}
}

// fault is something that happens to the members while clients go on. What it has harmed, it mends.
type fault struct {
	name string
	do   func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int)
}

// restart kills a member, has something done to its data, and starts it again.
func restart(harm func(t *testing.T, o *Options)) func(*testing.T, *testCluster, *historyRecorder, int) {
	return func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
		t.Helper()
		c.processes[ordinal].kill(t)
		h.await(t, 100)
		harm(t, &c.options[ordinal])
		c.launch(t, ordinal)
	}
}

var faults = []fault{
	{"a crash", restart(func(*testing.T, *Options) {})},
	{"a lost volume", restart(func(t *testing.T, o *Options) { o.DataDir = t.TempDir() })},
	{"a damaged database", restart(func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) })},
	{"a damaged log", restart(func(t *testing.T, o *Options) { damageLog(t, o.DataDir) })},
	{"one byte of a value", changeOneByte},
	{"a damaged backup and a lost volume", restart(func(t *testing.T, o *Options) {
		damageBackup(t, *o)
		o.DataDir = t.TempDir()
	})},
	{"a full disk", func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
		// Etcd compacts its history then, whose changes are checked.
		h.readChanges(t)
		marker := fullMarker(c.options[ordinal].DataDir)
		write(t, marker, "")
		awaitMore(t, &h.refused, checkedClients, "writes are not refused")
		removeAll(t, marker)
		awaitMore(t, &h.written, 2*checkedClients, "writes are not served again")
	}},
	{"a crash of two", func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
		other := (ordinal + 1) % memberCount
		c.processes[ordinal].kill(t)
		c.processes[other].kill(t)
		h.await(t, checkedClients)
		c.launch(t, ordinal, other)
	}},
	{"an orderly stop", func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
		c.processes[ordinal].stop(t)
		h.await(t, 100)
		c.launch(t, ordinal)
	}},
	{"a member that hangs", func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
		_ = c.processes[ordinal].command.Process.Signal(syscall.SIGSTOP)
		h.await(t, 4*checkedClients)
		_ = c.processes[ordinal].command.Process.Signal(syscall.SIGCONT)
	}},
	{"a member that peers do not reach", func(t *testing.T, c *testCluster, h *historyRecorder, ordinal int) {
		c.links[ordinal].setCut(true)
		h.await(t, 200)
		c.links[ordinal].setCut(false)
	}},
	{"no connection between any", func(t *testing.T, c *testCluster, h *historyRecorder, _ int) {
		for _, l := range c.links {
			l.setCut(true)
		}
		h.await(t, 2*checkedClients)
		for _, l := range c.links {
			l.setCut(false)
		}
	}},
}

// fullMarker is a file that says that the volume of a data directory has no room left, whatever is free there.
func fullMarker(dataDir string) string { return dataDir + ".full" }

// measureUnlessFull measures volumes, all of which are full while that of the data directory is to be.
func measureUnlessFull(dataDir string) measureFn {
	return func(path string) (volume, error) {
		v, err := measure(path)
		if _, missing := os.Stat(fullMarker(dataDir)); missing == nil {
			v.free = 0
		}
		return v, err
	}
}

// damageBackup damages the newest object in the store of an etcd, and returns the revision up to which the others lead;
// 0 if they lead nowhere.
func damageBackup(t *testing.T, options Options) int64 {
	t.Helper()
	chain := chains(t, options)[0]
	damaged, left := chain.Full, int64(0)
	if n := len(chain.Deltas); n > 0 {
		damaged = chain.Deltas[n-1]
		left = damaged.First - 1
	}
	overwrite(t, filepath.Join(options.Store.Bucket, options.Store.Prefix, damaged.String()), damaged.Size/2, 10)
	return left
}

func TestHistoriesOfThreeMembersAreLinearizable(t *testing.T) {
	t.Parallel()
	inRounds(t, checkThreeMembers)
}

func checkThreeMembers(t *testing.T, seed uint64, count int) {
	random := rand.New(rand.NewPCG(seed, 0))
	c := newTestCluster(t)
	c.store(t)
	for i := range c.options {
		c.options[i].Store.DeltaSnapshotPeriod = time.Second
	}
	c.launch(t)
	c.waitReady(t)
	c.processes[0].waitForStore(t, 1)
	h := newHistory(t, c.client)
	end := h.start(t, seed)
	for n, kinds := 0, random.Perm(len(faults)); n < count; n++ {
		f, ordinal := faults[kinds[n%len(faults)]], random.IntN(memberCount)
		if random.IntN(2) == 0 {
			ordinal = c.leader(t)
		}
		t.Logf("fault %d: %s, of member %d", n, f.name, ordinal)
		h.epoch.Add(1)
		h.await(t, 100)
		f.do(t, c, h, ordinal)
		c.waitReady(t)
		c.awaitVoters(t)
	}
	h.await(t, 100)
	end()
	c.voters(t)
	h.check(t)
}

// awaitVoters waits until all members are voters that have caught up: the next fault may take another one.
func (c *testCluster) awaitVoters(t *testing.T) {
	t.Helper()
	c.processes[0].waitUntil(t, "three voters that answer", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		response, err := c.client.MemberList(ctx)
		if err != nil || len(response.Members) != memberCount {
			return fmt.Errorf("members %v, %w", response, err)
		}
		for i, o := range c.options {
			if response.Members[i].IsLearner {
				return fmt.Errorf("%v is a learner", response.Members[i])
			}
			status, err := c.client.Status(ctx, o.ListenClientURL)
			if err != nil || status.Leader == 0 {
				return fmt.Errorf("%s: %v, %w", o.Name, status, err)
			}
		}
		return nil
	})
}

func TestHistoriesOfASingleMemberAreLinearizable(t *testing.T) {
	t.Parallel()
	inRounds(t, checkSingleMember)
}

// checkSingleMember crashes it for every fifth fault, and twice at least.
func checkSingleMember(t *testing.T, seed uint64, count int) {
	options := testOptions(t)
	options.SnapshotPeriod = time.Hour
	p := startProcess(t, options)
	h := newHistory(t, p.client)
	end := h.start(t, seed)
	for range max(2, count/5) {
		h.epoch.Add(1)
		h.await(t, 200)
		p.kill(t)
		h.await(t, checkedClients)
		p = launch(t, options)
		p.waitUntil(t, "ready", p.ready)
	}
	h.await(t, 200)
	end()
	h.check(t)
}

// What a single member loses is what was written after the last delta.
func TestASingleMemberLosesNoMoreThanADelta(t *testing.T) {
	lostVolume := func(t *testing.T, o *Options) { o.DataDir = t.TempDir() }
	for name, test := range map[string]struct {
		harm          func(t *testing.T, o *Options)
		damagedBackup bool
	}{
		"a lost directory": {
			harm: func(t *testing.T, o *Options) { removeAll(t, filepath.Join(o.DataDir, memberDir)) },
		},
		"a lost volume": {harm: lostVolume},
		"a damaged log": {harm: func(t *testing.T, o *Options) { damageLog(t, o.DataDir) }},
		"a damaged backend": {
			harm: func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) },
		},
		"a damaged backup and a lost volume": {harm: lostVolume, damagedBackup: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := storedOptions(t, localStore(t))
			p := startProcess(t, options)
			acknowledged := map[string]int64{}
			for len(acknowledged) < 300 {
				key := fmt.Sprintf("key/%04d", len(acknowledged))
				response, err := p.client.Put(t.Context(), key, strings.Repeat("x", 1000))
				if err != nil {
					t.Fatal(err)
				}
				acknowledged[key] = response.Header.Revision
			}
			p.waitForStore(t, acknowledged["key/0100"])
			if test.damagedBackup {
				// The newest delta, which is damaged, has nothing that was saved before.
				p.put(t, "last", "x")
				p.waitForStore(t, p.revision(t))
			}
			p.kill(t)
			saved := chains(t, options)[0].Last()
			if test.damagedBackup {
				saved = damageBackup(t, options)
			}
			if saved < acknowledged["key/0100"] {
				t.Fatalf("only revisions up to %d are saved", saved)
			}
			test.harm(t, &options)

			p = startProcess(t, options)
			defer p.kill(t)
			response, err := p.client.Get(t.Context(), "key/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
			if err != nil {
				t.Fatal(err)
			}
			left := map[string]bool{}
			for _, kv := range response.Kvs {
				left[string(kv.Key)] = true
			}
			for key, revision := range acknowledged {
				if revision <= saved && !left[key] {
					t.Errorf("%s of revision %d is lost, though all up to %d was saved", key, revision, saved)
				}
			}
		})
	}
}
