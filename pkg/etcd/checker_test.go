package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A longer run: go test ./pkg/etcd -run Linearizable -timeout 0 -v -faults 1000 -seed 7
var (
	faultCount = flag.Int("faults", 10, "how many faults are injected while histories are recorded")
	faultSeed  = flag.Uint64("seed", rand.Uint64(), "seed of the faults and of what clients do")
)

// checkedKeys are written between two faults.
const checkedKeys, checkedClients = 4, 6

// roundFaults are the most that happen to one etcd and have one history.
const roundFaults = 50

// inRounds has as many faults happen as are asked for, each round of them to an etcd of its own: one history of all
// would be kept in memory to the end, and checked for longer than anybody waits. A round logs the flags that repeat it.
func inRounds(t *testing.T, round func(t *testing.T, seed uint64, faults int)) {
	t.Helper()
	for n, left := uint64(0), *faultCount; left > 0; n, left = n+1, left-roundFaults {
		seed, count := *faultSeed+n, min(left, roundFaults)
		t.Run(fmt.Sprintf("round %d", n), func(t *testing.T) {
			t.Logf("-seed %d -faults %d", seed, count)
			round(t, seed, count)
		})
	}
}

// opKind is what kube-apiserver does with a key, besides writing it whatever it was.
type opKind string

const (
	opGet    opKind = "get"
	opPut    opKind = "put"
	opCreate opKind = "create" // if it is not there
	opUpdate opKind = "update" // if it is as it was read
	opDelete opKind = "delete" // if it is as it was read
)

// opInput is what a client asks for. Each value is written once, so what a revision tells of a key, its value does.
type opInput struct {
	kind          opKind
	key           string
	expect, value string
}

// opOutput is what it is told. An unknown outcome may come about at any later time, or never.
type opOutput struct {
	unknown, done bool
	value         string
}

// registers is the model: keys, each with a value or none, which is empty.
var registers = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range all {
			key := o.Input.(opInput).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		return stepRegister(state.(string), input.(opInput), output.(opOutput))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

func stepRegister(state string, in opInput, out opOutput) (bool, string) {
	fits, after := true, in.value
	switch in.kind {
	case opGet:
		return out.value == state, state
	case opCreate:
		fits = state == ""
	case opUpdate, opDelete:
		fits = state == in.expect
	}
	if !fits {
		after = state
	}
	return out.unknown || out.done == fits, after
}

// historyRecorder records what clients do.
type historyRecorder struct {
	client *clientv3.Client
	began  time.Time
	// epoch is after how many faults; its keys are written by nobody later, so that unknown outcomes do not add up.
	epoch atomic.Int64
	// count is how often clients have tried something; of that, written are values that were acknowledged, refused what
	// there was no room for.
	count, written, refused atomic.Int64

	mu   sync.Mutex
	done []porcupine.Operation
	// acknowledged are writes by revision; deletions are empty.
	acknowledged map[int64]string

	// happened are the changes that etcd has told of, by revision, before the revision next. Of those that are
	// compacted it does not tell.
	happened  map[int64]string
	compacted map[int64]bool
	next      int64
}

// newHistory begins one.
func newHistory(t *testing.T, client *clientv3.Client) *historyRecorder {
	t.Helper()
	revision, err := currentRevision(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return &historyRecorder{
		client: client, began: time.Now(), acknowledged: map[int64]string{}, happened: map[int64]string{},
		compacted: map[int64]bool{}, next: revision + 1,
	}
}

// run is one client.
func (h *historyRecorder) run(ctx context.Context, id int, random *rand.Rand) {
	type seen struct {
		value    string
		revision int64
	}
	known := map[string]seen{}
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("check/%04d/%d", h.epoch.Load(), random.IntN(checkedKeys))
		in := opInput{key: key, kind: opGet, value: fmt.Sprintf("%d-%d", id, n)}
		last, read := known[key]
		switch roll := random.IntN(10); {
		case roll < 4:
		case roll < 5:
			in.kind = opPut
		case !read || last.revision == 0:
			in.kind = opCreate
		case roll < 8:
			in.kind, in.expect = opUpdate, last.value
		default:
			in.kind, in.expect, in.value = opDelete, last.value, ""
		}
		call := time.Since(h.began).Nanoseconds()
		out, revision, err := h.do(ctx, in, last.revision)
		operation := porcupine.Operation{
			ClientId: id, Input: in, Call: call, Output: out, Return: time.Since(h.began).Nanoseconds(),
		}
		h.count.Add(1)
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			// What is refused is not done. Were it, a read would tell a value that nobody has written.
			h.refused.Add(1)
			continue
		case err != nil && in.kind == opGet:
			continue
		case err != nil:
			delete(known, key)
			operation.Output, operation.Return = opOutput{unknown: true}, math.MaxInt64
		case in.kind == opGet, out.done && in.kind != opDelete:
			known[key] = seen{out.value, revision}
		default:
			delete(known, key)
		}
		h.add(operation, revision)
	}
}

func (h *historyRecorder) add(o porcupine.Operation, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, o)
	if in, out := o.Input.(opInput), o.Output.(opOutput); out.done && in.kind != opGet {
		h.acknowledged[revision] = in.value
		if in.kind != opDelete {
			h.written.Add(1)
		}
	}
}

// do returns the outcome, and the revision that the key has.
func (h *historyRecorder) do(ctx context.Context, in opInput, revision int64) (opOutput, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	switch in.kind {
	case opGet:
		response, err := h.client.Get(ctx, in.key)
		if err != nil || len(response.Kvs) == 0 {
			return opOutput{done: true}, 0, err
		}
		return opOutput{done: true, value: string(response.Kvs[0].Value)}, response.Kvs[0].ModRevision, nil
	case opPut:
		response, err := h.client.Put(ctx, in.key, in.value)
		if err != nil {
			return opOutput{}, 0, err
		}
		return opOutput{done: true, value: in.value}, response.Header.Revision, nil
	case opCreate:
		revision = 0
	}
	write := clientv3.OpPut(in.key, in.value)
	if in.kind == opDelete {
		write = clientv3.OpDelete(in.key)
	}
	unchanged := clientv3.Compare(clientv3.ModRevision(in.key), "=", revision)
	response, err := h.client.Txn(ctx).If(unchanged).Then(write).Commit()
	if err != nil {
		return opOutput{}, 0, err
	}
	return opOutput{done: response.Succeeded, value: in.value}, response.Header.Revision, nil
}

// await waits until clients have tried so much more.
func (h *historyRecorder) await(t *testing.T, more int64) {
	t.Helper()
	awaitMore(t, &h.count, more, "clients do not go on")
}

// awaitMore waits until so much more is counted.
func awaitMore(t *testing.T, count *atomic.Int64, more int64, otherwise string) {
	t.Helper()
	want, end := count.Load()+more, time.Now().Add(time.Minute)
	for count.Load() < want {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
		pause(t.Context(), time.Millisecond)
	}
}

// check holds the history to the model, and what was acknowledged to what etcd tells of all its changes.
func (h *historyRecorder) check(t *testing.T) {
	t.Helper()
	h.readChanges(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(registers, h.done, 5*time.Minute)
	if result != porcupine.Ok {
		path := filepath.Join(t.ArtifactDir(), "history.html")
		err := porcupine.VisualizePath(registers, info, path)
		t.Errorf("of %d operations the history is %s; see %s (go test -artifacts), %v", len(h.done), result, path, err)
	}
	t.Logf("%d operations, %d writes were acknowledged, %d revisions were not read before they were compacted",
		len(h.done), len(h.acknowledged), len(h.compacted))
	if len(h.acknowledged) == 0 {
		t.Error("nothing was written")
	}
	for revision, value := range h.acknowledged {
		got, found := h.happened[revision]
		if !h.compacted[revision] && (!found || got != value) {
			t.Errorf("revision %d was acknowledged to be %q, and is %q, %v", revision, value, got, found)
		}
	}
}

// readChanges reads all changes since it did so last.
func (h *historyRecorder) readChanges(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last, err := currentRevision(ctx, h.client)
	if err != nil {
		t.Fatal(err)
	}
	for h.next <= last {
		begin := h.next
		if compacted := h.watch(ctx, t, last); compacted > 0 {
			for h.next <= compacted {
				h.compacted[h.next] = true
				h.next++
			}
		}
		if h.next == begin {
			t.Fatalf("the changes end before revision %d of %d", h.next, last)
		}
	}
}

// watch reads changes up to a revision, and returns which one is compacted, if that is the next or after it.
func (h *historyRecorder) watch(ctx context.Context, t *testing.T, last int64) (compacted int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for response := range h.client.Watch(ctx, "check/", clientv3.WithPrefix(), clientv3.WithRev(h.next)) {
		if response.CompactRevision > 0 {
			return response.CompactRevision
		}
		if err := response.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range response.Events {
			revision := event.Kv.ModRevision
			if revision < h.next {
				t.Errorf("revision %d is told after %d", revision, h.next-1)
			}
			h.next = revision + 1
			h.happened[revision] = string(event.Kv.Value)
			if event.Type == mvccpb.DELETE {
				h.happened[revision] = ""
			}
		}
		if h.next > last {
			return 0
		}
	}
	return 0
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

// start has clients go on until what it returns is called.
func (h *historyRecorder) start(t *testing.T, seed uint64) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for id := range checkedClients {
		running.Go(func() { h.run(ctx, id, rand.New(rand.NewPCG(seed, uint64(id+1)))) })
	}
	return func() { cancel(); running.Wait() }
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

// The checker finds what is wrong.
func TestTheCheckerFindsWhatIsWrong(t *testing.T) {
	operation := func(call, end int64, in opInput, out opOutput) porcupine.Operation {
		in.key = "key"
		return porcupine.Operation{Input: in, Call: call, Output: out, Return: end}
	}
	put := operation(0, 10, opInput{kind: opPut, value: "a"}, opOutput{done: true, value: "a"})
	get := func(call int64, value string) porcupine.Operation {
		return operation(call, call+5, opInput{kind: opGet}, opOutput{done: true, value: value})
	}
	update := func(call int64, expect, value string, done bool) porcupine.Operation {
		return operation(call, call+5, opInput{kind: opUpdate, expect: expect, value: value}, opOutput{done: done})
	}
	unknown := operation(20, math.MaxInt64, opInput{kind: opPut, value: "b"}, opOutput{unknown: true})
	for name, test := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"in order":                   {[]porcupine.Operation{put, get(20, "a")}, true},
		"a lost write":               {[]porcupine.Operation{put, get(20, "")}, false},
		"a read while it is written": {[]porcupine.Operation{put, get(5, "")}, true},
		"a read that goes back":      {[]porcupine.Operation{put, get(2, "a"), get(8, "")}, false},
		"two updates of the same": {
			[]porcupine.Operation{put, update(20, "a", "b", true), update(30, "a", "c", true)}, false,
		},
		"of which one fails": {
			[]porcupine.Operation{put, update(20, "a", "b", true), update(30, "a", "c", false)}, true,
		},
		"one that fails without reason":    {[]porcupine.Operation{put, update(20, "a", "b", false)}, false},
		"an unknown outcome that came":     {[]porcupine.Operation{put, unknown, get(40, "b")}, true},
		"an unknown outcome that did not":  {[]porcupine.Operation{put, unknown, get(40, "a")}, true},
		"an unknown outcome that was lost": {[]porcupine.Operation{put, unknown, get(40, "b"), get(50, "a")}, false},
	} {
		if got := porcupine.CheckOperations(registers, test.history); got != test.want {
			t.Errorf("%s: linearizable is %v", name, got)
		}
	}
}
