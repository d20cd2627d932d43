package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/reply"
)

// fleet is an API of which agents ask replicas of the federation in turn.
type fleet struct {
	*httptest.Server
	replicas []*Tunnels
	asked    atomic.Int32
	stays    atomic.Bool
}

func newFleet(t *testing.T, replicas int) *fleet {
	t.Helper()
	f := &fleet{}
	f.stays.Store(true)
	for range replicas {
		one := New(replicas)
		one.look = 10 * time.Millisecond
		f.replicas = append(f.replicas, one)
		t.Cleanup(one.Close)
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := f.replicas[int(f.asked.Add(1))%replicas]
		if err := one.Attach(w, r, "m1", "uid", f.stays.Load); err != nil {
			reply.Refusal(w, err)
		}
	}))
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// trusting connects to a server by HTTP/1.1.
func trusting(server *httptest.Server) *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
}

// keep tunnels to a fleet until the test ends.
func keep(t *testing.T, f *fleet, member http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&Keeper{
			Fleet: trusting(f.Server), URL: f.URL, Member: member, Pause: time.Millisecond,
			Say: func(string, ...any) {},
		}).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// await a tunnel to member m1, other than one that was before.
func await(t *testing.T, tunnels *Tunnels, other *Tunnel) *Tunnel {
	t.Helper()
	var found *Tunnel
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) {
			found, _ = tunnels.To("m1", "uid")
			return found != nil && found != other, nil
		})
	if err != nil {
		t.Fatalf("no tunnel: %v", err)
	}
	return found
}

// doorTo is the way to a member for the fleet with the prefix f:.
func doorTo(t *testing.T, member *httptest.Server, path string) *Door {
	t.Helper()
	address, err := url.Parse(member.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return &Door{
		Member: address, Transport: trusting(member), Refused: func(string) {},
		Access: func(context.Context) (string, acting.Names, error) {
			return "impersonator's", acting.Names{Prefix: "f:"}, nil
		},
	}
}

func get(t *testing.T, through http.RoundTripper, path string, header http.Header) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header.Clone()
	response, err := through.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func alice() http.Header { return http.Header{acting.ImpersonateUser: {"alice"}} }

// There is a tunnel to each replica, which the agent finds although it cannot choose who answers.
func TestTunnelsToAllReplicas(t *testing.T) {
	f := newFleet(t, 3)
	keep(t, f, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	for _, replica := range f.replicas {
		if status, body := get(t, await(t, replica, nil), "/", alice()); status != http.StatusOK || body != "here" {
			t.Errorf("got %d, %s", status, body)
		}
	}
	// Nobody is asked on by an agent that has all of them.
	asked := f.asked.Load()
	synced := await(t, f.replicas[0], nil)
	for range 20 {
		_, _ = get(t, synced, "/", alice())
	}
	if f.asked.Load() != asked {
		t.Errorf("%d more tunnels were asked for", f.asked.Load()-asked)
	}
}

// A tunnel that is lost is opened again by the same agent, and until then it is known since when there is none.
func TestLostTunnelsComeBack(t *testing.T) {
	f := newFleet(t, 1)
	if found, since := f.replicas[0].To("m1", "uid"); found != nil || !since.Equal(f.replicas[0].began) {
		t.Errorf("got %v, %s", found, since)
	}
	keep(t, f, http.NotFoundHandler())
	first := await(t, f.replicas[0], nil)
	if found, _ := f.replicas[0].To("m1", "of another"); found != nil {
		t.Error("a member that came later has the tunnel of the one before")
	}
	_ = first.conn.Close()
	await(t, f.replicas[0], first)
}

// piped makes a tunnel whose other end hears, and says nothing.
func piped(t *testing.T) *Tunnel {
	t.Helper()
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	made, err := newTunnel(newClosing(near))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Who asks while a tunnel is opened anew waits for it, for a moment; nobody waits for an agent that is away.
func TestRequestsWaitForTheirTunnel(t *testing.T) {
	for name, tc := range map[string]struct {
		// age is since when the process has run, and happens is what does after two seconds.
		age     time.Duration
		happens func(*testing.T, *Tunnels, context.CancelFunc)
		found   bool
		after   time.Duration
	}{
		"it is opened": {0, func(t *testing.T, tunnels *Tunnels, _ context.CancelFunc) {
			tunnels.put("m1", "uid", piped(t))
		}, true, 2 * time.Second},
		"that of another member is opened": {0, func(t *testing.T, tunnels *Tunnels, _ context.CancelFunc) {
			tunnels.put("m2", "uid", piped(t))
			tunnels.put("m1", "uid of an earlier one", piped(t))
		}, false, reopens},
		"nothing":                      {Soon - time.Second, nil, false, reopens},
		"there has been none for long": {Soon + time.Second, nil, false, 0},
		"the process ends": {0, func(_ *testing.T, tunnels *Tunnels, _ context.CancelFunc) {
			tunnels.Close()
		}, false, 2 * time.Second},
		"who asks is gone": {0, func(_ *testing.T, _ *Tunnels, leave context.CancelFunc) {
			leave()
		}, false, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tunnels := New(1)
				defer tunnels.Close()
				time.Sleep(tc.age)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if tc.happens != nil {
					time.AfterFunc(2*time.Second, func() { tc.happens(t, tunnels, leave) })
				}
				asked := time.Now()
				found, _, err := tunnels.Await(ctx, "m1", "uid", "alice")
				if err != nil || (found != nil) != tc.found || time.Since(asked) != tc.after {
					t.Errorf("got %v, %v after %s", found, err, time.Since(asked))
				}
				if tunnels.waiting.inUse() != 0 {
					t.Error("who does not wait any more has a place")
				}
			})
		})
	}
}

// A tunnel whose connection has ended is none, also when nobody has taken notice yet.
func TestEndedTunnelsAreNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tunnels := New(1)
		defer tunnels.Close()
		first, second := piped(t), piped(t)
		tunnels.put("m1", "uid", first)
		_ = first.conn.Close()
		synctest.Wait()
		time.AfterFunc(time.Second, func() { tunnels.put("m1", "uid", second) })
		if found, _, err := tunnels.Await(t.Context(), "m1", "uid", "alice"); found != second || err != nil {
			t.Errorf("got %v, %v", found, err)
		}
	})
}

// One user who asks again and again for a member whose tunnel was lost neither fills the process nor keeps others from
// waiting.
func TestAttackManyWaitForATunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tunnels := New(1)
		defer tunnels.Close()
		var refused atomic.Int32
		for range 10 * maxStreams {
			go func() {
				if _, _, err := tunnels.Await(t.Context(), "m1", "uid", "mallory"); IsBusy(err) {
					refused.Add(1)
				}
			}()
		}
		synctest.Wait()
		if got := tunnels.waiting.inUse(); got != maxUserStreams || refused.Load() != 10*maxStreams-maxUserStreams {
			t.Errorf("%d wait, and %d are refused", got, refused.Load())
		}
		time.AfterFunc(time.Second, func() { tunnels.put("m1", "uid", piped(t)) })
		if found, _, err := tunnels.Await(t.Context(), "m1", "uid", "alice"); found == nil || err != nil {
			t.Errorf("alice got %v, %v", found, err)
		}
	})
}

// Another tunnel of a member takes the place of the one before, of which the agent knows nothing any more.
func TestNewTunnelsReplaceOldOnes(t *testing.T) {
	f := newFleet(t, 1)
	keep(t, f, http.NotFoundHandler())
	first := await(t, f.replicas[0], nil)
	keep(t, f, http.NotFoundHandler())
	await(t, f.replicas[0], first)
	<-first.conn.closed
}

// A member that has left has no tunnel.
func TestTunnelsEndWithTheirMember(t *testing.T) {
	f := newFleet(t, 1)
	keep(t, f, http.NotFoundHandler())
	first := await(t, f.replicas[0], nil)
	f.stays.Store(false)
	<-first.conn.closed
}

// Neither side waits for an end that is not there any more, and pings tell so within 20 seconds.
func TestDeadTunnelsAreNoticed(t *testing.T) {
	ends := map[string]func(net.Conn){
		"the federation's": func(conn net.Conn) {
			made, err := newTunnel(newClosing(conn))
			if err != nil {
				t.Fatal(err)
			}
			<-made.conn.closed
		},
		"the agent's": func(conn net.Conn) {
			// What a client says first, and nothing more.
			k := &Keeper{held: map[string]struct{}{}, Say: func(string, ...any) {}, Member: http.NotFoundHandler()}
			k.serve(context.Background(), conn, "r")
		},
	}
	for name, run := range ends {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			if name == "the agent's" {
				go func() {
					_, _ = io.WriteString(far, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
				}()
			}
			began := time.Now()
			run(near)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s end: %s", name, took)
			}
			_ = far.Close()
			synctest.Wait()
		})
	}
}

// exec changes the protocol, and both sides talk afterwards; what is refused is an answer like others.
func TestUpgradesInATunnel(t *testing.T) {
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/k8s/exec" || r.Header.Get("Upgrade") != "websocket" ||
			r.Header.Get("Authorization") != "Bearer impersonator's" || r.Header.Get("Impersonate-User") != "f:alice" {
			http.Error(w, fmt.Sprint(r.URL, r.Header), http.StatusTeapot)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
			"Upgrade: websocket\r\nSec-WebSocket-Accept: yes\r\nX-Other: no\r\n\r\n")
		_ = buffered.Flush()
		line, _ := buffered.ReadString('\n')
		_, _ = buffered.WriteString("heard " + line)
		_ = buffered.Flush()
	}))
	t.Cleanup(member.Close)
	f := newFleet(t, 1)
	keep(t, f, doorTo(t, member, "/k8s"))
	through := await(t, f.replicas[0], nil)
	request := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = alice()
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		response, err := through.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	response := request("/exec")
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "websocket" ||
		response.Header.Get("Sec-Websocket-Accept") != "yes" || response.Header.Get("X-Other") != "" {
		t.Fatalf("got %s, %v", response.Status, response.Header)
	}
	talking := response.Body.(io.ReadWriter)
	_, _ = io.WriteString(talking, "hello\n")
	if line, err := bufio.NewReader(talking).ReadString('\n'); line != "heard hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
	if response := request("/other"); response.StatusCode != http.StatusTeapot {
		t.Errorf("got %s", response.Status)
	}
	_ = response.Body.Close()
	awaitPlaces(t, through, 1)
}

// awaitPlaces waits until no more requests than that are under way.
func awaitPlaces(t *testing.T, through *Tunnel, want int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return through.places.inUse() <= want, nil })
	if err != nil {
		t.Fatalf("%d requests are under way, want %d: %v", through.places.inUse(), want, err)
	}
}

// Many requests at once are refused, and not kept in memory.
func TestRequestsInATunnelAreBounded(t *testing.T) {
	f := newFleet(t, 1)
	keep(t, f, http.NotFoundHandler())
	through := await(t, f.replicas[0], nil)
	var releases []func()
	for i := range maxStreams {
		release, err := through.places.take(fmt.Sprint("user", i))
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	if err := asked(t, through, "alice"); !errors.Is(err, errBusy) || !IsBusy(err) {
		t.Errorf("got %v", err)
	}
	releases[0]()
	releases[0]()
	if got := through.places.inUse(); got != maxStreams-1 {
		t.Errorf("%d places are taken after one was left", got)
	}
	for range 3 {
		if status, _ := get(t, through, "/", alice()); status != http.StatusNotFound {
			t.Errorf("got %d", status)
		}
	}
	for _, release := range releases {
		release()
	}
	if len(through.places.of) > 0 {
		t.Errorf("%v is kept of users who ask for nothing", through.places.of)
	}
}

// asked tells why a request of a user does not get into a tunnel.
func asked(t *testing.T, through *Tunnel, user string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(acting.ImpersonateUser, user)
	response, err := through.RoundTrip(r)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

// One user with more watches than anybody needs does not take the tunnel from the others.
func TestAttackOneUserFillsATunnel(t *testing.T) {
	f := newFleet(t, 1)
	keep(t, f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	through := await(t, f.replicas[0], nil)
	var watches []*http.Response
	t.Cleanup(func() {
		for _, watch := range watches {
			_ = watch.Body.Close()
		}
	})
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m1/watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(acting.ImpersonateUser, "mallory")
		watch, err := through.RoundTrip(r)
		if IsBusy(err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, watch)
	}
	if len(watches) != maxUserStreams {
		t.Errorf("mallory has %d requests under way", len(watches))
	}
	if status, _ := get(t, through, "/", alice()); status != http.StatusOK {
		t.Errorf("alice got %d", status)
	}
	_ = watches[0].Body.Close()
	awaitPlaces(t, through, maxUserStreams-1)
	if err := asked(t, through, "mallory"); err != nil {
		t.Errorf("a place of mallory's is free again: %v", err)
	}
}

// A federation that is in other hands asks for more than users may do: as nobody, as somebody else, elsewhere.
func TestAttackRequestsOfTheFederation(t *testing.T) {
	var got http.Header
	var path, host string
	member := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, path, host = r.Header.Clone(), r.URL.Path, r.Host
	}))
	t.Cleanup(member.Close)
	door := doorTo(t, member, "/k8s")
	ask := func(target string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Header = header
		w := httptest.NewRecorder()
		got = nil
		door.ServeHTTP(w, r)
		return w
	}
	for name, tc := range map[string]struct {
		target string
		header http.Header
	}{
		"as nobody":  {"/api", http.Header{"Authorization": {"Bearer admin's"}}},
		"as two":     {"/api", http.Header{acting.ImpersonateUser: {"alice", "admin"}}},
		"above":      {"/../metrics", alice()},
		"above, too": {"/a/%2e%2e/%2e%2e/metrics", alice()},
	} {
		if w := ask(tc.target, tc.header); w.Code != http.StatusBadRequest || got != nil {
			t.Errorf("%s: got %d, and the member %v", name, w.Code, got)
		}
	}
	ask("https://elsewhere/api", http.Header{
		acting.ImpersonateUser: {"system:admin"}, acting.ImpersonateGroup: {"system:masters", "system:authenticated"},
		acting.ImpersonateUID: {"1"}, "Impersonate-Extra-A": {"1"}, "Authorization": {"Bearer admin's"},
		"X-Remote-User": {"admin"}, "Cookie": {"a=b"}, "X-Forwarded-For": {"1.2.3.4"},
	})
	if path != "/k8s/api" || host == "elsewhere" || got.Get(acting.ImpersonateUser) != "f:system:admin" ||
		strings.Join(got.Values(acting.ImpersonateGroup), ",") != "f:system:masters" ||
		got.Get("Authorization") != "Bearer impersonator's" {
		t.Errorf("got %s, %s, %v", host, path, got)
	}
	for _, key := range []string{acting.ImpersonateUID, "Impersonate-Extra-A", "X-Remote-User", "Cookie",
		"X-Forwarded-For"} {
		if got.Get(key) != "" {
			t.Errorf("the member got %s: %s", key, got.Get(key))
		}
	}
	if w := ask("/api", http.Header{
		acting.ImpersonateUser: {"alice"}, upgradeHeader: {strings.Repeat("x", 1000)},
	}); w.Code != http.StatusBadRequest || got != nil {
		t.Errorf("got %d, and the member %v", w.Code, got)
	}
}

// Without an account that may impersonate, nothing reaches the member; of a token that it does not know, another is
// asked for.
func TestDoorsWithoutAccess(t *testing.T) {
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(member.Close)
	door := doorTo(t, member, "")
	refused := ""
	door.Refused = func(token string) { refused = token }
	for _, protocol := range []string{"", "websocket"} {
		r := httptest.NewRequest(http.MethodGet, "/api", nil)
		r.Header = alice()
		if protocol != "" {
			r.Header.Set(upgradeHeader, protocol)
		}
		w := httptest.NewRecorder()
		refused = ""
		door.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || refused != "impersonator's" {
			t.Errorf("%q: got %d, %q", protocol, w.Code, refused)
		}
	}
	door.Access = func(context.Context) (string, acting.Names, error) { return "", acting.Names{}, errors.New("none") }
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	r.Header = alice()
	w := httptest.NewRecorder()
	if door.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "none") {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
}

// What is no federation cannot have an agent serve it, and what one says why not is told.
func TestWhatAgentsAreRefusedWith(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"no right": {func(w http.ResponseWriter, _ *http.Request) {
			reply.Refusal(w, apierrors.NewUnauthorized("no right to attach"))
		}, "no right to attach"},
		"no fleet": {http.NotFound, "404"},
		"another protocol": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_ = conn.Close()
		}, "no federation"},
	} {
		server := httptest.NewTLSServer(tc.answer)
		t.Cleanup(server.Close)
		k := &Keeper{Fleet: trusting(server), URL: server.URL}
		if _, _, err := k.attach(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
