package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
)

// The values of Secrets reach no page, by whichever path.
func TestAttackSecretsInPages(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	for _, path := range []string{"api/v1/namespaces/garden-b/secrets/s", "api/v1/namespaces/garden-b/secrets",
		"api/v1/secrets", "apis/core.gardener.cloud/v1beta1/namespaces/garden-b/internalsecrets/s",
		"apis/core.gardener.cloud/v1beta1/namespaces/garden-b/shootstates/s"} {
		b.do("GET", "/api/garden/"+path, "", header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"))
		requests := l.garden.Requests()
		accept := requests[len(requests)-1].Header.Get("Accept")
		for wanted := range strings.SplitSeq(accept, ",") {
			if !strings.Contains(wanted, "as=PartialObjectMetadata") {
				t.Errorf("%s: the garden was asked for %s", path, accept)
			}
		}
	}
}

func TestAttackLive(t *testing.T) {
	l := newLandscape(t, func(c *Config) { c.Limits.Subscriptions = 2 })
	l.garden.Set(t, "apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots/one", shoot("here"))
	p := l.as("bob-token").page()
	p.subscribe("s", "namespace", "garden-a")
	if m := p.expect("error Forbidden"); !m.Final || m.ID != "s" {
		t.Errorf("got %+v", m)
	}
	for field, value := range map[string]string{
		"resource": "../secrets", "namespace": "a/../b", "apiVersion": "v1/v1/v1", "cluster": "https://evil.example",
		"labelSelector": "=,", "name": "a?b", "resourceVersion": "-1", "view": "all",
	} {
		p.subscribe("s", field, value)
		if m := p.expect("error BadRequest"); !m.Final {
			t.Errorf("%s: %+v", field, m)
		}
	}
	p.subscribe(strings.Repeat("x", 65))
	p.expect("error BadRequest")
	for _, id := range []string{"a", "b"} {
		p.subscribe(id)
		p.expect("snapshot", "sync")
	}
	p.subscribe("c")
	p.expect("error TooManyRequests")
}

// Only metadata of Secrets reaches pages, whichever view they ask for.
func TestAttackLiveSecrets(t *testing.T) {
	l := newLandscape(t)
	l.garden.Set(t, "api/v1/namespaces/garden-b/secrets/s",
		gardentest.Object{"data": map[string]any{"password": "aGlkZGVu"}})
	p := l.as("alice-token").page()
	for _, view := range []string{"object", "row", "meta"} {
		p.subscribe("s", "apiVersion", "v1", "resource", "secrets", "view", view)
		_, text, err := p.ReadMessage()
		if err != nil || strings.Contains(string(text), "aGlkZGVu") || !strings.Contains(string(text), `"name":"s"`) {
			t.Errorf("%s: %s %v", view, text, err)
		}
		p.expect("sync")
	}
}

func TestAttackSessions(t *testing.T) {
	l := newLandscape(t)
	alice, bob := l.as("alice-token"), l.as("bob-token")
	const name = "__Host-trellis-session"
	sealed := alice.cookies[name]
	flipped := []byte(sealed)
	flipped[len(flipped)/2] ^= 1
	for what, value := range map[string]string{
		"tampered": string(flipped), "cut": sealed[:len(sealed)-5], "empty": "", "more parts": "6" + sealed[1:],
		"no parts": "0" + sealed[1:], "many parts": "9999999999" + sealed[1:], "not sealed": `1.eyJ1IjoiYWxpY2UifQ`,
	} {
		b := l.browser()
		b.cookies[name] = value
		want(t, what, b.do("GET", "/api/session", ""), 401, "Unauthorized")
	}
	bob.cookies = alice.cookies
	want(t, "another's cookie with one's own token", bob.do("POST", "/api/logout", ""), 403, "CSRF")
	l.clock.pass(defaultLifetime - time.Minute)
	want(t, "before the end", alice.do("GET", "/api/session", ""), 200, "")
	l.clock.pass(2 * time.Minute)
	want(t, "after the end", alice.do("GET", "/api/session", ""), 401, "SessionExpired")
}

func TestAttackLogInWithAnIssuer(t *testing.T) {
	for what, test := range map[string]struct {
		claims map[string]any
		code   string
		foul   func(*landscape, *browser, *issuer, string) string
		wanted string
	}{
		"a wrong code":       {code: "bad", wanted: "token"},
		"for another client": {claims: map[string]any{"aud": "other"}, wanted: "token"},
		"of another issuer":  {claims: map[string]any{"iss": "https://evil.example"}, wanted: "token"},
		"of another log-in":  {claims: map[string]any{"nonce": "other"}, wanted: "token"},
		"expired":            {claims: map[string]any{"exp": 1}, wanted: "token"},
		"another state": {foul: func(_ *landscape, _ *browser, _ *issuer, s string) string { return s + "x" },
			wanted: "state"},
		"in another browser": {foul: func(l *landscape, b *browser, _ *issuer,
			s string) string {
			b.cookies = nil
			return s
		}, wanted: "state"},
		"after a long time": {foul: func(l *landscape, _ *browser, _ *issuer,
			s string) string {
			l.clock.pass(time.Hour)
			return s
		}, wanted: "state"},
		"another's challenge": {foul: func(_ *landscape, _ *browser, i *issuer,
			s string) string {
			i.challenge = "x"
			return s
		}, wanted: "token"},
	} {
		l, i := withIssuer(t)
		b := l.browser()
		state := i.begin(b, "/")
		i.claims = test.claims
		if test.foul != nil {
			state = test.foul(l, b, i, state)
		}
		if b.cookies == nil {
			b.cookies = map[string]string{}
		}
		code := test.code
		if code == "" {
			code = "good"
		}
		if got := callback(b, state, code); !strings.HasPrefix(got, "/login?error="+test.wanted+"&") {
			t.Errorf("%s: led to %s", what, got)
		}
		want(t, what, b.do("GET", "/api/session", ""), 401, "Unauthorized")
	}
}

// Who asks for many lists and reads none holds up nobody else.
func TestAttackLiveWithoutReading(t *testing.T) {
	l := newLandscape(t)
	large := gardentest.Object{"spec": map[string]any{"padding": strings.Repeat("x", 40<<10)}}
	for i := range 300 {
		l.garden.Set(t, fmt.Sprintf("%s/s-%03d", shoots, i), large)
	}
	silent := l.as("alice-token").page()
	for i := range 40 {
		silent.subscribe(fmt.Sprint("s", i), "view", "object")
	}
	await(t, "its lists are read", func() bool { return count(l.garden, "/shoots") >= 4 })
	p := l.as("bob-token").page()
	p.subscribe("s")
	if m := p.next(); len(m.Items) != 300 {
		t.Errorf("got %d items", len(m.Items))
	}
	p.expect("sync")
}
