package dashboard

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
)

func TestProxyToTheGarden(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	l.garden.Set(t, shoots+"/one", gardentest.Object{
		"metadata": map[string]any{"managedFields": []any{map[string]any{"manager": "x"}},
			"labels": map[string]any{"a": "b"}},
		"spec": map[string]any{"region": "here", "managedFields": "kept"},
	})
	var shoot gardentest.Object
	a := b.do("GET", "/api/garden/"+shoots+"/one", "")
	a.read(t, &shoot)
	if _, found := shoot["metadata"].(map[string]any)["managedFields"]; found || !strings.Contains(a.text, `"kept"`) ||
		!strings.Contains(a.text, `"a":"b"`) {
		t.Errorf("got %s", a.text)
	}
	want(t, "one that there is not", b.do("GET", "/api/garden/"+shoots+"/two", ""), 404, "NotFound")
	b.do("GET", "/api/garden/"+shoots+"?limit=100000&labelSelector=a%3Db", "")
	requests := l.garden.Requests()
	if query := requests[len(requests)-1].URL.Query(); query.Get("limit") != "500" ||
		query.Get("labelSelector") != "a=b" {
		t.Errorf("the garden was asked for %v", query)
	}
	a = b.do("PATCH", "/api/garden/"+shoots+"/one?dryRun=All&fieldManager=dashboard", `{"spec":{}}`,
		header("Content-Type", "application/merge-patch+json"))
	requests = l.garden.Requests()
	last := requests[len(requests)-1]
	if a.code != 200 || last.Method != "PATCH" || last.URL.Query().Get("dryRun") != "All" ||
		last.Header.Get("Content-Type") != "application/merge-patch+json" {
		t.Errorf("%d, the garden saw %s %s", a.code, last.Method, last.URL)
	}
	for _, path := range []string{"version", "api", "apis", "apis/core.gardener.cloud/v1beta1", "openapi/v3",
		"openapi/v3/apis/core.gardener.cloud/v1beta1", "api/v1/namespaces/garden-b"} {
		if a := b.do("GET", "/api/garden/"+path, ""); a.code == 403 {
			t.Errorf("%s: %s", path, a.text)
		}
	}
}

func TestProxyToShoots(t *testing.T) {
	l := newLandscape(t)
	shoot := gardentest.New(t)
	shoot.Users["admin-of-one"] = gardentest.User{Name: "admin"}
	shoot.Users["viewer-of-one"] = gardentest.User{Name: "viewer"}
	shoot.Set(t, "api/v1/nodes/n", gardentest.Object{})
	l.garden.Kubeconfig = func(level, _, name string) []byte { return shoot.KubeconfigFor(level + "-of-" + name) }
	for token, wanted := range map[string]string{"alice-token": "Bearer admin-of-one",
		"bob-token": "Bearer viewer-of-one"} {
		b := l.as(token)
		for range 2 {
			a := b.do("GET", "/api/shoot/garden-b/one/api/v1/nodes", "")
			if a.code != 200 || strings.Contains(a.text, "-of-one") {
				t.Errorf("%s: %d %s", token, a.code, a.text)
			}
		}
		requests := shoot.Requests()
		if got := requests[len(requests)-1].Header.Get("Authorization"); got != wanted {
			t.Errorf("%s: the shoot sees %s", token, got)
		}
	}
	if asked := count(l.garden, "kubeconfig"); asked != 3 { // Two of them bob's.
		t.Errorf("the garden was asked for a kubeconfig %d times", asked)
	}
	alice := l.as("alice-token")
	for _, path := range []string{"garden-b/one/api/v1/namespaces/x/pods/p/exec", "garden-b/one/api/v1/nodes/n/proxy/",
		"garden-b/..%2fx/api/v1/nodes", "../one/api/v1/nodes", "garden-b/one"} {
		if a := alice.do("GET", "/api/shoot/"+path, ""); a.code/100 != 4 {
			t.Errorf("%s: %d %s", path, a.code, a.text)
		}
	}
	want(t, "of a project that is not bob's", l.as("bob-token").do("GET", "/api/shoot/garden-a/one/api/v1/nodes", ""),
		403,
		"Forbidden")

	delete(shoot.Users, "admin-of-one") // Its credentials are rotated.
	want(t, "once", alice.do("GET", "/api/shoot/garden-b/one/api/v1/nodes", ""), 503, "Unavailable")
	shoot.Users["admin-of-one"] = gardentest.User{Name: "admin"}
	want(t, "then", alice.do("GET", "/api/shoot/garden-b/one/api/v1/nodes", ""), 200, "")
}

func count(g *gardentest.Garden, suffix string) int {
	found := 0
	for _, r := range g.Requests() {
		if strings.HasSuffix(r.URL.Path, suffix) {
			found++
		}
	}
	return found
}

func TestRights(t *testing.T) {
	l := newLandscape(t)
	var told struct{ Allowed []bool }
	l.as("bob-token").do("POST", "/api/rights", `{"cluster":"garden","checks":[
		{"verb":"list","group":"core.gardener.cloud","resource":"shoots","namespace":"garden-b"},
		{"verb":"list","group":"core.gardener.cloud","resource":"shoots","namespace":"garden-a"},
		{"verb":"create","group":"core.gardener.cloud","resource":"shoots","subresource":"adminkubeconfig",
		 "namespace":"garden-b","name":"x"}]}`).read(t, &told)
	if len(told.Allowed) != 3 || !told.Allowed[0] || told.Allowed[1] || told.Allowed[2] {
		t.Errorf("bob may %v", told.Allowed)
	}
	many, _ := json.Marshal(map[string]any{"cluster": "garden", "checks": make([]check, maxChecks+1)})
	want(t, "too many", l.as("bob-token").do("POST", "/api/rights", string(many)), 400, "BadRequest")
}

func TestKubeconfigsAreDownloads(t *testing.T) {
	l := newLandscape(t)
	l.garden.Kubeconfig = func(level, _, name string) []byte { return []byte(level + " of " + name) }
	b := l.as("alice-token")
	navigate := header("Sec-Fetch-Mode", "navigate")
	a := b.do("GET", "/api/kubeconfig/shoot/garden-b/one?level=viewer", "", navigate)
	if a.text != "viewer of one" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got %d %s %v", a.code, a.text, a.header)
	}
	a = b.do("GET", "/api/kubeconfig/serviceaccount/garden-b/robot", "", navigate)
	if a.code != 200 || !strings.Contains(a.text, "token-of-robot") ||
		!strings.Contains(a.text, "server: https://api.garden.example") {
		t.Errorf("got %d %s", a.code, a.text)
	}
	for what, a := range map[string]answer{
		"by a script":    b.do("GET", "/api/kubeconfig/shoot/garden-b/one", "", header("Sec-Fetch-Mode", "cors")),
		"without saying": b.do("GET", "/api/kubeconfig/serviceaccount/garden-b/robot", ""),
	} {
		want(t, what, a, 403, "NotProxied")
	}
	for _, query := range []string{"level=root", "expirationSeconds=1", "expirationSeconds=x"} {
		want(t, query, b.do("GET", "/api/kubeconfig/shoot/garden-b/one?"+query, "", navigate), 400, "BadRequest")
	}
}

func TestPages(t *testing.T) {
	l := newLandscape(t)
	b := l.browser()
	for path, wanted := range map[string]struct{ text, cache, kind string }{
		"/":                     {"<html>pages</html>", "no-cache", "text/html; charset=utf-8"},
		"/projects/a/shoots":    {"<html>pages</html>", "no-cache", "text/html; charset=utf-8"},
		"/login?error=x":        {"<html>pages</html>", "no-cache", "text/html; charset=utf-8"},
		"/..%2f..%2fetc/passwd": {"<html>pages</html>", "no-cache", "text/html; charset=utf-8"},
		"/assets/index-Bq3vX9aT.js": {"script", "public, max-age=31536000, immutable",
			"text/javascript; charset=utf-8"},
		"/favicon.svg": {"<svg/>", "no-cache", "image/svg+xml"},
	} {
		a := b.do("GET", path, "")
		if a.code != 200 || a.text != wanted.text || a.header.Get("Cache-Control") != wanted.cache ||
			a.header.Get("Content-Type") != wanted.kind {
			t.Errorf("%s: %d %q %v", path, a.code, a.text, a.header)
		}
		if got := a.header.Get("Content-Security-Policy"); strings.Contains(got, "unsafe") || got != policy {
			t.Errorf("%s: policy %s", path, got)
		}
	}
	a := b.do("GET", "/", "", header("Accept-Encoding", "gzip, br"))
	if a.text != "brotli" || a.header.Get("Content-Encoding") != "br" {
		t.Errorf("compressed: %q %v", a.text, a.header)
	}
	if a := b.do("GET", "/assets/old-12345678.js", ""); a.code != http.StatusNotFound {
		t.Errorf("an asset of before: %d", a.code)
	}
	for _, name := range []string{"Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options",
		"Referrer-Policy", "Cross-Origin-Opener-Policy"} {
		if a.header.Get(name) == "" {
			t.Errorf("no header %s", name)
		}
	}
	want(t, "nothing", l.as("alice-token").do("GET", "/api/nothing", ""), 404, "NotFound")
}

func TestUsersAreLimited(t *testing.T) {
	l := newLandscape(t, func(c *Config) { c.Limits.Burst, c.Limits.Sockets = 5, 1 })
	one, two, bob := l.as("alice-token"), l.as("alice-token"), l.as("bob-token")
	for range 5 {
		want(t, "within", one.do("GET", "/api/session", ""), 200, "")
	}
	a := two.do("GET", "/api/session", "")
	want(t, "in another browser", a, 429, "TooManyRequests")
	if a.header.Get("Retry-After") != "1" {
		t.Error("nothing says when to try again")
	}
	l.clock.pass(time.Minute)
	want(t, "somebody else", bob.do("GET", "/api/session", ""), 200, "")
	if _, response, err := dial(one, l.url); err != nil {
		t.Fatalf("first socket: %v %v", err, response)
	}
	if _, response, err := dial(two, l.url); err == nil || response.StatusCode != 429 {
		t.Errorf("second socket: %v", err)
	}
}
