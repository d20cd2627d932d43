package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
)

var allShoots = source{
	cluster: clusters.Garden, group: "core.gardener.cloud", version: "v1beta1", resource: "shoots", view: ViewRow,
}

// Only what everybody is told alike is shared: not Projects, of which everybody may list their own.
func TestWhatIsShared(t *testing.T) {
	if s := (&subscription{source: allShoots}); !s.isShared() {
		t.Error("all Shoots are not")
	}
	in := allShoots
	in.namespace = "garden-a"
	if s := (&subscription{source: in}); !s.isShared() {
		t.Error("Shoots of a project are not")
	}
	if s := (&subscription{source: allShoots, filter: parseFilter("x")}); s.isShared() {
		t.Error("a list with a filter is")
	}
	for what, change := range map[string]func(*source){
		"of a shoot": func(s *source) { s.cluster = "shoot/a/b" }, "projects": func(s *source) { s.resource = "projects" },
		"secrets":   func(s *source) { s.group, s.resource = "", "secrets" },
		"of others": func(s *source) { s.group = "other.example" }, "objects": func(s *source) { s.view = ViewObject },
		"by labels": func(s *source) { s.labels = "a=b" }, "by fields": func(s *source) { s.fields = "metadata.name=x" },
	} {
		s := &subscription{source: allShoots}
		change(&s.source)
		if s.isShared() {
			t.Errorf("%s is shared", what)
		}
	}
}

func row1MB(n int) []*item {
	return []*item{{text: []byte(strings.Repeat(fmt.Sprint(n%10), 1<<20))}}
}

// Lists take no more than they may, with those that slow pages still read.
func TestListsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lists{open: map[string]*sharedList{}}
		slow, mine := l.enter("slow")
		if !mine {
			t.Fatal("somebody else reads it")
		}
		for n := range 10 {
			if err := slow.add(row1MB(n)); err != nil {
				t.Fatal(err)
			}
		}
		slow.finish(7, nil)
		time.Sleep(keptList + time.Second)
		synctest.Wait()
		if _, mine := l.enter("slow"); !mine {
			t.Error("a list is there after its time")
		}
		long, _ := l.enter("long")
		var err error
		added := 0
		for ; err == nil; added++ {
			err = long.add(row1MB(added))
		}
		if !errors.Is(err, errAlone) || l.held > keptLists || added != 7 {
			t.Errorf("%d MB more fit: %v", added, err)
		}
		long.finish(0, err)
		again, mine := l.enter("long")
		if mine || !again.isAlone() {
			t.Error("who comes later tries the same again")
		}
		for number := range 11 { // A page that is slow has all of it all the same.
			text, more, err := slow.next(t.Context(), number, stalled)
			if err != nil || more != (number < 10) || more && text[0] != byte('0'+number) {
				t.Errorf("part %d: %t, %v", number, more, err)
			}
		}
		slow.leave()
		if l.held != 0 {
			t.Errorf("%d bytes are left", l.held)
		}
		time.Sleep(longAlone + time.Second)
		synctest.Wait()
		if _, mine := l.enter("long"); !mine {
			t.Error("it is never tried again")
		}
	})
}

// bobs is a further socket beside another.
func bobs(t *testing.T, beside *socket) (k *socket, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	k = &socket{
		Server: beside.Server, user: "bob", queue: newQueue(&beside.queued), ctx: ctx, cancel: cancel,
		subscriptions: map[string]*subscription{},
	}
	if !k.enter(k) {
		t.Fatal("no socket")
	}
	return k, func() {
		for id := range k.subscriptions {
			k.drop(id)
		}
		cancel()
	}
}

// told is what waits for a browser.
func (k *socket) told() string {
	text := ""
	for _, m := range k.queue.take() {
		text += string(m.text) + string(m.shared) + string(m.end) + "\n"
		k.queue.sent(m)
	}
	return text
}

// A list that somebody reads, and that does not come, keeps others from theirs for a while only.
func TestAttackListsThatOthersStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := 0
		k, end := newSocket(t, func(r *http.Request) io.Reader {
			query := r.URL.Query()
			if query.Get("watch") == "true" {
				return slow{r.Context(), time.Hour}
			}
			if query.Get("limit") != "1" {
				if full++; full == 1 {
					return slow{r.Context(), patience - time.Second}
				}
			}
			return strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"uid":"u","name":"n"}}]}`)
		})
		defer end()
		k.start("s", allShoots, "", 0)
		synctest.Wait()
		other, endOther := bobs(t, k)
		defer endOther()
		other.start("t", allShoots, "", 0)
		time.Sleep(stalled - time.Second)
		if text := other.told(); text != "" {
			t.Errorf("told %s", text)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := `{"id":"t","type":"snapshot","first":true,"items":[{"name":"n","uid":"u"}]}` + "\n" +
			`{"id":"t","type":"sync","resourceVersion":"7","total":1}` + "\n"
		if text := other.told(); text != strings.ReplaceAll(want, `{"name":"n","uid":"u"}`, rowOf(t)) {
			t.Errorf("told %s", text)
		}
	})
}

// rowOf is the row of the Shoot of these tests.
func rowOf(t *testing.T) string {
	t.Helper()
	i, err := allShoots.render([]byte(`{"metadata":{"uid":"u","name":"n"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return string(i.text)
}

// Of the same bytes the same is made, once; of others, in another view or of another resource, something else.
func TestRenderings(t *testing.T) {
	r := &renderings{}
	object := func(n int) []byte { return fmt.Appendf(nil, `{"metadata":{"name":"o-%d","uid":"u"}}`, n) }
	first, err := r.of(allShoots, object(1))
	if err != nil {
		t.Fatal(err)
	}
	meta, seeds := allShoots, allShoots
	meta.view, seeds.resource = ViewMeta, "seeds"
	if again, _ := r.of(allShoots, object(1)); again != first {
		t.Error("the same is made again")
	}
	for what, of := range map[string]source{"another view": meta, "another resource": seeds} {
		if other, err := r.of(of, object(1)); err != nil || other == first {
			t.Errorf("%s has the same (%v)", what, err)
		}
	}
	if other, err := r.of(allShoots, object(2)); err != nil || other.name != "o-2" {
		t.Errorf("another object: %+v (%v)", other, err)
	}
	for n := range 3 * keptRenderings {
		if i, err := r.of(allShoots, object(n)); err != nil || i.name != fmt.Sprint("o-", n) {
			t.Fatalf("%d: %+v (%v)", n, i, err)
		}
	}
	if len(r.items) > keptRenderings {
		t.Errorf("%d are kept", len(r.items))
	}
	large := []byte(`{"metadata":{"name":"` + strings.Repeat("x", smallRendering) + `"}}`)
	one, _ := r.of(allShoots, large)
	if two, err := r.of(allShoots, large); err != nil || one == two {
		t.Errorf("a large one is kept (%v)", err)
	}
	if _, err := r.of(allShoots, []byte("x")); err == nil {
		t.Error("what cannot be read is no error")
	}
}
