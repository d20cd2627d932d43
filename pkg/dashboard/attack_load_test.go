package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
)

// blocked has the garden answer no list of garden-a until it is let go.
func (l *landscape) blocked() (lists func() int, letGo func()) {
	gate := make(chan struct{})
	inA := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/namespaces/garden-a/shoots") && !r.URL.Query().Has("watch")
	}
	l.garden.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if inA(r) {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		return false
	}
	return func() int {
		found := 0
		for _, r := range l.garden.Requests() {
			if inA(r) {
				found++
			}
		}
		return found
	}, func() { close(gate) }
}

// Who subscribes to what does not answer, in many windows, has few lists under way, and others none of the less.
func TestAttackLiveManyListsThatStall(t *testing.T) {
	l := newLandscape(t)
	lists, letGo := l.blocked()
	pages := []*page{l.as("alice-token").page(), l.as("alice-token").page(), l.as("alice-token").page()}
	for n, p := range pages {
		for i := range 10 {
			p.subscribe(fmt.Sprint("s", n, "-", i), "namespace", "garden-a")
		}
	}
	await(t, "four lists are under way", func() bool { return lists() == 4 })
	other := l.as("bob-token").page()
	other.subscribe("s")
	other.expect("snapshot", "sync")
	for _, p := range pages {
		p.send(map[string]string{"type": "ping"})
		p.expect("pong")
	}
	if got := lists(); got != 4 {
		t.Errorf("%d lists of one user are under way", got)
	}
	letGo()
	for _, p := range pages {
		for range 20 {
			p.next() // A snapshot and a sync of each subscription.
		}
	}
}

// A version that a page makes up is its own affair.
func TestAttackLiveVersionsOfPages(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	liar, honest := b.page(), b.page()
	liar.subscribe("s", "resourceVersion", "9999999999999")
	liar.expect("sync")
	honest.subscribe("s")
	version := honest.expect("snapshot", "sync").ResourceVersion
	if version != l.garden.Version() {
		t.Errorf("version %s", version)
	}
	l.garden.Set(t, shoots+"/one", shoot("here"))
	if m := honest.expect("added one"); m.ResourceVersion != l.garden.Version() {
		t.Errorf("got %+v", m)
	}
	if lists := count(l.garden, "/shoots"); lists != 3 { // One list and two watches.
		t.Errorf("the garden was asked %d times", lists)
	}
}

// The header Upgrade makes no other request of a request.
func TestAttackUpgradesWithoutEnd(t *testing.T) {
	l := newLandscape(t, func(c *Config) { c.Limits.Burst, c.Limits.Sockets = 5, 100 })
	upgrade := func(r *http.Request) {
		r.Header.Set("Origin", l.url)
		r.Header.Set("Upgrade", "websocket")
	}
	for _, path := range []string{"/api/session", "/api/garden/" + shoots, "/api/live", "/api/live?x"} {
		b := l.as("alice-token")
		var last answer
		for range 6 {
			last = b.do("GET", path, "", upgrade)
		}
		want(t, path, last, 429, "TooManyRequests")
		l.clock.pass(time.Minute)
	}
	b := l.as("alice-token")
	for range 5 {
		connection, _, err := dial(b, l.url)
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
	}
	if _, response, err := dial(b, l.url); err == nil || response == nil || response.StatusCode != 429 {
		t.Errorf("sockets without end: %v", err)
	}
}

// A shoot that does not take its credential ends no session, whichever question it was asked.
func TestAttackShootsThatRefuse(t *testing.T) {
	l := newLandscape(t)
	shoot := gardentest.New(t) // Nobody is known there.
	l.garden.Kubeconfig = func(string, string, string) []byte { return shoot.KubeconfigFor("other") }
	b := l.as("alice-token")
	const object = "?apiVersion=v1&kind=ConfigMap&namespace=shop&name=web"
	for what, ask := range map[string]func() answer{
		"proxy": func() answer { return b.do("GET", "/api/shoot/garden-b/one/api/v1/nodes", "") },
		"rights": func() answer {
			return b.do("POST", "/api/rights", `{"cluster":"shoot/garden-b/one","checks":[{"verb":"list"}]}`)
		},
		"fleet": func() answer { return b.do("GET", "/api/fleet/garden-b/one/explain"+object, "") },
		"moves": func() answer { return b.do("GET", "/api/fleet/garden-b/one/moves", "") },
	} {
		before := count(l.garden, "kubeconfig")
		want(t, what, ask(), 503, "Unavailable")
		want(t, what+" again", ask(), 503, "Unavailable")
		if asked := count(l.garden, "kubeconfig") - before; asked < 1 {
			t.Errorf("%s: the garden was not asked for another credential", what)
		}
	}
	p := b.page()
	p.subscribe("s", "cluster", "shoot/garden-b/one", "apiVersion", "v1", "resource", "nodes", "namespace", "")
	if m := p.expect("error Unavailable"); m.Final || m.Error.Code != 503 {
		t.Errorf("got %+v", m)
	}
	want(t, "the session", b.do("GET", "/api/session", ""), 200, "")
}
