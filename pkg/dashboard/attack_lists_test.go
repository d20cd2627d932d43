package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
	"github.com/trellis-garden/trellis/pkg/dashboard/live"
	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

// listsOf counts lists of Shoots that the garden was asked for, and proofs: questions for one object of them.
func (l *landscape) listsOf(token string) (lists, proofs int) {
	for _, r := range l.garden.Requests() {
		query := r.URL.Query()
		if !strings.HasSuffix(r.URL.Path, "/shoots") || query.Has("watch") ||
			r.Header.Get("Authorization") != "Bearer "+token {
			continue
		}
		if query.Get("limit") == "1" {
			proofs++
		} else {
			lists++
		}
	}
	return lists, proofs
}

// user adds one who may do what may says.
func (l *landscape) user(name string, may func(verb string, of proxy.Path) bool) *browser {
	l.garden.Users[name+"-token"] = gardentest.User{Name: name, May: may}
	return l.as(name + "-token")
}

func nothing(string, proxy.Path) bool { return false }

// A list that others have read is given to those only of whom the garden says that they may list the same.
func TestAttackListsOfOthers(t *testing.T) {
	l := newLandscape(t)
	l.garden.Set(t, shoots+"/one", shoot("here"))
	everywhere := []string{"namespace", ""}
	mallory, gone := l.user("mallory", nothing), l.user("gone", nil)
	alice := l.as("alice-token").page()
	alice.subscribe("s")
	alice.expect("snapshot one", "sync")
	alice.subscribe("all", everywhere...)
	alice.expect("snapshot one", "sync")

	for what, fields := range map[string][]string{"the project": nil, "all": everywhere} {
		p := mallory.page()
		p.subscribe("s", fields...)
		if m := p.expect("error Forbidden"); !m.Final {
			t.Errorf("%s: got %+v", what, m)
		}
	}
	bob := l.as("bob-token").page()
	bob.subscribe("all", everywhere...)
	bob.expect("error Forbidden")
	bob.subscribe("s")
	bob.expect("snapshot one", "sync")
	if lists, proofs := l.listsOf("bob-token"); lists != 0 || proofs != 2 {
		t.Errorf("bob listed %d times and asked %d times whether he may", lists, proofs)
	}
	if lists, proofs := l.listsOf("alice-token"); lists != 2 || proofs != 0 {
		t.Errorf("alice listed %d times and asked %d times whether she may", lists, proofs)
	}
	await(t, "who is told of changes watches", func() bool { return l.garden.Watching() == 3 })
	l.garden.Set(t, shoots+"/two", shoot("there"))
	bob.expect("added two")

	delete(l.garden.Users, "gone-token")
	p := gone.page()
	p.subscribe("s")
	closed(t, p, live.CodeLoggedOut)
}

// Who may list, and not watch, is told so, and hears of no change by the watches of others.
func TestAttackChangesOfOthers(t *testing.T) {
	l := newLandscape(t)
	l.garden.Set(t, shoots+"/one", shoot("here"))
	alice := l.as("alice-token").page()
	alice.subscribe("s")
	alice.expect("snapshot one", "sync")
	p := l.user("mallory", func(verb string, _ proxy.Path) bool { return verb == "list" }).page()
	p.subscribe("s")
	p.expect("snapshot one", "sync", "error Forbidden")
	l.garden.Set(t, shoots+"/two", shoot("there"))
	alice.expect("added two")
	p.send(map[string]string{"type": "ping"})
	p.expect("pong")
}

// Others have their list although who reads it for all is refused in the end, or goes away.
func TestAttackListsWhoseReaderGoes(t *testing.T) {
	for what, goes := range map[string]func(p *page, refuse func()){
		"refused": func(_ *page, refuse func()) { refuse() },
		"gone":    func(p *page, _ func()) { _ = p.Close() },
		"changed": func(p *page, _ func()) { p.send(map[string]string{"type": "unsubscribe", "id": "s"}) },
	} {
		l := newLandscape(t)
		l.garden.Set(t, shoots+"/one", shoot("here"))
		gate := make(chan struct{})
		l.garden.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/shoots") && r.Header.Get("Authorization") == "Bearer mallory-token" {
				select {
				case <-gate:
				case <-r.Context().Done():
				}
			}
			return false
		}
		first := l.user("mallory", nothing).page()
		first.subscribe("s")
		await(t, "she reads", func() bool { lists, _ := l.listsOf("mallory-token"); return lists == 1 })
		p := l.as("bob-token").page()
		p.subscribe("s")
		await(t, "he may", func() bool { _, proofs := l.listsOf("bob-token"); return proofs == 1 })
		goes(first, func() { close(gate) })
		if m := p.expect("snapshot one"); !m.First {
			t.Errorf("%s: got %+v", what, m)
		}
		p.expect("sync")
		if lists, _ := l.listsOf("bob-token"); lists != 1 {
			t.Errorf("%s: bob listed %d times", what, lists)
		}
	}
}
