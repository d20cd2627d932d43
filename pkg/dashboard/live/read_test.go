package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

// answering is a cluster whose answers are made by a function.
type answering func(r *http.Request) io.Reader

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body := a(r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Header: http.Header{}}, nil
}

func clusterOf(a answering, memory *limits.Bytes) *clusters.Cluster {
	return &clusters.Cluster{
		Name: clusters.Garden, Base: &url.URL{Scheme: "https", Host: "garden"}, Transport: a, Memory: memory,
	}
}

// stored are objects of these sizes, in pages of so many as are asked for.
func stored(sizes []int, asked *[]int) answering {
	return func(r *http.Request) io.Reader {
		query := r.URL.Query()
		limit, _ := strconv.Atoi(query.Get("limit"))
		from, _ := strconv.Atoi(query.Get("continue"))
		*asked = append(*asked, limit)
		to, next := min(from+limit, len(sizes)), ""
		if to < len(sizes) {
			next = strconv.Itoa(to)
		}
		var objects []string
		for i := from; i < to; i++ {
			objects = append(objects, fmt.Sprintf(`{"metadata":{"name":"o-%d"},"x":%q}`, i, strings.Repeat("x", sizes[i])))
		}
		return strings.NewReader(`{"metadata":{"resourceVersion":"7","continue":"` + next + `"},"items":[` +
			strings.Join(objects, ",") + `]}`)
	}
}

var things = source{cluster: clusters.Garden, version: "v1", resource: "things", view: ViewObject}

// isFree tells whether nothing is taken of a memory.
func isFree(t *testing.T, memory *limits.Bytes, total int64) {
	t.Helper()
	for _, user := range []string{"a", "b"} {
		if err := memory.Nothing(user).Grow(total / 2); err != nil {
			t.Errorf("memory is not given back: %v", err)
		}
	}
}

func TestPagesFitIntoMemory(t *testing.T) {
	const total = 64 << 20
	small := slices.Repeat([]int{100}, 300)
	large := slices.Concat(small, []int{3 << 20, 600 << 10, 600 << 10, 600 << 10}, small)
	for what, test := range map[string]struct {
		sizes []int
		pages int // At most.
	}{"small": {small, 6}, "of 100 KiB": {slices.Repeat([]int{100 << 10}, 40), 15}, "some large": {large, 60}} {
		var asked []int
		memory := limits.NewBytes(total)
		next := 0
		version, err := things.list(t.Context(), clusterOf(stored(test.sizes, &asked), memory), listing{
			user: "alice", page: func(items []*item) error {
				held := 0
				for _, i := range items {
					if i.name != fmt.Sprint("o-", next) {
						t.Fatalf("%s: got %s, want o-%d", what, i.name, next)
					}
					next, held = next+1, held+len(i.text)
				}
				if held > firstHold && len(items) > 1 && held > mostHold/copies {
					t.Errorf("%s: %d objects of %d bytes at a time", what, len(items), held)
				}
				return nil
			},
		})
		if err != nil || version != 7 || next != len(test.sizes) {
			t.Errorf("%s: %d objects of %d, %v", what, next, len(test.sizes), err)
		}
		if len(asked) > test.pages {
			t.Errorf("%s: asked %d times: %v", what, len(asked), asked)
		}
		isFree(t, memory, total)
	}
}

// What does not fit at all ends with an error, also if the cluster sends all it has whatever it is asked for.
func TestAttackListsWithoutEnd(t *testing.T) {
	const total = 64 << 20
	for what, answer := range map[string]func() io.Reader{
		"an object": func() io.Reader { return &repeated{begin: `{"items":[{"metadata":{"name":"`, then: "x"} },
		"objects":   func() io.Reader { return &repeated{begin: `{"items":[{}`, then: `,{"metadata":{"name":"x"}}`} },
		"a member":  func() io.Reader { return &repeated{begin: `{"other":"`, then: "x"} },
	} {
		memory := limits.NewBytes(total)
		cluster := clusterOf(func(*http.Request) io.Reader { return answer() }, memory)
		_, err := things.list(t.Context(), cluster, listing{user: "alice", page: func([]*item) error { return nil }})
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", what, err)
		}
		isFree(t, memory, total)
	}
}

// repeated is a text without end.
type repeated struct{ begin, then string }

func (r *repeated) Read(into []byte) (int, error) {
	if r.begin == "" {
		r.begin = strings.Repeat(r.then, 1000)
	}
	n := copy(into, r.begin)
	r.begin = r.begin[n:]
	return n, nil
}

// slow sends a byte now and then, or never, until nobody waits any more.
type slow struct {
	ctx   context.Context
	pause time.Duration
}

func (s slow) Read(into []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
		into[0] = ' '
		return 1, nil
	}
}

// A cluster that sends nothing, or next to nothing, holds no memory and no place for long.
func TestAttackListsThatStall(t *testing.T) {
	for what, test := range map[string]struct{ pause, ends time.Duration }{
		"nothing": {time.Hour, patience}, "a byte now and then": {patience - time.Second, longestPage},
	} {
		synctest.Test(t, func(t *testing.T) {
			const total = 4 << 20
			memory := limits.NewBytes(total)
			cluster := clusterOf(func(r *http.Request) io.Reader { return slow{r.Context(), test.pause} }, memory)
			begun := time.Now()
			_, err := things.list(t.Context(), cluster, listing{user: "alice", page: func([]*item) error { return nil }})
			if took := time.Since(begun); !errors.Is(err, errSilent) || took != test.ends {
				t.Errorf("%s: %v after %s", what, err, took)
			}
			isFree(t, memory, total)
		})
	}
}

// alices is a watch of alice.
var alices = watching{user: "alice", version: 1, begun: func() {}}

func TestLargeEvents(t *testing.T) {
	event := func(size int) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"o-%d","resourceVersion":"1"},"x":%q}}`+"\n", size,
			strings.Repeat("x", size))
	}
	for what, test := range map[string]struct {
		sizes []int
		total int64
		told  int
		err   error
	}{
		"small and large": {[]int{1, 10, 3 << 20, 1, 1 << 20, 100 << 10, 5, 1 << 20, 2}, 64 << 20, 9, nil},
		"too large":       {[]int{1, 5 << 20, 1}, 64 << 20, 1, errTooLarge},
	} {
		memory := limits.NewBytes(test.total)
		var texts []string
		for _, size := range test.sizes {
			texts = append(texts, event(size))
		}
		cluster := clusterOf(func(*http.Request) io.Reader { return strings.NewReader(strings.Join(texts, "")) }, memory)
		told := 0
		err := things.watch(t.Context(), cluster, alices, func(c change) {
			if wanted := fmt.Sprint("o-", test.sizes[told]); c.item.name != wanted {
				t.Errorf("%s: told of %s, want %s", what, c.item.name, wanted)
			}
			told++
		})
		if !errors.Is(err, test.err) || told != test.told {
			t.Errorf("%s: told of %d, %v", what, told, err)
		}
		isFree(t, memory, test.total)
	}
	memory := limits.NewBytes(64 << 10)
	cluster := clusterOf(func(*http.Request) io.Reader { return strings.NewReader(event(1) + event(1<<20)) }, memory)
	err := things.watch(t.Context(), cluster, alices, func(change) {})
	if err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("without memory: %v", err)
	}
	isFree(t, memory, 64<<10)
}

// An event that does not go on holds no memory for long.
func TestAttackEventsThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 64 << 20
		memory := limits.NewBytes(total)
		cluster := clusterOf(func(r *http.Request) io.Reader {
			return io.MultiReader(strings.NewReader(`{"type":"`+strings.Repeat("x", 100<<10)), slow{r.Context(), time.Hour})
		}, memory)
		begun := time.Now()
		err := things.watch(t.Context(), cluster, alices, func(change) {})
		if took := time.Since(begun); !errors.Is(err, errSilent) || took != patience {
			t.Errorf("%v after %s", err, took)
		}
		isFree(t, memory, total)
	})
}

// A cluster that has forgotten each version as soon as it told of it, or that lists what is older than what it told of
// before, is asked less and less often.
func TestAttackClustersThatForget(t *testing.T) {
	for what, watch := range map[string]func(*http.Request) io.Reader{
		"each version": func(*http.Request) io.Reader {
			return strings.NewReader(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}`)
		},
		"the newest ones": func(r *http.Request) io.Reader { return slow{r.Context(), time.Hour} },
	} {
		synctest.Test(t, func(t *testing.T) {
			lists := 0
			k, end := newSocket(t, func(r *http.Request) io.Reader {
				if r.URL.Query().Get("watch") == "true" {
					return watch(r)
				}
				lists++
				return strings.NewReader(fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[]}`, 1000000-lists))
			})
			defer end()
			k.start("s", things, "", 0)
			synctest.Wait()
			k.start("t", things, "", 0)
			time.Sleep(time.Hour)
			if lists < 10 || lists > 300 {
				t.Errorf("%s: listed %d times in an hour", what, lists)
			}
		})
	}
}

// newSocket is one of alice's, for a cluster.
func newSocket(t *testing.T, of answering) (k *socket, end func()) {
	t.Helper()
	cluster := clusterOf(of, limits.NewBytes(64<<20))
	server := NewServer(&clusters.Clusters{}, "", 40, func(string) bool { return false }, time.Now)
	server.named = func(context.Context, session.Credential, string) (*clusters.Cluster, error) { return cluster, nil }
	ctx, cancel := context.WithCancel(t.Context())
	k = &socket{
		Server: server, user: "alice", queue: newQueue(&server.queued), ctx: ctx, cancel: cancel,
		subscriptions: map[string]*subscription{},
	}
	if !server.enter(k) {
		t.Fatal("no socket")
	}
	return k, func() {
		for id := range k.subscriptions {
			k.drop(id)
		}
		cancel()
		synctest.Wait()
		if open := server.Watches(); open != 0 {
			t.Errorf("%d watches are left", open)
		}
	}
}

// Works bring Secrets to members: their values are in no view.
func TestWorksWithoutValues(t *testing.T) {
	const work = `{"metadata":{"name":"w"},"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret",` +
		`"data":{"password":"aGlkZGVu"},"metadata":{"name":"s","annotations":` +
		`{"kubectl.kubernetes.io/last-applied-configuration":"aGlkZGVu"}}}]}}}`
	for _, view := range []View{ViewObject, ViewRow, ViewMeta} {
		i, err := source{group: "work.karmada.io", version: "v1alpha1", resource: "works", view: view}.
			render([]byte(work))
		if err != nil || strings.Contains(string(i.text), "aGlkZGVu") || !strings.Contains(string(i.text), `"w"`) {
			t.Errorf("%s: %s %v", view, i.text, err)
		}
	}
}

// Browsers that read nothing hold no more than all of them may, and those that read are told all the same.
func TestQueuesOfAllBrowsers(t *testing.T) {
	server := &Server{}
	text := make([]byte, 1<<20)
	pushed := 0
	var queues []*queue
	for range 64 {
		q := newQueue(&server.queued)
		queues = append(queues, q)
		for range 2 {
			if q.push(text) {
				pushed++
			}
		}
	}
	if pushed != mostOfAll>>20 || server.queued.Load() != mostOfAll {
		t.Errorf("%d MiB wait", pushed)
	}
	if quick := newQueue(&server.queued); !quick.push([]byte("a change")) {
		t.Error("who reads is given up")
	} else {
		quick.sent(message{text: []byte("a change")})
	}
	for _, q := range queues {
		q.close()
		q.sent(message{text: text}) // It was on its way.
	}
	if left := server.queued.Load(); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// A change that many watches keep takes memory once.
func TestChangesThatManyKeep(t *testing.T) {
	all := &feeds{open: map[string]*feed{}}
	one := change{version: 1, item: &item{text: make([]byte, 40<<10)}}
	var open []*feed
	for n := range 1000 {
		f := &feed{feeds: all, key: strconv.Itoa(n), stop: func() {}}
		if f.keep(one); len(f.kept) != 1 || all.kept != one.item.size() {
			t.Fatalf("watch %d keeps %d, all of them %d bytes", n, len(f.kept), all.kept)
		}
		open = append(open, f)
	}
	for n, f := range open {
		if all.kept == 0 {
			t.Fatalf("%d watches are left, and none keeps anything", len(open)-n)
		}
		f.end()
	}
	if all.kept != 0 {
		t.Errorf("%d bytes are left", all.kept)
	}
}

// What all watches keep is bounded, however many there are.
func TestChangesThatAreKept(t *testing.T) {
	all := &feeds{open: map[string]*feed{}}
	for n := range 200 {
		f := &feed{feeds: all, key: strconv.Itoa(n), stop: func() {}}
		for version := range uint64(10) {
			f.keep(change{version: version, item: &item{text: make([]byte, 40<<10)}})
		}
		if n == 0 && len(f.kept) == 0 {
			t.Error("nothing is kept")
		}
		if all.kept > keptOfAll || f.keptBytes > keptBytes {
			t.Fatalf("%d watches keep %d, this one %d", n+1, all.kept, f.keptBytes)
		}
		defer func() {
			if f.end(); n == 0 && all.kept != 0 {
				t.Errorf("%d are left", all.kept)
			}
		}()
	}
}
