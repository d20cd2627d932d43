package etcd

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A longer run: go test ./pkg/etcd -run Linearizable -timeout 0 -faults 1000 -seed 7
var (
	faultCount = flag.Int("faults", 10, "how many faults are injected while histories are recorded")
	faultSeed  = flag.Uint64("seed", rand.Uint64(), "seed of the faults and of what clients do")
)

// checkedKeys are written between two faults.
const checkedKeys, checkedClients = 4, 6

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
	epoch, count atomic.Int64

	mu   sync.Mutex
	done []porcupine.Operation
	// acknowledged are writes by revision; deletions are empty.
	acknowledged map[int64]string
}

func newHistory(client *clientv3.Client) *historyRecorder {
	return &historyRecorder{client: client, began: time.Now(), acknowledged: map[int64]string{}}
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
	want, end := h.count.Load()+more, time.Now().Add(time.Minute)
	for h.count.Load() < want {
		if time.Now().After(end) {
			t.Fatal("clients do not go on")
		}
		pause(t.Context(), time.Millisecond)
	}
}

// check holds the history to the model, and what was acknowledged to what etcd tells of all its changes.
func (h *historyRecorder) check(t *testing.T, since int64) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(registers, h.done, 5*time.Minute)
	if result != porcupine.Ok {
		path := filepath.Join(t.ArtifactDir(), "history.html")
		err := porcupine.VisualizePath(registers, info, path)
		t.Errorf("of %d operations the history is %s; see %s (go test -artifacts), %v", len(h.done), result, path, err)
	}
	t.Logf("%d operations, %d writes were acknowledged", len(h.done), len(h.acknowledged))
	if len(h.acknowledged) == 0 {
		t.Error("nothing was written")
	}
	happened := h.changes(t, since)
	for revision, value := range h.acknowledged {
		if got, found := happened[revision]; !found || got != value {
			t.Errorf("revision %d was acknowledged to be %q, and is %q, %v", revision, value, got, found)
		}
	}
}

// changes are all that etcd tells, by revision.
func (h *historyRecorder) changes(t *testing.T, since int64) map[int64]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last, err := currentRevision(ctx, h.client)
	if err != nil {
		t.Fatal(err)
	}
	happened := map[int64]string{}
	before := since
	for response := range h.client.Watch(ctx, "check/", clientv3.WithPrefix(), clientv3.WithRev(since),
		clientv3.WithProgressNotify()) {
		if err := response.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision < before {
				t.Errorf("revision %d is told after %d", event.Kv.ModRevision, before)
			}
			before = event.Kv.ModRevision
			happened[before] = string(event.Kv.Value)
			if event.Type == mvccpb.DELETE {
				happened[before] = ""
			}
		}
		if before >= last {
			return happened
		}
	}
	t.Fatalf("the changes end at revision %d of %d", before, last)
	return nil
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

func TestHistoriesOfThreeMembersAreLinearizable(t *testing.T) {
	t.Parallel()
	t.Logf("-seed %d -faults %d", *faultSeed, *faultCount)
	random := rand.New(rand.NewPCG(*faultSeed, 0))
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	since, err := currentRevision(t.Context(), c.client)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(c.client)
	end := h.start(t)
	for n, kinds := 0, random.Perm(len(faults)); n < *faultCount; n++ {
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
	h.check(t, since+1)
}

// start has clients go on until what it returns is called.
func (h *historyRecorder) start(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for id := range checkedClients {
		running.Go(func() { h.run(ctx, id, rand.New(rand.NewPCG(*faultSeed, uint64(id+1)))) })
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
	t.Logf("-seed %d", *faultSeed)
	options := testOptions(t)
	options.SnapshotPeriod = time.Hour
	p := startProcess(t, options)
	since := p.revision(t)
	h := newHistory(p.client)
	end := h.start(t)
	for range max(2, *faultCount/5) {
		h.epoch.Add(1)
		h.await(t, 200)
		p.kill(t)
		h.await(t, checkedClients)
		p = launch(t, options)
		p.waitUntil(t, "ready", p.ready)
	}
	h.await(t, 200)
	end()
	h.check(t, since+1)
}

// What a single member loses is what was written after the last delta.
func TestASingleMemberLosesNoMoreThanADelta(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, o *Options){
		"a lost directory":  func(t *testing.T, o *Options) { removeAll(t, filepath.Join(o.DataDir, memberDir)) },
		"a lost volume":     func(t *testing.T, o *Options) { o.DataDir = t.TempDir() },
		"a damaged log":     func(t *testing.T, o *Options) { damageLog(t, o.DataDir) },
		"a damaged backend": func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) },
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
			p.kill(t)
			saved := chains(t, options)[0].Last()
			harm(t, &options)

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
