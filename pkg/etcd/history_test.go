package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// readBy reads a key by a client of one member, if that answers, and tells whether it did.
func (h *historyRecorder) readBy(ctx context.Context, client *clientv3.Client, key string) bool {
	reader := historyRecorder{client: client}
	call := time.Since(h.began).Nanoseconds()
	in := opInput{key: key, kind: opGet}
	out, revision, err := reader.do(ctx, in, 0)
	if err != nil {
		return false
	}
	h.add(porcupine.Operation{
		ClientId: checkedClients, Input: in, Call: call, Output: out, Return: time.Since(h.began).Nanoseconds(),
	}, revision)
	return true
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
	// All keys: the last revision may be a key of the stewards.
	for response := range h.client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(h.next)) {
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
