package memberapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
)

// tunneled is a fleet with members m1 and m2 that have agents, and m3 that has none.
type tunneled struct {
	*httptest.Server
	server *Server
	fleet  client.Client
	// anonymous has the requests be those of nobody.
	anonymous atomic.Bool
}

func pulledMember(name string, mode clusterv1alpha1.SyncMode) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: mode},
	}
}

// newTunneled serves over TLS, as the kube-apiserver does: users are alice, agents are known by their certificate.
func newTunneled(t *testing.T) *tunneled {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &tunneled{fleet: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		pulledMember("m1", clusterv1alpha1.Pull), pulledMember("m2", clusterv1alpha1.Pull),
		pulledMember("m3", clusterv1alpha1.Push)).Build()}
	f.server = &Server{fleet: f.fleet, live: f.fleet, log: logr.Discard(), tunnels: tunnel.New(1)}
	t.Cleanup(f.server.tunnels.Close)
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := caller{user: "alice", groups: []string{"developers", authenticated}}
		if f.anonymous.Load() {
			who = caller{user: anonymous, groups: []string{unauthenticated}}
		}
		if chain := r.TLS.PeerCertificates; len(chain) > 0 {
			who = caller{user: chain[0].Subject.CommonName, groups: []string{registration.AgentGroup, authenticated}}
		}
		if name, isAttach := splitAttachPath(r.URL.Path); isAttach {
			f.server.attach(w, r, who, name)
			return
		}
		name, below, _ := splitProxyPath(r.URL)
		f.server.toMember(w, r, who, name, below)
	}))
	f.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// as connects to the fleet with a certificate for a user; without one it is alice.
func (f *tunneled) as(t *testing.T, user string) *http.Transport {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(f.Certificate())
	if user != "" {
		certificate, _, err := selfSigned(user, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	transport := &http.Transport{TLSClientConfig: config, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// serve the member m1 by its agent, and wait until the fleet has a tunnel.
func (f *tunneled) serve(t *testing.T, member http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&tunnel.Keeper{
			Fleet: f.as(t, registration.AgentUser(pulledMember("m1", ""))), Member: member, Pause: time.Millisecond,
			URL: f.URL + prefix + "/clusters/m1/" + tunnel.Subresource, Say: func(string, ...any) {},
		}).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) {
			found, _ := f.server.tunnels.To("m1", "uid-of-m1")
			return found != nil, nil
		})
	if err != nil {
		t.Fatalf("no tunnel: %v", err)
	}
}

// doorTo the API of a member, whose owner leaves the fleet's users their prefix.
func doorTo(t *testing.T, member *httptest.Server) *tunnel.Door {
	t.Helper()
	address, err := url.Parse(member.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(member.Certificate())
	return &tunnel.Door{
		Member: address, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Refused: func(string) {},
		Access: func(context.Context) (string, acting.Names, error) {
			return "impersonator's", acting.Names{Prefix: "trellis-fleet-1a2b3c4d:"}, nil
		},
	}
}

// ask a member of the fleet as alice.
func (f *tunneled) ask(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+prefix+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.as(t, "").RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// The API of a member with an agent is asked as that of another, by the same user: answers, watches, and exec.
func TestMembersThroughTunnels(t *testing.T) {
	next := make(chan struct{})
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Impersonate-User") != "trellis-fleet-1a2b3c4d:alice" ||
			strings.Join(r.Header.Values("Impersonate-Group"), ",") != "trellis-fleet-1a2b3c4d:developers" ||
			r.Header.Get("Authorization") != "Bearer impersonator's" || r.Header.Get(acting.HopsHeader) != "1":
			http.Error(w, fmt.Sprint(r.Header), http.StatusForbidden)
		case r.URL.Query().Get("watch") != "":
			for range 2 {
				fmt.Fprintln(w, "event")
				_ = http.NewResponseController(w).Flush()
				<-next
			}
		case r.Header.Get("Upgrade") != "":
			conn, both, _ := http.NewResponseController(w).Hijack()
			defer func() { _ = conn.Close() }()
			_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
				"Upgrade: SPDY/3.1\r\n\r\n")
			_ = both.Flush()
			line, _ := both.ReadString('\n')
			_, _ = both.WriteString("heard " + line)
			_ = both.Flush()
		default:
			fmt.Fprint(w, r.URL.RequestURI())
		}
	}))
	t.Cleanup(member.Close)
	f := newTunneled(t)
	f.serve(t, doorTo(t, member))
	if response, body := f.ask(t, "/clusters/m1/proxy/api/v1/nodes?limit=1"); response.StatusCode !=
		http.StatusOK || body != "/api/v1/nodes?limit=1" {
		t.Errorf("got %s, %s", response.Status, body)
	}
	f.watches(t, next)
	f.upgrades(t)
}

func (f *tunneled) watches(t *testing.T, next chan<- struct{}) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		f.URL+prefix+"/clusters/m1/proxy/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.as(t, "").RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	for range 2 {
		if line, err := lines.ReadString('\n'); line != "event\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		next <- struct{}{}
	}
}

func (f *tunneled) upgrades(t *testing.T) {
	connection, err := tls.Dial("tcp", f.Listener.Addr().String(), f.as(t, "").TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	fmt.Fprintf(connection, "POST %s/clusters/m1/proxy/api/v1/exec HTTP/1.1\r\nHost: fleet\r\nConnection: "+
		"Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", prefix)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", response, err)
	}
	// Clients of WebSockets look at the header.
	if response.Proto != "HTTP/1.1" || response.Close || response.Header.Get("Connection") != "Upgrade" {
		t.Errorf("got %s, closing %t, %v", response.Proto, response.Close, response.Header)
	}
	fmt.Fprintln(connection, "hello")
	if line, err := reader.ReadString('\n'); line != "heard hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// Who asks for a member without a tunnel is told which one, since when, and what to look at.
func TestMembersWithoutATunnel(t *testing.T) {
	f := newTunneled(t)
	// A process that ends expects no tunnels.
	f.server.tunnels.Close()
	response, body := f.ask(t, "/clusters/m2/proxy/api")
	for _, want := range []string{
		"member m2 has an agent", "no tunnel", "since 20", "kubectl get cluster m2", "deployment/agent",
		"trellisctl register m2", `"kind":"Status"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "1" {
		t.Errorf("got %s, %v", response.Status, response.Header)
	}
	if _, wait := apierrors.SuggestsClientDelay(noTunnel("m2", time.Now().Add(-time.Hour))); wait {
		t.Error("who asks waits for an agent that is away for long")
	}
}

// Who asks while the tunnel is opened anew waits for it.
func TestRequestsBeforeTheirTunnel(t *testing.T) {
	f := newTunneled(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if response, body := f.ask(t, "/clusters/m1/proxy/api"); response.StatusCode != http.StatusOK ||
			body != "here" {
			t.Errorf("got %s, %s", response.Status, body)
		}
	}()
	f.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	<-answered
}

// Agents of other members, and people who may use the subresource, open no tunnel to a member; neither does the agent
// of one that the fleet talks to itself, or of a member that had the name before.
func TestAttackTunnelsOfOthers(t *testing.T) {
	f := newTunneled(t)
	of := func(name string) string { return registration.AgentUser(pulledMember(name, "")) }
	earlier := pulledMember("m1", "")
	earlier.UID = "earlier"
	for user, member := range map[string]string{
		of("m2"): "m1", "": "m1", "admin": "m1", of("m3"): "m3", registration.AgentUser(earlier): "m1", of("m1"): "m2",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			f.URL+prefix+"/clusters/"+member+"/attach", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {tunnel.Protocol}}
		response, err := f.as(t, user).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s at %s: got %s", user, member, response.Status)
		}
	}
	for _, member := range []string{"m1", "m2", "m3"} {
		if found, _ := f.server.tunnels.To(member, types.UID("uid-of-"+member)); found != nil {
			t.Errorf("%s has a tunnel", member)
		}
	}
}

// Nobody without credentials for the fleet gets anything into a tunnel.
func TestAttackAnonymousThroughTunnels(t *testing.T) {
	f := newTunneled(t)
	var asked atomic.Bool
	f.serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	f.anonymous.Store(true)
	if response, body := f.ask(t, "/clusters/m1/proxy/api"); response.StatusCode != http.StatusForbidden {
		t.Errorf("got %s, %s", response.Status, body)
	}
	if asked.Load() {
		t.Error("the agent was asked")
	}
}

// A hostile agent answers with what could lead who asks elsewhere, make them another protocol's, or fill the process.
func TestAttackAnswersThroughTunnels(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		status int
	}{
		"a redirection": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere", http.StatusTemporaryRedirect)
		}, http.StatusServiceUnavailable},
		"a question for credentials": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		}, http.StatusServiceUnavailable},
		"a change of the protocol": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trellis-Tunnel-Upgrade", "websocket")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusOK)
		}, http.StatusOK},
		"one by the way": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Smuggled", "yes")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("X-Smuggled")
			w.WriteHeader(http.StatusOK)
		}, http.StatusOK},
		"a cookie": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "a=b")
		}, http.StatusOK},
		"a large header": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 40 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 64<<10))
			}
		}, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTunneled(t)
			f.serve(t, tc.answer)
			response, body := f.ask(t, "/clusters/m1/proxy/api")
			if response.StatusCode != tc.status {
				t.Errorf("got %s, %s", response.Status, body)
			}
			for _, key := range []string{
				"Location", "Set-Cookie", "Www-Authenticate", "Upgrade", "X-Smuggled", "Trellis-Tunnel-Upgrade",
			} {
				if response.Header.Get(key) != "" {
					t.Errorf("who asks got %s: %s", key, response.Header.Get(key))
				}
			}
		})
	}
}

// An agent that changes to another protocol than was asked for, or to one that nobody asked for, changes nothing.
func TestAttackUpgradesThroughTunnels(t *testing.T) {
	f := newTunneled(t)
	f.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trellis-Tunnel-Upgrade", "h2c")
		w.WriteHeader(http.StatusOK)
	}))
	connection, err := tls.Dial("tcp", f.Listener.Addr().String(), f.as(t, "").TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func(c net.Conn) { _ = c.Close() }(connection)
	fmt.Fprintf(connection, "GET %s/clusters/m1/proxy/api HTTP/1.1\r\nHost: fleet\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\n\r\n", prefix)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestSplitAttachPath(t *testing.T) {
	for path, want := range map[string]string{
		"/clusters/m1/attach": "m1", "/clusters/m1/proxy/attach": "", "/clusters//attach": "", "/clusters/m1": "",
		"/clusters/attach": "", "/clusters/m1/attach/x": "",
	} {
		if name, ok := splitAttachPath(prefix + path); ok != (want != "") || ok && name != want {
			t.Errorf("%s: got %q, %v", path, name, ok)
		}
	}
}
