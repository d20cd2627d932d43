package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
	"github.com/trellis-garden/trellis/pkg/dashboard/live"
)

// page is a browser's socket.
type page struct {
	t *testing.T
	*websocket.Conn
}

// told is a message to a page.
type told struct {
	ID, Type, ResourceVersion string
	Items                     []item
	First, Final              bool
	Item                      item
	Total                     *int
	Error                     struct {
		Code   int
		Reason string
	}
}

type item struct {
	UID, Namespace, Name, Region, Status string
	Data                                 map[string]string
}

func (b *browser) page() *page {
	b.t.Helper()
	connection, _, err := dial(b, b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = connection.Close() })
	p := &page{b.t, connection}
	p.expect("hello")
	return p
}

func (p *page) send(fields map[string]string) {
	p.t.Helper()
	if err := p.WriteJSON(fields); err != nil {
		p.t.Fatal(err)
	}
}

// subscribe asks for shoots.
func (p *page) subscribe(id string, fields ...string) {
	p.t.Helper()
	request := map[string]string{
		"type": "subscribe", "id": id, "cluster": "garden", "apiVersion": "core.gardener.cloud/v1beta1",
		"resource": "shoots", "namespace": "garden-b",
	}
	for i := 0; i+1 < len(fields); i += 2 {
		request[fields[i]] = fields[i+1]
	}
	p.send(request)
}

// next message, which has to come.
func (p *page) next() told {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, text, err := p.ReadMessage()
	if err != nil {
		p.t.Fatal(err)
	}
	var m told
	if err := json.Unmarshal(text, &m); err != nil {
		p.t.Fatalf("%v in %s", err, text)
	}
	return m
}

// expect a message in short: its type, and the names of what it is about.
func (p *page) expect(wanted ...string) told {
	p.t.Helper()
	var m told
	for _, want := range wanted {
		m = p.next()
		names := []string{m.Type}
		for _, i := range m.Items {
			names = append(names, i.Name)
		}
		if m.Item.Name != "" {
			names = append(names, m.Item.Name)
		}
		if m.Error.Reason != "" {
			names = append(names, m.Error.Reason)
		}
		if got := strings.Join(names, " "); got != want {
			p.t.Fatalf("got %q, want %q", got, want)
		}
	}
	return m
}

func shoot(region string) gardentest.Object {
	return gardentest.Object{"spec": map[string]any{"region": region, "provider": map[string]any{}}}
}

func TestLive(t *testing.T) {
	l := newLandscape(t)
	l.garden.Set(t, shoots+"/one", shoot("here"))
	l.garden.Set(t, "apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots/other", shoot("here"))
	p := l.as("bob-token").page()
	p.send(map[string]string{"type": "ping"})
	p.expect("pong")
	p.subscribe("s")
	first := p.next()
	if !first.First || len(first.Items) != 1 || first.Items[0].Region != "here" || first.ID != "s" {
		t.Fatalf("got %+v", first)
	}
	if sync := p.expect("sync"); sync.ResourceVersion == "" || sync.Total == nil || *sync.Total != 1 {
		t.Errorf("got %+v", sync)
	}
	l.garden.Set(t, shoots+"/two", shoot("there"))
	l.garden.Set(t, shoots+"/two", shoot("elsewhere"))
	l.garden.Delete(t, shoots+"/one")
	p.expect("added two")
	if m := p.expect("changed two"); m.Item.Region != "elsewhere" {
		t.Errorf("got %+v", m)
	}
	if m := p.expect("deleted one"); m.Item.UID != first.Items[0].UID || m.ResourceVersion != l.garden.Version() {
		t.Errorf("got %+v", m)
	}
	p.send(map[string]string{"type": "unsubscribe", "id": "s"})
	await(t, "the watch ends", func() bool { return l.garden.Watching() == 0 && l.dashboard.live.Watches() == 0 })
}

// await a condition.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestLiveGoesOnAfterALoss(t *testing.T) {
	l := newLandscape(t)
	l.garden.Set(t, shoots+"/one", shoot("here"))
	b := l.as("alice-token")
	p := b.page()
	p.subscribe("s")
	version := p.expect("snapshot one", "sync").ResourceVersion
	_ = p.Close()
	l.garden.Set(t, shoots+"/two", shoot("here"))

	p = b.page()
	p.subscribe("again", "resourceVersion", version)
	p.expect("sync", "added two")
	p.subscribe("another", "resourceVersion", version) // The same watch knows what came since.
	p.expect("sync", "added two")

	l.garden.Forget()
	lists := map[string]string{}
	for range 4 {
		m := p.next()
		lists[m.ID] += fmt.Sprintf("%s %d %t, ", m.Type, len(m.Items), m.First)
	}
	for _, id := range []string{"again", "another"} {
		if lists[id] != "snapshot 2 true, sync 0 false, " {
			t.Errorf("%s was told %s", id, lists[id])
		}
	}
	_ = p.Close()
	await(t, "the watch ends", func() bool { return l.dashboard.live.Watches() == 0 })
	p = b.page()
	p.subscribe("late", "resourceVersion", version) // The garden has forgotten that.
	p.expect("sync", "snapshot one two", "sync")
}

func TestLiveSharesWatches(t *testing.T) {
	l := newLandscape(t)
	alice, bob := l.as("alice-token"), l.as("bob-token")
	pages := []*page{alice.page(), alice.page(), l.as("alice-token").page(), bob.page()}
	for _, p := range pages {
		p.subscribe("a")
		p.expect("snapshot", "sync")
		p.subscribe("b", "filter", "two")
		p.expect("snapshot", "sync")
	}
	await(t, "one watch for each user", func() bool { return l.garden.Watching() == 2 })
	if got := l.dashboard.live.Watches(); got != 2 {
		t.Errorf("%d watches", got)
	}
	l.garden.Set(t, shoots+"/one", shoot("here"))
	for _, p := range pages {
		got := map[string]string{}
		for range 2 {
			m := p.next()
			got[m.ID] = m.Type
		}
		if got["a"] != "added" || got["b"] != "deleted" {
			t.Errorf("got %v", got)
		}
		_ = p.Close()
	}
	await(t, "all watches end", func() bool { return l.garden.Watching() == 0 && l.dashboard.live.Sockets() == 0 })
}

// The graph of an operation is one ConfigMap, of which there is one watch, with the rights of who looks on.
func TestLiveTellsOfAnOperation(t *testing.T) {
	l := newLandscape(t)
	p := l.as("bob-token").page()
	graph := []string{"apiVersion", "v1", "resource", "configmaps", "name", "one.operation", "view", "object"}
	p.subscribe("s", graph...)
	p.expect("snapshot", "sync")
	l.garden.Set(t, "api/v1/namespaces/garden-b/configmaps/one.operation",
		gardentest.Object{"data": map[string]any{"graph": "{}"}})
	if m := p.expect("added"); m.Item.Data["graph"] != "{}" {
		t.Errorf("got %+v", m)
	}
	if got := l.garden.Watching(); got != 1 {
		t.Errorf("%d watches", got)
	}
	for _, r := range l.garden.Requests() {
		if strings.HasSuffix(r.URL.Path, "/configmaps") &&
			r.URL.Query().Get("fieldSelector") != "metadata.name=one.operation" {
			t.Errorf("other ConfigMaps are asked for: %s", r.URL)
		}
	}
	p.subscribe("other", append(graph, "namespace", "garden-a")...)
	if m := p.expect("error Forbidden"); !m.Final {
		t.Errorf("got %+v", m)
	}
}

func TestLiveFilters(t *testing.T) {
	l := newLandscape(t)
	l.garden.Set(t, shoots+"/one", shoot("here"))
	l.garden.Set(t, shoots+"/two", shoot("there"))
	p := l.as("alice-token").page()
	p.subscribe("s", "filter", "region:there")
	if m := p.expect("snapshot two", "sync"); *m.Total != 1 {
		t.Errorf("got %+v", m)
	}
	l.garden.Set(t, shoots+"/two", shoot("here"))
	p.expect("deleted two")
	p.send(map[string]string{"type": "filter", "id": "s", "filter": "-one"})
	p.expect("snapshot two", "sync")
	p.send(map[string]string{"type": "filter", "id": "none", "filter": "x"})
	p.expect("error BadRequest")
}

func TestLiveListsInParts(t *testing.T) {
	l := newLandscape(t)
	for i := range 1200 {
		l.garden.Set(t, fmt.Sprintf("%s/s-%04d", shoots, i), shoot("here"))
	}
	p := l.as("alice-token").page()
	p.subscribe("s")
	for i, size := range []int{500, 500, 200} {
		if m := p.next(); m.Type != "snapshot" || m.First != (i == 0) || len(m.Items) != size {
			t.Errorf("part %d: %s of %d", i, m.Type, len(m.Items))
		}
	}
	if m := p.expect("sync"); *m.Total != 1200 {
		t.Errorf("total %d", *m.Total)
	}
}

// closed fails unless the socket is closed with a code.
func closed(t *testing.T, p *page, code int) {
	t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		_, _, err := p.ReadMessage()
		if err == nil {
			continue
		}
		if closing := new(websocket.CloseError); !errors.As(err, &closing) || closing.Code != code {
			t.Errorf("closed with %v, want %d", err, code)
		}
		return
	}
}

func TestSocketsEndWithTheirSession(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	p := b.page()
	b.do("POST", "/api/logout", "")
	closed(t, p, live.CodeLoggedOut)

	p = l.as("alice-token").page()
	p.subscribe("s")
	p.expect("snapshot", "sync")
	delete(l.garden.Users, "alice-token")
	l.garden.Forget()
	closed(t, p, live.CodeLoggedOut)

	p = l.as("bob-token").page()
	l.dashboard.live.Close(t.Context())
	closed(t, p, websocket.CloseGoingAway)
}
