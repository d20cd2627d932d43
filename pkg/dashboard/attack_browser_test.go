package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
)

const shoots = "apis/core.gardener.cloud/v1beta1/namespaces/garden-b/shoots"

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
}

func TestAttackCSRF(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	for what, test := range map[string]struct {
		change func(*http.Request)
		code   int
	}{
		"the page itself":            {func(*http.Request) {}, 200},
		"without a token":            {header("X-CSRF-Token", ""), 403},
		"with a wrong token":         {header("X-CSRF-Token", "x"+b.csrf), 403},
		"from another site":          {header("Origin", "https://evil.example"), 403},
		"from a site of like name":   {header("Origin", l.url+".evil.example"), 403},
		"from a sandboxed frame":     {header("Origin", "null"), 403},
		"without an origin":          {header("Origin", ""), 403},
		"from a site next to it":     {header("Sec-Fetch-Site", "same-site"), 403},
		"of a form (no JSON)":        {header("Content-Type", "text/plain"), 415},
		"of a form with files":       {header("Content-Type", "multipart/form-data; boundary=x"), 415},
		"without a type of contents": {header("Content-Type", ""), 415},
	} {
		for _, path := range []string{"/api/garden/" + shoots, "/api/rights"} {
			body := `{"cluster":"garden"}`
			if a := b.do("POST", path, body, test.change); a.code != test.code {
				t.Errorf("%s: %s: %d %s", what, path, a.code, a.text)
			}
		}
	}
	want(t, "a log-in from another site",
		b.do("POST", "/api/login/token", `{"token":"bob-token"}`, header("Origin", "https://evil.example")), 403,
		"CSRF")
}

// What the proxy refuses, the garden never hears of.
func TestAttackPathsOutOfTheProxy(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	before := len(l.garden.Requests())
	for _, path := range []string{
		"", "healthz", "metrics", "logs/", "api/v1/nodes/n/proxy/metrics", "api/v1/nodes",
		"api/v1/namespaces/x/pods/p/exec?command=sh", "api/v1/namespaces/x/services/https:s:443/proxy/",
		"api/v1/namespaces/x/serviceaccounts/s/token", "apis/certificates.k8s.io/v1/certificatesigningrequests",
		"apis/core.gardener.cloud/v1beta1/namespaces/x/shoots/s/adminkubeconfig",
		"apis/core.gardener.cloud/v1beta1/namespaces/x/shoots/s/viewerkubeconfig", "../config", "..%2fconfig",
		"api/v1/..%2f..%2fmetrics", "api/v1/namespaces/..%2f..%2f..%2fmetrics", "api/v1/%2e%2e/%2e%2e/metrics",
		"api/v1//namespaces", "api/v1/namespaces/%252e%252e", "api/v1/namespaces/a%2Fsecrets",
		"api/v1/namespaces/a%5Cb",
		"api/v1/namespaces/a%00b", "api/v1/namespaces/a%0d%0aX-Y:%20z", "api/v1/namespaces/a%3Fwatch=true",
		"api/v1/namespaces/a;b", "/evil.example/x", "api/v1/watch/namespaces", "api/v1/proxy/nodes/n",
		"api/v1/namespaces?watch=true", "api/v1/namespaces?watch=1", "api/v1/namespaces?watch",
		"apis/apps/v1/deployments", "apis/authorization.k8s.io/v1/subjectaccessreviews",
		"apis/authentication.k8s.io/v1/tokenreviews", "openapi/v2", "apis/" + strings.Repeat("a/", 20) + "b",
		"api/v1/" + strings.Repeat("a", 3000), "debug/pprof/heap", "api/v1/namespaces/x/secrets/s/data",
	} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			a := b.do(method, "/api/garden/"+path, "", func(r *http.Request) {
				r.URL.Opaque, r.URL.RawQuery = "//"+r.URL.Host+"/api/garden/"+path, "" // As it is written.
			})
			if a.code != 403 && a.code != 404 {
				t.Errorf("%s %s: %d %s", method, path, a.code, a.text)
			}
		}
	}
	for _, r := range l.garden.Requests()[before:] {
		t.Errorf("the garden was asked for %s", r.URL)
	}
}

func TestAttackOtherMethods(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	for what, a := range map[string]answer{
		"delete a collection": b.do("DELETE", "/api/garden/"+shoots, ""),
		"connect":             b.do("TRACE", "/api/garden/"+shoots, ""),
		"options":             b.do("OPTIONS", "/api/garden/"+shoots+"/s", ""),
		"read a review":       b.do("GET", "/api/garden/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ""),
	} {
		want(t, what, a, 403, "NotProxied")
	}
}

// The garden sees the user's credential, whatever a page sends to say that it is somebody else.
func TestAttackImpersonation(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	b.do("GET", "/api/garden/"+shoots+"?as=root&impersonate=root", "", func(r *http.Request) {
		for name, value := range map[string]string{
			"Impersonate-User": "root", "Impersonate-Group": "system:masters", "Impersonate-Extra-Scopes": "x",
			"X-Remote-User": "root", "Authorization": "Bearer root", "X-Forwarded-For": "10.0.0.1",
			"Connection": "Impersonate-User", "Proxy-Authorization": "x",
		} {
			r.Header.Set(name, value)
		}
	})
	requests := l.garden.Requests()
	last := requests[len(requests)-1]
	if got := last.Header.Get("Authorization"); got != "Bearer alice-token" {
		t.Errorf("the garden sees %q", got)
	}
	for name := range last.Header {
		if strings.HasPrefix(name, "Impersonate") || strings.HasPrefix(name, "X-") || name == "Cookie" ||
			strings.HasPrefix(name, "Proxy") {
			t.Errorf("the garden sees %s", name)
		}
	}
	if last.URL.Query().Has("as") || last.URL.Query().Has("impersonate") {
		t.Errorf("the garden sees %s", last.URL)
	}
}

func TestAttackLargeBody(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	body := `{"token":"` + strings.Repeat("a", maxBody) + `"}`
	want(t, "log-in", b.do("POST", "/api/login/token", body), 413, "RequestEntityTooLarge")
	want(t, "proxy", b.do("POST", "/api/garden/"+shoots, body), 413, "RequestEntityTooLarge")
}

func TestAttackSocketsOfOtherSites(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	for origin, code := range map[string]int{
		l.url: 101, "https://evil.example": 403, "": 403, "null": 403, strings.Replace(l.url, "https", "http", 1): 403,
	} {
		_, response, err := dial(b, origin)
		if response == nil {
			t.Fatalf("origin %q: %v", origin, err)
		}
		if response.StatusCode != code {
			t.Errorf("origin %q: %d", origin, response.StatusCode)
		}
	}
	_, response, _ := dial(l.browser(), l.url)
	if response == nil || response.StatusCode != 401 {
		t.Errorf("without a session: %v", response)
	}
}

// dial opens a socket as a page of an origin.
func dial(b *browser, origin string) (*websocket.Conn, *http.Response, error) {
	return dialTo(b, origin, "/api/live", "trellis.live.v1")
}

// dialTo opens a socket of another path.
func dialTo(b *browser, origin, path, protocol string) (*websocket.Conn, *http.Response, error) {
	return dialAt(b, "wss"+strings.TrimPrefix(b.url, "https"), origin, path, protocol)
}

// dialAt opens one at another address of the dashboard.
func dialAt(b *browser, address, origin, path, protocol string) (*websocket.Conn, *http.Response, error) {
	dialer := websocket.Dialer{
		TLSClientConfig: b.web.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
		Subprotocols:    []string{protocol},
	}
	dialer.TLSClientConfig.NextProtos = nil
	sent := http.Header{}
	if origin != "" {
		sent.Set("Origin", origin)
	}
	var cookies []string
	for name, value := range b.cookies {
		cookies = append(cookies, name+"="+value)
	}
	sent.Set("Cookie", strings.Join(cookies, "; "))
	return dialer.Dial(address+path, sent)
}

// Who leads the garden's API elsewhere, or answers with a page, reaches no browser.
func TestAttackAnswersOfClusters(t *testing.T) {
	l := newLandscape(t)
	b := l.as("alice-token")
	for what, answer := range map[string]func(http.ResponseWriter){
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://evil.example")
			w.WriteHeader(http.StatusFound)
		},
		"page": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<script>alert(1)</script>"))
		},
		"cookie": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Set-Cookie", "__Host-trellis-session=1.x; Path=/")
			w.Header().Set("Content-Security-Policy", "default-src *")
			_, _ = w.Write([]byte("{}"))
		},
	} {
		l.garden.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
			answer(w)
			return true
		}
		a := b.do("GET", "/api/garden/"+shoots, "")
		if what == "cookie" {
			if a.code != 200 || a.header.Get("Set-Cookie") != "" ||
				a.header.Get("Content-Security-Policy") != apiPolicy {
				t.Errorf("%s: %d %v", what, a.code, a.header)
			}
			continue
		}
		want(t, what, a, 502, "Unavailable")
		if a.header.Get("Location") != "" {
			t.Errorf("%s: %v", what, a.header)
		}
	}
}

// A kubeconfig that somebody was given leads to nothing but its credential.
func TestAttackKubeconfigsOfUsers(t *testing.T) {
	l := newLandscape(t)
	b := l.browser()
	login := func(text []byte) answer {
		body := `{"kubeconfig":` + quote(string(text)) + `}`
		return b.do("POST", "/api/login/kubeconfig", body)
	}
	want(t, "as it should be", login(l.garden.KubeconfigFor("alice-token")), 200, "")
	want(t, "by another address of the garden", login(l.garden.KubeconfigFor("alice-token",
		func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://API.garden.example:443/" })),
		200, "")
	want(t, "a wrong token", login(l.garden.KubeconfigFor("wrong")), 401, "Unauthorized")
	for what, change := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"another server": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://evil.example" },
		"the garden's name as a user": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "https://api.garden.example@evil.example"
		},
		"another path": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server += "/evil" },
		"no TLS": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = strings.Replace(c.Server, "https", "http", 1)
		},
		"a proxy": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "http://evil.example" },
		"a file of an authority": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthority = "/etc/hostname"
		},
		"a file of a token": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.TokenFile = "", "/var/run/secrets/kubernetes.io/serviceaccount/token"
		},
		"a file of a certificate": func(_ *clientcmdapi.Cluster,
			u *clientcmdapi.AuthInfo) {
			u.ClientCertificate = "/x"
		},
		"a file of a key": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = "/x" },
		"a command": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		},
		"a provider": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		},
		"somebody else": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Impersonate = "root" },
		"a group": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Impersonate, u.ImpersonateGroups = "x", []string{"system:masters"}
		},
		"a password": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Username, u.Password = "x", "y" },
		"nothing":    func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "" },
		"a line break": func(_ *clientcmdapi.Cluster,
			u *clientcmdapi.AuthInfo) {
			u.Token = "a\r\nX-Remote-User: root"
		},
	} {
		before := len(l.garden.Requests())
		want(t, what, login(l.garden.KubeconfigFor("alice-token", change)), 422, "Invalid")
		if len(l.garden.Requests()) != before {
			t.Errorf("%s: the garden was asked", what)
		}
	}
	want(t, "no YAML", login([]byte("{")), 422, "Invalid")
}

func quote(text string) string {
	return `"` + strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(text) + `"`
}

// What users may do is their cluster's to say, for one user as for the other.
func TestAttackAnotherUsersRights(t *testing.T) {
	l := newLandscape(t)
	alice, bob := l.as("alice-token"), l.as("bob-token")
	l.garden.Set(t, "apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots/one", gardentest.Object{})
	path := "/api/garden/apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots/one"
	want(t, "alice", alice.do("GET", path, ""), 200, "")
	want(t, "bob", bob.do("GET", path, ""), 403, "Forbidden")
}

func TestAttackOpenRedirect(t *testing.T) {
	l := newLandscape(t)
	for _, next := range []string{"https://evil.example", "//evil.example"} {
		a := l.browser().do("GET", "/api/login/oidc?next="+url.QueryEscape(next), "")
		if a.code != 302 || !strings.HasPrefix(a.header.Get("Location"), "/login?") {
			t.Errorf("%s: %d %v", next, a.code, a.header)
		}
	}
}
