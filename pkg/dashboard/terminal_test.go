package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
)

const aShoot = "apis/core.gardener.cloud/v1beta1/namespaces/garden-b/shoots/one"

// withCluster is a landscape with terminals and a shoot, whose administrators have the token admin-token.
func withCluster(t *testing.T, change ...func(*Config)) (*landscape, *gardentest.Cluster) {
	t.Helper()
	change = append(change, func(c *Config) { c.Terminals.Image = "terminal:v1" })
	l := newLandscape(t, change...)
	cluster := gardentest.NewCluster(t, "admin-token")
	l.garden.Kubeconfig = func(level, _, _ string) []byte { return cluster.KubeconfigFor(level + "-token") }
	l.garden.Set(t, aShoot, gardentest.Object{
		"spec":   map[string]any{"provider": map[string]any{"workers": []any{map[string]any{"name": "w"}}}},
		"status": map[string]any{"technicalID": "shoot--b--one", "seedName": "managed"},
	})
	t.Cleanup(func() { l.dashboard.terminals.Close(context.WithoutCancel(t.Context())) })
	return l, cluster
}

// screen is a page's side of a terminal.
type screen struct {
	t *testing.T
	*websocket.Conn
	// seen is all that came.
	seen string
}

func (b *browser) screen(query string) *screen {
	b.t.Helper()
	connection, _, err := dialTo(b, b.url, "/api/terminal?"+query, "trellis.terminal.v1")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = connection.Close() })
	return &screen{t: b.t, Conn: connection}
}

const inOne = "namespace=garden-b&shoot=one"

// next message, by channel.
func (s *screen) next() (channel byte, text string) {
	s.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, message, err := s.ReadMessage()
	if err != nil {
		s.t.Fatal(err)
	}
	s.seen += string(message)
	return message[0], string(message[1:])
}

// begun waits until there is a shell.
func (s *screen) begun() *screen {
	s.t.Helper()
	for {
		switch channel, text := s.next(); channel {
		case 6:
			return s
		case 5:
		default:
			s.t.Fatalf("got %d %s", channel, text)
		}
	}
}

func (s *screen) types(text string) {
	s.t.Helper()
	if err := s.WriteMessage(websocket.BinaryMessage, []byte("\x00"+text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) expect(wanted string) {
	s.t.Helper()
	if channel, text := s.next(); channel != 1 || text != wanted {
		s.t.Fatalf("got %d %q, want %q", channel, text, wanted)
	}
}

// ended is the Status of the end, which has to come.
func (s *screen) ended() (status struct{ Status, Reason, Message string }) {
	s.t.Helper()
	for {
		if channel, text := s.next(); channel == 3 {
			if err := json.Unmarshal([]byte(text), &status); err != nil {
				s.t.Fatal(err)
			}
			return status
		}
	}
}

// terminalOf is the name of the only terminal in a cluster.
func terminalOf(t *testing.T, cluster *gardentest.Cluster) string {
	t.Helper()
	for _, path := range cluster.Paths() {
		if name, found := strings.CutPrefix(path, "api/v1/namespaces/"); found && !strings.Contains(name, "/") {
			return name
		}
	}
	t.Fatalf("there is no terminal among %v", cluster.Paths())
	return ""
}

func isRemoved(cluster *gardentest.Cluster, name string) func() bool {
	return func() bool { return slices.Contains(cluster.Removed(), "api/v1/namespaces/"+name) }
}

// events are the messages of what was recorded, the opening first.
func events(cluster *gardentest.Cluster) (all []string) {
	for _, path := range cluster.Paths() {
		if strings.HasPrefix(path, "api/v1/namespaces/default/events/") {
			event := cluster.Object(path)
			all = append(all, event["reason"].(string)+": "+event["message"].(string))
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// A terminal is a shell in a pod that is made as the user, and goes with the shell.
func TestTerminal(t *testing.T) {
	l, cluster := withCluster(t)
	b := l.as("alice-token")
	if a := b.do("GET", "/api/config", ""); !strings.Contains(a.text, `"terminal":true`) {
		t.Errorf("the pages are told %s", a.text)
	}
	s := b.screen(inOne)
	if err := s.WriteMessage(websocket.BinaryMessage, []byte("\x04"+`{"Width":100,"Height":30}`)); err != nil {
		t.Fatal(err)
	}
	s.begun()
	s.expect(`size {"Width":100,"Height":30}`)
	s.types("kubectl get nodes\r")
	s.expect("echo kubectl get nodes\r")

	name := terminalOf(t, cluster)
	for _, path := range []string{
		"api/v1/namespaces/" + name + "/serviceaccounts/terminal",
		"apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + name,
		"apis/batch/v1/namespaces/" + name + "/jobs/terminal",
	} {
		if cluster.Object(path) == nil {
			t.Errorf("there is no %s among %v", path, cluster.Paths())
		}
	}
	requests := cluster.Requests()
	exec := requests[slices.IndexFunc(requests, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/exec")
	})]
	wanted := url.Values{"command": {"/bin/sh", "-l"}, "container": {"terminal"}, "stdin": {"true"},
		"stdout": {"true"}, "tty": {"true"}}
	if exec.URL.RawQuery != wanted.Encode() {
		t.Errorf("the shell is started by %s", exec.URL.RawQuery)
	}
	s.types("exit\r")
	if end := s.ended(); end.Status != "Success" {
		t.Errorf("the end is %+v", end)
	}
	if !isRemoved(cluster, name)() {
		t.Errorf("removed: %v", cluster.Removed())
	}
	const opened, ended = "TerminalOpened: alice has opened a terminal in the cluster, until ",
		"TerminalEnded: the terminal of alice in the cluster has ended: the shell has ended"
	if all := events(cluster); len(all) != 2 || !strings.Contains(all[0], opened) || all[1] != ended {
		t.Errorf("recorded: %q", all)
	}
	for _, secret := range []string{"alice-token", "admin-token"} {
		if strings.Contains(s.seen, secret) {
			t.Errorf("the page got %s", secret)
		}
	}
}

// Whatever ends a terminal, nothing of it stays.
func TestTerminalsEnd(t *testing.T) {
	for what, test := range map[string]struct {
		end func(*landscape, *browser, *screen)
		why string
	}{
		"the tab is closed": {func(_ *landscape, _ *browser, s *screen) { _ = s.Close() }, "the page was closed"},
		"log-out": {func(l *landscape, b *browser, _ *screen) {
			want(l.t, "log-out", b.do("POST", "/api/logout", ""), 204, "")
		}, "logged out"},
		"the server ends": {func(l *landscape, _ *browser, _ *screen) {
			l.dashboard.terminals.Close(l.t.Context())
		}, "the server ends"},
	} {
		l, cluster := withCluster(t)
		b := l.as("alice-token")
		s := b.screen(inOne).begun()
		name := terminalOf(t, cluster)
		test.end(l, b, s)
		await(t, what, isRemoved(cluster, name))
		await(t, what, func() bool { return l.dashboard.terminals.Terminals() == 0 })
		if all := events(cluster); len(all) != 2 || !strings.HasSuffix(all[1], "has ended: "+test.why) {
			t.Errorf("%s: recorded %q", what, all)
		}
	}
}

// Nobody's shell stays open: time without input ends it, and output does not count.
func TestIdleTerminalsEnd(t *testing.T) {
	l, cluster := withCluster(t, func(c *Config) { c.Terminals.Idle.Duration = time.Millisecond })
	s := l.as("alice-token").screen(inOne)
	if end := s.ended(); end.Reason != "Gone" || end.Message != "nobody has typed for long" {
		t.Errorf("the end is %+v", end)
	}
	await(t, "it is removed", func() bool { return l.dashboard.terminals.Terminals() == 0 })
	if left := slices.DeleteFunc(cluster.Paths(), func(path string) bool {
		name, found := strings.CutPrefix(path, "api/v1/namespaces/")
		return !found || strings.Contains(name, "/")
	}); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

// A cluster that refuses a part of a terminal keeps nothing of it; without a record there is none.
func TestTerminalsThatDoNotBegin(t *testing.T) {
	for _, resource := range []string{"namespaces", "events", "serviceaccounts", "clusterrolebindings", "jobs"} {
		l, cluster := withCluster(t)
		cluster.Refuse[resource] = "Forbidden"
		s := l.as("alice-token").screen(inOne)
		if end := s.ended(); end.Reason != "Forbidden" {
			t.Errorf("%s: the end is %+v", resource, end)
		}
		if removed := cluster.Removed(); len(removed) != 1 || !strings.HasPrefix(removed[0],
			"api/v1/namespaces/terminal-") {
			t.Errorf("%s: removed is %v", resource, removed)
		}
		if slices.ContainsFunc(cluster.Requests(), func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/exec")
		}) {
			t.Errorf("%s: there was a shell", resource)
		}
	}
}

// What is told instead of a terminal where there cannot be one.
func TestTerminalsThatThereCannotBe(t *testing.T) {
	l, cluster := withCluster(t)
	l.garden.Set(t, "apis/core.gardener.cloud/v1beta1/namespaces/garden-b/shoots/fleet", gardentest.Object{
		"spec": map[string]any{"provider": map[string]any{}},
	})
	b := l.as("alice-token")
	for query, wanted := range map[string]string{
		"namespace=garden-b&shoot=fleet":  "Conflict",
		"namespace=garden-b&shoot=none":   "NotFound",
		"namespace=garden-b":              "BadRequest",
		"namespace=..&shoot=one":          "BadRequest",
		"namespace=garden-b&shoot=a%2Fb":  "BadRequest",
		inOne + "&target=node":            "BadRequest",
		inOne + "&target=controlplane":    "Conflict", // Its seed is no shoot, and nobody has stored access to it.
		"namespace=garden-b&shoot=one%00": "BadRequest",
	} {
		if end := b.screen(query).ended(); end.Reason != wanted {
			t.Errorf("%s: %+v", query, end)
		}
	}
	if requests := cluster.Requests(); len(requests) > 0 {
		t.Errorf("the cluster was asked for %v", requests[0].URL)
	}
}

// Shells take the same way as requests to clusters whose hosts are not looked up.
func TestTerminalsTakeTheWayOfEndpoints(t *testing.T) {
	l, cluster := withCluster(t, func(c *Config) {
		c.Endpoints = []clusters.Endpoint{{Domain: "example.com"}} // The name in the certificate of the cluster.
	})
	l.config.Endpoints[0].Address = cluster.Server.Listener.Addr().String()
	l.restart()
	l.garden.Kubeconfig = func(level, _, _ string) []byte {
		return cluster.KubeconfigFor(level+"-token", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "https://example.com"
		})
	}
	s := l.as("alice-token").screen(inOne).begun()
	s.types("here")
	s.expect("echo here")
}

// Operators get a terminal for a control plane, in the seed if it is a shoot of the garden.
func TestTerminalOfAControlPlane(t *testing.T) {
	l, cluster := withCluster(t)
	l.garden.Set(t, "apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/managedseeds/managed",
		gardentest.Object{"spec": map[string]any{"shoot": map[string]any{"name": "seed-shoot"}}})
	l.as("alice-token").screen(inOne + "&target=controlplane").begun()
	name := terminalOf(t, cluster)
	for path, there := range map[string]bool{
		"apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + name:                          false,
		"apis/rbac.authorization.k8s.io/v1/namespaces/shoot--b--one/rolebindings/" + name:        true,
		"apis/rbac.authorization.k8s.io/v1/namespaces/" + name + "/rolebindings/" + name:         true,
		"apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/" + name:          false,
		"apis/batch/v1/namespaces/" + name + "/jobs/terminal":                                    true,
		"apis/batch/v1/namespaces/shoot--b--one/jobs/terminal":                                   false,
		"apis/rbac.authorization.k8s.io/v1/namespaces/shoot--b--one/rolebindings/" + name + "-2": false,
	} {
		if (cluster.Object(path) != nil) != there {
			t.Errorf("%s: %v", path, cluster.Paths())
		}
	}
	requests := l.garden.Requests()
	if !slices.ContainsFunc(requests, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/namespaces/garden/shoots/seed-shoot/adminkubeconfig")
	}) {
		t.Error("the garden was not asked for the seed")
	}
	if all := events(cluster); len(all) != 1 || !strings.Contains(all[0],
		"alice has opened a terminal in the control plane shoot--b--one of garden-b/one, until ") {
		t.Errorf("recorded: %q", all)
	}
}

// withStoredSeed is a landscape whose seed is no shoot; operators, of whom alice is one, have stored access to it.
func withStoredSeed(t *testing.T) (*landscape, *gardentest.Cluster) {
	t.Helper()
	l, cluster := withCluster(t)
	l.garden.Set(t, seedAccess, gardentest.Object{"data": map[string]any{
		"kubeconfig": cluster.KubeconfigFor("admin-token"),
	}})
	return l, cluster
}

const seedAccess = "api/v1/namespaces/garden/secrets/managed.login"

// Where the seed is no shoot of the garden, operators get there by the access that they have stored.
func TestTerminalInAStoredSeed(t *testing.T) {
	l, cluster := withStoredSeed(t)
	s := l.as("alice-token").screen(inOne + "&target=controlplane").begun()
	name := terminalOf(t, cluster)
	for _, path := range []string{
		"apis/rbac.authorization.k8s.io/v1/namespaces/shoot--b--one/rolebindings/" + name,
		"apis/batch/v1/namespaces/" + name + "/jobs/terminal",
	} {
		if cluster.Object(path) == nil {
			t.Errorf("%s is not among %v", path, cluster.Paths())
		}
	}
	s.types("exit\r")
	s.ended()
	await(t, "it is removed", isRemoved(cluster, name))
	for _, secret := range []string{"alice-token", "admin-token", "BEGIN CERTIFICATE"} {
		if strings.Contains(s.seen, secret) {
			t.Errorf("the page got %s", secret)
		}
	}
	if all := events(cluster); len(all) != 2 || !strings.Contains(all[0],
		"alice has opened a terminal in the control plane shoot--b--one of garden-b/one, until ") {
		t.Errorf("recorded: %q", all)
	}
}
