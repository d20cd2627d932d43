package dashboard

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// clock is a time that tests set.
type clock struct {
	mutex sync.Mutex
	now   time.Time
}

func (c *clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
}

// landscape is a dashboard in front of a garden, with users alice, who may do everything, and bob, who may not.
type landscape struct {
	t      *testing.T
	garden *gardentest.Garden
	web    *httptest.Server
	clock  *clock
	url    string
	config *Config
	// dashboard is replaced by restart.
	dashboard *server
}

func newLandscape(t *testing.T, change ...func(*Config)) *landscape {
	t.Helper()
	l := &landscape{t: t, garden: gardentest.New(t), clock: &clock{now: time.Now()}}
	l.garden.Users["alice-token"] = gardentest.User{Name: "alice", Groups: []string{"system:authenticated"}}
	l.garden.Users["bob-token"] = gardentest.User{
		Name: "bob", Groups: []string{"system:authenticated"},
		May: func(verb string, of proxy.Path) bool {
			return of.Namespace == "garden-b" && of.Subresource != "adminkubeconfig" || verb == "get" && of.Name == "b"
		},
		Rules: []map[string]any{
			{"apiGroups": []string{"core.gardener.cloud"}, "resources": []string{"projects"}, "verbs": []string{"get"},
				"resourceNames": []string{"b", "gone"}},
			{"apiGroups": []string{"core.gardener.cloud"}, "resources": []string{"projects"},
				"verbs": []string{"create"}},
		},
	}
	l.web = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.dashboard.ServeHTTP(w, r)
	}))
	t.Cleanup(l.web.Close)
	l.url = l.web.URL
	l.config = l.newConfig(t.TempDir())
	for _, f := range change {
		f(l.config)
	}
	l.restart()
	t.Cleanup(func() { l.dashboard.live.Close(context.Background()) })
	return l
}

// restart reads keys and all else again.
func (l *landscape) restart() {
	l.t.Helper()
	s, err := newServer(l.config, fstest.MapFS{
		"index.html":               {Data: []byte("<html>pages</html>")},
		"index.html.br":            {Data: []byte("brotli")},
		"assets/index-Bq3vX9aT.js": {Data: []byte("script")},
		"favicon.svg":              {Data: []byte("<svg/>")},
	}, l.clock.Now)
	if err != nil {
		l.t.Fatal(err)
	}
	l.dashboard = s
}

// newConfig is written as operators write it.
func (l *landscape) newConfig(dir string) *Config {
	l.t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	for name, text := range map[string]string{
		"keys": base64.StdEncoding.EncodeToString(key), "ca.crt": string(l.garden.CA()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	config := &Config{}
	text := "publicURL: " + l.url + "\ngarden: {name: local, server: '" + l.garden.Server.URL + "', caFile: " +
		filepath.Join(dir, "ca.crt") + ", addresses: ['https://api.garden.example']}\nsession: {keysFile: " +
		filepath.Join(dir, "keys") + "}\n"
	if err := strictyaml.Unmarshal([]byte(text), config, nil); err != nil {
		l.t.Fatal(err)
	}
	config.setDefaults()
	if err := config.validate().ToAggregate(); err != nil {
		l.t.Fatal(err)
	}
	return config
}

// browser keeps cookies, and sends what a page would.
type browser struct {
	*landscape
	cookies map[string]string
	csrf    string
}

func (l *landscape) browser() *browser { return &browser{landscape: l, cookies: map[string]string{}} }

// answer of the server.
type answer struct {
	code   int
	header http.Header
	text   string
}

// reason of an error.
func (a answer) reason() string {
	var status struct{ Reason string }
	_ = json.Unmarshal([]byte(a.text), &status)
	return status.Reason
}

func (a answer) read(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.text), into); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
}

// do sends a request as a page of the dashboard does, unless change makes it another.
func (b *browser) do(method, path, body string, change ...func(*http.Request)) answer {
	b.t.Helper()
	request, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if method != http.MethodGet {
		request.Header.Set("Origin", b.url)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-CSRF-Token", b.csrf)
	}
	for name, value := range b.cookies {
		request.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for _, f := range change {
		f(request)
	}
	client := b.web.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cookie := range response.Cookies() {
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		} else {
			b.cookies[cookie.Name] = cookie.Value
		}
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// as gives a browser in which somebody is logged in.
func (l *landscape) as(token string) *browser {
	l.t.Helper()
	b := l.browser()
	text, _ := json.Marshal(map[string]string{"token": token})
	a := b.do("POST", "/api/login/token", string(text))
	if a.code != http.StatusOK {
		l.t.Fatalf("log-in: %d %s", a.code, a.text)
	}
	var told struct{ CSRFToken string }
	a.read(l.t, &told)
	b.csrf = told.CSRFToken
	return b
}

// want fails unless a request is answered with a code and, for errors, a reason.
func want(t *testing.T, what string, a answer, code int, reason string) {
	t.Helper()
	if a.code != code || reason != "" && a.reason() != reason {
		t.Errorf("%s: got %d %s, want %d %s", what, a.code, a.text, code, reason)
	}
}

func TestLogIn(t *testing.T) {
	l := newLandscape(t)
	b := l.browser()
	want(t, "nobody", b.do("GET", "/api/session", ""), 401, "Unauthorized")
	want(t, "config", b.do("GET", "/api/config", ""), 200, "")
	want(t, "wrong token", b.do("POST", "/api/login/token", `{"token":"wrong"}`), 401, "Unauthorized")
	want(t, "no token", b.do("POST", "/api/login/token", `{"token":"a\nb"}`), 401, "Unauthorized")
	want(t, "other field", b.do("POST", "/api/login/token", `{"tokens":"x"}`), 400, "BadRequest")

	b = l.as("alice-token")
	var told struct {
		User, Login, CSRFToken string
		Groups                 []string
		Expires                time.Time
	}
	b.do("GET", "/api/session", "").read(t, &told)
	if told.User != "alice" || told.Login != "token" || told.CSRFToken != b.csrf ||
		!slices.Equal(told.Groups, []string{"system:authenticated"}) ||
		told.Expires.Sub(l.clock.Now()).Round(time.Minute) != defaultLifetime {
		t.Errorf("told of %+v", told)
	}
	for name, value := range b.cookies {
		if !strings.HasPrefix(name, "__Host-") || strings.Contains(value, "alice") {
			t.Errorf("cookie %s=%s", name, value)
		}
	}
	old := *b
	old.cookies = map[string]string{"__Host-trellis-session": b.cookies["__Host-trellis-session"]}
	want(t, "log-out", b.do("POST", "/api/logout", ""), 204, "")
	want(t, "after it", b.do("GET", "/api/session", ""), 401, "Unauthorized")
	want(t, "a copy of the cookie", old.do("GET", "/api/session", ""), 401, "SessionExpired")
}

func TestSessionCookiesAreClosed(t *testing.T) {
	l := newLandscape(t)
	a := l.browser().do("POST", "/api/login/token", `{"token":"alice-token"}`)
	for _, cookie := range a.header.Values("Set-Cookie") {
		for _, attribute := range []string{"HttpOnly", "Secure", "SameSite=Strict", "Path=/", "Max-Age=43"} {
			if !strings.Contains(cookie, attribute) {
				t.Errorf("%s is not %s", cookie, attribute)
			}
		}
	}
	if strings.Contains(a.text, "alice-token") {
		t.Error("the token is told")
	}
}

func TestKeysOfSessionsAreRotated(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	keys, err := os.ReadFile(l.config.Session.KeysFile)
	if err != nil {
		t.Fatal(err)
	}
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for _, test := range []struct {
		what, keys string
		code       int
	}{
		{"a new key first", other + "\n" + string(keys), 200}, {"the old one gone", other, 401},
	} {
		if err := os.WriteFile(l.config.Session.KeysFile, []byte(test.keys), 0o600); err != nil {
			t.Fatal(err)
		}
		l.restart()
		if a := b.do("GET", "/api/session", ""); a.code != test.code {
			t.Errorf("%s: %d", test.what, a.code)
		}
	}
}

// A browser has one session and many tabs: each answer tells a tab whose it is, also one that refuses.
func TestAnswersTellTheirUser(t *testing.T) {
	l := newLandscape(t)
	l.garden.Users["zoe-token"] = gardentest.User{Name: "zoë 100%", Groups: []string{"system:authenticated"}}
	zoe := l.as("zoe-token")
	stale := zoe.csrf + "x"
	for what, a := range map[string]answer{
		"read":         zoe.do("GET", "/api/session", ""),
		"proxied":      zoe.do("GET", "/api/garden/api/v1/namespaces", ""),
		"stale token":  zoe.do("POST", "/api/rights", "{}", func(r *http.Request) { r.Header.Set("X-CSRF-Token", stale) }),
		"unknown path": zoe.do("GET", "/api/none", ""),
	} {
		if got := a.header.Get("X-Trellis-User"); got != "zo%C3%AB%20100%25" {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := l.browser().do("GET", "/api/config", "").header.Get("X-Trellis-User"); got != "" {
		t.Errorf("without a session: %q", got)
	}
	connection, _, err := dial(zoe, l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	var hello struct{ Type, User string }
	if err := connection.ReadJSON(&hello); err != nil || hello.Type != "hello" || hello.User != "zoë 100%" {
		t.Errorf("%+v %v", hello, err)
	}
}
