package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

// No other site opens a terminal in the browser of somebody who is logged in, and nobody does who is not.
func TestAttackTerminalsOfOtherSites(t *testing.T) {
	l, cluster := withCluster(t)
	b := l.as("alice-token")
	before := len(l.garden.Requests())
	for origin, code := range map[string]int{
		"https://evil.example": 403, "": 403, "null": 403, l.url + ".evil.example": 403,
	} {
		_, response, err := dialTo(b, origin, "/api/terminal?"+inOne, "trellis.terminal.v1")
		if response == nil || response.StatusCode != code {
			t.Errorf("origin %q: %v %v", origin, response, err)
		}
	}
	_, response, err := dialTo(l.browser(), l.url, "/api/terminal?"+inOne, "trellis.terminal.v1")
	if response == nil || response.StatusCode != 401 {
		t.Errorf("without a session: %v %v", response, err)
	}
	want(t, "a link of another site", b.do("GET", "/api/terminal?"+inOne, "", func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}), 400, "")
	if len(l.garden.Requests()) != before || len(cluster.Requests()) > 0 {
		t.Error("a cluster was asked")
	}
}

// A viewer has no terminal: neither is there one with more than their rights, nor does the server lend any.
func TestAttackTerminalOfAViewer(t *testing.T) {
	l, cluster := withCluster(t)
	l.garden.Set(t, "apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/managedseeds/managed",
		gardentest.Object{"spec": map[string]any{"shoot": map[string]any{"name": "seed-shoot"}}})
	b := l.as("bob-token")
	for _, query := range []string{
		inOne, inOne + "&target=shoot", inOne + "&level=admin", inOne + "&target=controlplane",
		"namespace=garden-a&shoot=one",
	} {
		if end := b.screen(query).ended(); end.Reason != "Forbidden" {
			t.Errorf("%s: %+v", query, end)
		}
	}
	if requests := cluster.Requests(); len(requests) > 0 {
		t.Errorf("the cluster was asked for %v", requests[0].URL)
	}
}

// Who has an administrator's kubeconfig whose rights were taken away in the cluster gets no more than it gives.
func TestAttackTerminalBeyondItsAuthor(t *testing.T) {
	l, cluster := withCluster(t)
	cluster.Refuse["clusterrolebindings"] = "Forbidden"
	if end := l.as("alice-token").screen(inOne).ended(); end.Reason != "Forbidden" {
		t.Errorf("the end is %+v", end)
	}
	if slices.ContainsFunc(cluster.Requests(), func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/exec")
	}) {
		t.Error("there was a shell")
	}
}

// There is no name by which a terminal of another is reached, and no way through the proxy.
func TestAttackTerminalOfAnother(t *testing.T) {
	l, cluster := withCluster(t)
	s := l.as("alice-token").screen(inOne).begun()
	name := terminalOf(t, cluster)
	b := l.as("bob-token")
	for _, path := range []string{"/api/terminal/" + name, "/api/terminal/" + name + "/", "/api/terminal/"} {
		for _, method := range []string{"GET", "DELETE"} {
			want(t, method+" "+path, b.do(method, path, ""), 404, "NotFound")
		}
	}
	for _, of := range []*browser{b, l.as("alice-token")} {
		for _, subresource := range []string{"exec", "attach", "portforward", "proxy"} {
			path := "/api/shoot/garden-b/one/api/v1/namespaces/" + name + "/pods/terminal-1/" + subresource
			want(t, subresource, of.do("GET", path, ""), 403, "NotProxied")
		}
		token := "/api/shoot/garden-b/one/api/v1/namespaces/" + name + "/serviceaccounts/terminal/token"
		want(t, "token", of.do("POST", token, "{}"), 403, "NotProxied")
	}
	if end := b.screen(inOne + "&id=" + name + "&terminal=" + name).ended(); end.Reason != "Forbidden" {
		t.Errorf("the end is %+v", end)
	}
	s.types("still there")
	s.expect("echo still there")
}

// One user's terminals are few, however many sessions they have, and hold up nobody else.
func TestAttackTooManyTerminals(t *testing.T) {
	l, _ := withCluster(t, func(c *Config) { c.Limits.Terminals = 2 })
	first := l.as("alice-token").screen(inOne).begun()
	l.as("alice-token").screen(inOne).begun()
	if end := l.as("alice-token").screen(inOne).ended(); end.Reason != "TooManyRequests" {
		t.Errorf("the end is %+v", end)
	}
	first.types("exit\r")
	first.ended()
	await(t, "the first is not counted", func() bool { return l.dashboard.terminals.Terminals() == 1 })
	l.as("alice-token").screen(inOne).begun()
}

// What a cluster sends in place of a shell reaches the page as output and as a Status, or not at all.
func TestAttackShellsOfClusters(t *testing.T) {
	const script = "\x1b]0;<img src=x onerror=alert(1)>\x07\x1b]52;c;ZXZpbA==\x07\x1b[21t</script>"
	send := func(messages ...string) func(*websocket.Conn) {
		return func(c *websocket.Conn) {
			for _, message := range messages {
				_ = c.WriteMessage(websocket.BinaryMessage, []byte(message))
			}
			_, _, _ = c.ReadMessage()
		}
	}
	for what, test := range map[string]struct {
		shell  func(*websocket.Conn)
		output string
		reason string
	}{
		"escapes":           {send("\x01"+script, "\x03{\"status\":\"Success\"}"), script, ""},
		"the page's own":    {send("\x06{\"expires\":\"never\"}", "\x05trust me", "\x01x", "\x03{}"), "x", ""},
		"an end of no JSON": {send("\x01x", "\x03<script>"), "x", "Unavailable"},
		"a reason of its own": {send("\x01x", "\x03"+`{"status":"Failure","reason":"Mine","code":200,"message":"<b>"}`),
			"x", "Mine"},
		"a message without end": {send("\x01x", "\x01"+strings.Repeat("x", 2<<20)), "x", "Unavailable"},
		"nothing":               {send("\x01x", "", "\x01", "\x03{\"status\":\"Success\"}"), "x", ""},
	} {
		l, cluster := withCluster(t)
		cluster.Shell = test.shell
		s := l.as("alice-token").screen(inOne).begun()
		s.expect(test.output)
		before := len(s.seen)
		if end := s.ended(); end.Reason != test.reason {
			t.Errorf("%s: %+v", what, end)
		}
		if rest := s.seen[before:]; !strings.HasPrefix(rest, "\x03{") {
			t.Errorf("%s: the page got %q", what, rest)
		}
	}
}

// A cluster that leads a shell elsewhere, or speaks something else, gets no further, and no other gets the credential.
func TestAttackShellsElsewhere(t *testing.T) {
	elsewhere := gardentest.New(t)
	for what, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.Server.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"another protocol": func(w http.ResponseWriter, r *http.Request) {
			upgrader := websocket.Upgrader{Subprotocols: []string{"v4.channel.k8s.io"}}
			if connection, err := upgrader.Upgrade(w, r, nil); err == nil {
				_ = connection.Close()
			}
		},
	} {
		l, cluster := withCluster(t)
		kept := cluster.Answer
		cluster.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/exec") {
				answer(w, r)
				return true
			}
			return kept(w, r)
		}
		s := l.as("alice-token").screen(inOne)
		if end := s.ended(); end.Reason != "Unavailable" {
			t.Errorf("%s: %+v", what, end)
		}
		if len(cluster.Removed()) != 1 {
			t.Errorf("%s: removed is %v", what, cluster.Removed())
		}
	}
	if requests := elsewhere.Requests(); len(requests) > 0 {
		t.Errorf("another was asked for %v", requests[0].URL)
	}
}

// A page that sends what is no message, or too much of it, loses its terminal, and nothing else happens.
func TestAttackMessagesToTerminals(t *testing.T) {
	for what, message := range map[string]string{
		"an unknown channel": "\x07x", "an end": "\x03{}", "no size": "\x04{}", "a size of a giant": `{"Width":70000}`,
		"too much": "\x00" + strings.Repeat("x", 2<<20), "nothing": "",
	} {
		l, cluster := withCluster(t)
		s := l.as("alice-token").screen(inOne).begun()
		name := terminalOf(t, cluster)
		// It may be refused before all of it is written.
		_ = s.WriteMessage(websocket.BinaryMessage, []byte(message))
		await(t, what, isRemoved(cluster, name))
	}
}

// An admin or a viewer of a project gets into no seed by the access that operators have stored, and is told who does.
// Neither is the access read for them, nor by them through the proxy.
func TestAttackTerminalInAStoredSeed(t *testing.T) {
	l, cluster := withStoredSeed(t)
	ofProject := func(verb string, of proxy.Path) bool {
		// Whoever may know which seeds are shoots may not have access to the others for that.
		return of.Namespace == "garden-b" || of.Resource == "managedseeds"
	}
	l.garden.Users["admin-of-b"] = gardentest.User{
		Name: "carol", Groups: []string{"system:authenticated"}, May: ofProject,
	}
	for _, token := range []string{"admin-of-b", "bob-token"} {
		b := l.as(token)
		end := b.screen(inOne + "&target=controlplane").ended()
		const whoMay = "operators of the garden may, who may read Secret garden/managed.login: ask one of them"
		if end.Reason != "Forbidden" || !strings.Contains(end.Message, whoMay) {
			t.Errorf("%s: the end is %+v", token, end)
		}
		want(t, token, b.do("GET", "/api/garden/"+seedAccess, ""), 403, "Forbidden")
	}
	if requests := cluster.Requests(); len(requests) > 0 {
		t.Errorf("the seed was asked for %v", requests[0].URL)
	}
}

// What is stored for a seed is used only if all of it is understood: what acts as another user, takes files, or does
// not say how to know the server is refused, and tells nothing of its credential.
func TestAttackStoredAccessToSeeds(t *testing.T) {
	l, cluster := withStoredSeed(t)
	for what, change := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"another user": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Impersonate = "system:anonymous" },
		"a proxy":      func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "http://127.0.0.1:1" },
		"a password":   func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Username, u.Password = "x", "y" },
		"a file": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.TokenFile = "", "/var/run/secrets/session/keys"
		},
		"a command": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/true", APIVersion: "client.authentication.k8s.io/v1"}
		},
		"no authority": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
		},
	} {
		l.garden.Set(t, seedAccess, gardentest.Object{"data": map[string]any{
			"kubeconfig": cluster.KubeconfigFor("admin-token", change),
		}})
		end := l.as("alice-token").screen(inOne + "&target=controlplane").ended()
		if end.Reason != "Unavailable" || !strings.Contains(end.Message, "garden/managed.login") ||
			strings.Contains(end.Message, "admin-token") {
			t.Errorf("%s: %+v", what, end)
		}
	}
	if requests := cluster.Requests(); len(requests) > 0 {
		t.Errorf("the seed was asked for %v", requests[0].URL)
	}
}
