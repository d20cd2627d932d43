package vpn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/paths"
)

// pair is a shoot with two tunnels to one seed. Its web server answers with the name of the path.
type pair struct {
	paths map[string]*testShoot
	// socket is that of the sidecar of a kube-apiserver.
	socket string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	gateway, pki := newTestGateway(t), newTestPKI(t)
	shared := func(s *testShoot) { s.pki = pki }
	first, second := newTestShoot(t, gateway, "first", shared), newTestShoot(t, gateway, "second", shared)
	gateway.serve(first, second)
	p := &pair{
		paths:  map[string]*testShoot{"first": first, "second": second},
		socket: filepath.Join(t.TempDir(), "s"),
	}
	for _, path := range p.paths {
		path.eventuallyGet(t, podAddress)
		path.eventuallyAnswers(t)
	}
	t.Cleanup(running(t, func(ctx context.Context) error {
		return paths.Run(ctx, paths.Options{
			Socket: p.socket, Proxies: []string{first.proxyAddress, second.proxyAddress}, TLS: pki.files,
		}, logr.Discard())
	}))
	return p
}

// eventuallyAnswers asks the seed's end, as the sidecar does, until the shoot answers.
func (s *testShoot) eventuallyAnswers(t *testing.T) {
	t.Helper()
	path, err := paths.SeedServer(s.proxyAddress, s.pki.files, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := path.Probe(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// eventuallyTakes asks the web server until it is reached, and returns by which path.
func (p *pair) eventuallyTakes(t *testing.T) string {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		name, err := p.get()
		if err == nil {
			return name
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// get does what kube-apiserver does with the sidecar.
func (p *pair) get() (string, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
		if err != nil {
			return nil, err
		}
		conn, response, err := connectThrough(conn, address)
		if err == nil && response.StatusCode != http.StatusOK {
			err = &net.AddrError{Err: response.Status, Addr: address}
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("http://" + podAddress.String())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	name, err := io.ReadAll(response.Body)
	return string(name), err
}

func otherThan(path string) string {
	if path == "first" {
		return "second"
	}
	return "first"
}

// Whichever end of a path is lost, connections take the other path, and this one again when the other is lost.
func TestFailOverBetweenPaths(t *testing.T) {
	for name, test := range map[string]struct {
		fail, comeBack func(t *testing.T, path *testShoot)
	}{
		"of the seed server": {
			func(_ *testing.T, path *testShoot) { path.stopServer() },
			func(t *testing.T, path *testShoot) { path.startServer(t) },
		},
		"of the shoot client": {
			func(_ *testing.T, path *testShoot) { path.stopClient() },
			func(t *testing.T, path *testShoot) { path.startClient(t) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			failed := p.eventuallyTakes(t)
			other := otherThan(failed)

			test.fail(t, p.paths[failed])
			if got := p.eventuallyTakes(t); got != other {
				t.Errorf("without the %s path, the %s is taken", failed, got)
			}
			test.comeBack(t, p.paths[failed])
			p.paths[failed].eventuallyGet(t, podAddress)
			p.paths[failed].eventuallyAnswers(t)
			test.fail(t, p.paths[other])
			if got := p.eventuallyTakes(t); got != failed {
				t.Errorf("without the %s path, the %s is taken", other, got)
			}
		})
	}
}

// Only a shoot that answers counts, not what lies between.
func TestPing(t *testing.T) {
	gateway := newTestGateway(t)
	shoot := newTestShoot(t, gateway, "member1")
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)
	shoot.eventuallyAnswers(t)
	for name, address := range map[string]netip.Addr{
		"an address of nobody": netip.MustParseAddr("10.3.0.99"), "IPv6": netip.MustParseAddr("fd00::1"),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := shoot.tunnel.Ping(ctx, address); err == nil {
			t.Errorf("%s answers", name)
		}
		cancel()
	}
	shoot.stopClient()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := shoot.tunnel.Ping(ctx, vpn.ShootAddress); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without the shoot's end: %v", err)
	}
}

// A sidecar that was killed leaves its socket behind, and the next one takes its place.
func TestSocketOfASidecarThatWasKilled(t *testing.T) {
	socket, pki := filepath.Join(t.TempDir(), "s"), newTestPKI(t)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = listener.Close()
	if err := paths.Check(t.Context(), socket); err == nil {
		t.Error("a socket that nobody listens on is taken for a sidecar")
	}
	t.Cleanup(running(t, func(ctx context.Context) error {
		return paths.Run(ctx, paths.Options{
			Socket: socket, Proxies: []string{"127.0.0.1:1"}, TLS: pki.files,
		}, logr.Discard())
	}))
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := paths.Check(t.Context(), socket)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Who has the keys of one path's end, as root on its node, does not become the end of the other path, or of a tunnel
// of another shoot: while it tries, that end is reached as before.
func TestAttackEndOfAnotherPath(t *testing.T) {
	gateway := newTestGateway(t)
	first, second := newTestShoot(t, gateway, "first"), newTestShoot(t, gateway, "second")
	gateway.serve(first, second)
	second.eventuallyGet(t, podAddress)
	attacker := *second
	attacker.name, attacker.shootKey = "attacker", first.shootKey
	attacker.startClient(t)
	t.Cleanup(func() { attacker.stopClient() })
	deadline := time.Now().Add(20 * time.Second)
	for {
		stats, err := attacker.shootEnd.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if stats.SentBytes > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the attacker sends nothing")
		}
	}
	for range 20 {
		if got := second.eventuallyGet(t, podAddress); got != "second" {
			t.Fatalf("%s is the end of the second path", got)
		}
	}
	if stats, err := attacker.shootEnd.Stats(); err != nil || !stats.LastHandshake.IsZero() {
		t.Errorf("the attacker shook hands: %+v, %v", stats, err)
	}
}
