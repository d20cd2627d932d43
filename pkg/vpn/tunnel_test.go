package vpn_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/dns/dnsmessage"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/tlsfiles"
	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/relay"
	"github.com/trellis-garden/trellis/pkg/vpn/seedserver"
	"github.com/trellis-garden/trellis/pkg/vpn/shootclient"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/device"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/netstack"
)

// The shoots of these tests all use the same networks.
var (
	podAddress     = netip.MustParseAddr("10.3.0.5")
	serviceAddress = netip.MustParseAddr("10.4.0.1")
	shootNetworks  = []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("10.4.0.0/16")}
)

// fastTiming finds a broken tunnel at once: the tests run on one machine.
var fastTiming = shootclient.Timing{
	Probe: 50 * time.Millisecond, ProbeDown: 50 * time.Millisecond,
	MinReset: 500 * time.Millisecond, MaxReset: 2 * time.Second, Failures: 2,
}

func TestShootsWithTheSameNetworksBehindOneGateway(t *testing.T) {
	gateway := newTestGateway(t)
	member1, member2 := newTestShoot(t, gateway, "member1"), newTestShoot(t, gateway, "member2")
	gateway.serve(member1, member2)

	for _, shoot := range []*testShoot{member1, member2} {
		for _, address := range []netip.Addr{podAddress, serviceAddress} {
			if got := shoot.eventuallyGet(t, address); got != shoot.name {
				t.Errorf("GET http://%s through the tunnel of %s was answered by %q", address, shoot.name, got)
			}
		}
	}
}

func TestTrafficResumesAfterRestart(t *testing.T) {
	cases := map[string]func(t *testing.T, gateway *testGateway, shoot *testShoot){
		"of the seed server":  func(t *testing.T, _ *testGateway, shoot *testShoot) { shoot.restartServer(t) },
		"of the shoot client": func(t *testing.T, _ *testGateway, shoot *testShoot) { shoot.restartClient(t) },
		"of the gateway":      func(t *testing.T, gateway *testGateway, _ *testShoot) { gateway.restart(t) },
		"of all of them": func(t *testing.T, gateway *testGateway, shoot *testShoot) {
			gateway.restart(t)
			shoot.restartServer(t)
			shoot.restartClient(t)
		},
	}
	for name, restart := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway := newTestGateway(t)
			shoot := newTestShoot(t, gateway, "member1")
			gateway.serve(shoot)
			shoot.eventuallyGet(t, podAddress)

			restart(t, gateway, shoot)

			if got := shoot.eventuallyGet(t, podAddress); got != "member1" {
				t.Errorf("after the restart the answer came from %q", got)
			}
		})
	}
}

// Given a shoot behind an address translator, when the translator forgets its state, then the tunnel goes on under the
// new address without a new handshake.
func TestTunnelFollowsAnAddressTranslator(t *testing.T) {
	gateway := newTestGateway(t)
	translator := newTestTranslator(t, gateway.address)
	shoot := newTestShoot(t, gateway, "member1", func(s *testShoot) {
		s.endpoint = translator.address
		s.timing.Failures = 1 << 30 // never starts a handshake by itself
	})
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)
	before := shoot.lastHandshake(t)

	translator.forget(t)

	if got := shoot.eventuallyGet(t, podAddress); got != "member1" {
		t.Errorf("got %q", got)
	}
	if after := shoot.lastHandshake(t); after != before {
		t.Error("there was a new handshake")
	}
}

func TestConnectSaysWhichEndFailed(t *testing.T) {
	gateway := newTestGateway(t)
	shoot := newTestShoot(t, gateway, "member1")

	status, text := shoot.connectStatus(t, "10.3.0.5:80")
	if status != http.StatusGatewayTimeout || !strings.HasPrefix(text, "tunnel: ") {
		t.Errorf("without a handshake: got %d %q, want 504 about the tunnel", status, text)
	}
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)

	cases := []struct {
		address string
		status  int
		prefix  string
	}{
		{"10.3.0.5:81", http.StatusBadGateway, "shoot: connecting to 10.3.0.5:81: "},
		{
			"172.16.0.1:80", http.StatusForbidden,
			"172.16.0.1 is in none of the shoot's networks (10.3.0.0/16, 10.4.0.0/16",
		},
		{"webhook.demo.svc:443", http.StatusBadGateway, `seed: "webhook.demo.svc" is a name`},
		{"10.3.0.5:0", http.StatusBadRequest, `address "10.3.0.5:0" has no port`},
	}
	for _, c := range cases {
		if status, text := shoot.connectStatus(t, c.address); status != c.status || !strings.HasPrefix(text, c.prefix) {
			t.Errorf("CONNECT %s: got %d %q, want %d %q", c.address, status, text, c.status, c.prefix)
		}
	}
}

func TestNamesAreResolvedByTheShootsDNS(t *testing.T) {
	gateway := newTestGateway(t)
	shoot := newTestShoot(t, gateway, "member1", func(s *testShoot) { s.dns = serviceAddress })
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)

	if status, text := shoot.connectStatus(t, "other.demo.svc:80"); status != http.StatusBadGateway ||
		!strings.Contains(text, "no such host") {
		t.Errorf("an unknown name: got %d %q", status, text)
	}
	client := http.Client{Transport: shoot.transport(), Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://webhook.demo.svc/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); string(body) != "member1" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
}

// testGateway is the UDP half of a gateway.
type testGateway struct {
	address string
	stop    func()
	relay   *relay.Relay
	shoots  []*testShoot
}

func newTestGateway(t testing.TB) *testGateway {
	t.Helper()
	g := &testGateway{address: "127.0.0.1:0"}
	g.start(t)
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *testGateway) start(t testing.TB) {
	t.Helper()
	r, err := relay.Listen(context.Background(), logr.Discard(), g.address, demux.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	g.relay, g.address = r, r.Addr().String()
	g.stop = running(t, r.Run)
	g.serve(g.shoots...)
}

func (g *testGateway) serve(shoots ...*testShoot) {
	g.shoots = shoots
	var servers []transport.Server
	for _, shoot := range shoots {
		servers = append(servers, transport.Server{
			Name:      shoot.name,
			PublicKey: shoot.seedKey.PublicKey(),
			Backend:   netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(shoot.port)),
		})
	}
	g.relay.SetServers(servers)
}

func (g *testGateway) restart(t testing.TB) {
	g.stop()
	g.start(t)
}

// testTranslator forwards UDP packets of one client to a target from an own port, which it can change.
type testTranslator struct {
	address string
	target  net.Addr
	inside  net.PacketConn
	outside atomic.Pointer[net.UDPConn]
	client  atomic.Pointer[net.Addr]
}

func newTestTranslator(t testing.TB, target string) *testTranslator {
	t.Helper()
	inside, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &testTranslator{
		address: inside.LocalAddr().String(), target: net.UDPAddrFromAddrPort(netip.MustParseAddrPort(target)),
		inside: inside,
	}
	tr.forget(t)
	t.Cleanup(func() { _, _ = inside.Close(), tr.outside.Load().Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := inside.ReadFrom(buf)
			if err != nil {
				return
			}
			tr.client.Store(&from)
			_, _ = tr.outside.Load().WriteTo(buf[:n], tr.target)
		}
	}()
	return tr
}

// forget replaces the port that the target sees; packets to the old one are lost.
func (tr *testTranslator) forget(t testing.TB) {
	t.Helper()
	outside, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if old := tr.outside.Swap(outside); old != nil {
		_ = old.Close()
	}
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, _, err := outside.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = tr.inside.WriteTo(buf[:n], *tr.client.Load())
		}
	}()
}

// testShoot is a shoot with both ends of its tunnel. Its end runs on a network stack that owns a pod and a service
// address, where an HTTP server answers with the shoot's name.
type testShoot struct {
	name string
	// dns is the shoot's DNS server, which knows webhook.demo.svc.cluster.local; invalid for none.
	dns netip.Addr
	// endpoint is where its end finds the gateway, timing how it watches the tunnel.
	endpoint          string
	timing            shootclient.Timing
	tunnel            transport.SeedEnd
	shootEnd          transport.ShootEnd
	seedKey, shootKey wgtypes.Key
	port              int
	gateway           *testGateway
	pki               *testPKI
	proxyAddress      string
	stopServer        func()
	stopClient        func()
}

func newTestShoot(t testing.TB, gateway *testGateway, name string, options ...func(*testShoot)) *testShoot {
	t.Helper()
	s := &testShoot{
		name: name, gateway: gateway, endpoint: gateway.address, timing: fastTiming, pki: newTestPKI(t),
		seedKey: newKey(t), shootKey: newKey(t), port: freeUDPPort(t), proxyAddress: freeTCPAddress(t),
	}
	for _, option := range options {
		option(s)
	}
	s.startServer(t)
	s.startClient(t)
	t.Cleanup(func() { s.stopServer() })
	t.Cleanup(func() { s.stopClient() })
	return s
}

func (s *testShoot) startServer(t testing.TB) {
	t.Helper()
	allowed := append(shootNetworks, netip.PrefixFrom(vpn.ShootAddress, 32))
	tunnel, err := wireguard.OpenSeed(wireguard.SeedConfig{
		PrivateKey: s.seedKey, PeerPublicKey: s.shootKey.PublicKey(), ListenPort: s.port,
		Addresses: []netip.Addr{vpn.SeedAddress}, AllowedIPs: allowed, MTU: vpn.DefaultMTU, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := seedserver.New(seedserver.Config{
		EchoAddress: vpn.SeedAddress, ShootAddress: vpn.ShootAddress, AllowedIPs: allowed,
		ProxyAddress: s.proxyAddress, TLS: s.pki.files,
		HealthAddress: "127.0.0.1:0",
		ClusterDNS:    s.dns, ClusterDomain: "cluster.local", Log: logr.Discard(),
	}, tunnel)
	s.tunnel = tunnel
	stop := running(t, server.Run)
	s.stopServer = func() { stop(); _ = tunnel.Close() }
	s.awaitProxy(t)
}

func (s *testShoot) awaitProxy(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := net.Dial("tcp", s.proxyAddress)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func (s *testShoot) startClient(t testing.TB) {
	t.Helper()
	stack, tunDevice, err := netstack.New([]netip.Addr{vpn.ShootAddress, podAddress, serviceAddress}, vpn.DefaultMTU)
	if err != nil {
		t.Fatal(err)
	}
	end := testShootEnd{peer: func(gateway netip.AddrPort) device.Peer {
		return device.Peer{
			PublicKey: s.seedKey.PublicKey(), Endpoint: gateway, Keepalive: vpn.Keepalive,
			AllowedIPs: []netip.Prefix{netip.PrefixFrom(vpn.SeedAddress, 32)},
		}
	}}
	end.Device, err = device.NewUserspace(logr.Discard(), tunDevice, device.Config{
		PrivateKey: s.shootKey, Peer: end.peer(netip.MustParseAddrPort(s.endpoint)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.shootEnd = end
	keeper := &shootclient.Keeper{
		Endpoint: s.endpoint, Tunnel: end, Timing: s.timing, Log: logr.Discard(),
		Probe: func(ctx context.Context, number uint64) bool { return probe(ctx, stack, number) },
	}
	stopServing := s.serveHTTP(t, stack)
	if s.dns.IsValid() {
		serveDNS(t, stack, s.dns)
	}
	stopKeeping := running(t, keeper.Run)
	s.stopClient = func() { stopKeeping(); stopServing(); _ = end.Close() }
}

// testShootEnd is the shoot's end on a network stack instead of a network interface.
type testShootEnd struct {
	device.Device
	peer func(gateway netip.AddrPort) device.Peer
}

func (e testShootEnd) Reset(gateway netip.AddrPort) error { return e.Device.Reset(e.peer(gateway)) }

func (s *testShoot) serveHTTP(t testing.TB, stack *netstack.Stack) (stop func()) {
	t.Helper()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/upload":
			_, _ = io.Copy(io.Discard, r.Body)
		case "/download":
			_, _ = w.Write(make([]byte, transferSize))
			return
		}
		fmt.Fprint(w, s.name)
	})}
	for _, address := range []netip.Addr{podAddress, serviceAddress} {
		listener, err := stack.ListenTCP(netip.AddrPortFrom(address, 80))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
	}
	return func() { _ = server.Close() }
}

// serveDNS answers until the stack ends.
func serveDNS(t testing.TB, stack *netstack.Stack, address netip.Addr) {
	t.Helper()
	conn, err := stack.ListenUDP(netip.AddrPortFrom(address, 53))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var query dnsmessage.Message
			if query.Unpack(buf[:n]) != nil || len(query.Questions) != 1 {
				continue
			}
			answer, err := answerTo(query).Pack()
			if err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close() })
}

func answerTo(query dnsmessage.Message) *dnsmessage.Message {
	question := query.Questions[0]
	answer := &dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: query.ID, Response: true, Authoritative: true, RCode: dnsmessage.RCodeNameError,
		},
		Questions: query.Questions,
	}
	if question.Name.String() != "webhook.demo.svc.cluster.local." {
		return answer
	}
	answer.RCode = dnsmessage.RCodeSuccess
	if question.Type == dnsmessage.TypeA {
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 5},
			Body:   &dnsmessage.AResource{A: podAddress.As4()},
		}}
	}
	return answer
}

// probe does what the shoot client does, on a network stack.
func probe(ctx context.Context, stack *netstack.Stack, number uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	conn, err := stack.DialUDP(netip.AddrPortFrom(vpn.SeedAddress, vpn.EchoPort))
	if err != nil {
		return false
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	want := fmt.Sprint(number)
	if _, err := io.WriteString(conn, want); err != nil {
		return false
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	return err == nil && string(answer[:n]) == want
}

func (s *testShoot) lastHandshake(t testing.TB) time.Time {
	t.Helper()
	stats, err := s.tunnel.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return stats.LastHandshake
}

func (s *testShoot) restartServer(t testing.TB) {
	s.stopServer()
	s.startServer(t)
}

func (s *testShoot) restartClient(t testing.TB) {
	s.stopClient()
	s.startClient(t)
}

// eventuallyGet asks the HTTP server at an address of the shoot through the CONNECT proxy, until it answers.
func (s *testShoot) eventuallyGet(t testing.TB, address netip.Addr) string {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		body, err := s.get(address)
		if err == nil {
			return body
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer from %s in shoot %s: %v", address, s.name, err)
		}
	}
}

func (s *testShoot) get(address netip.Addr) (string, error) {
	client := http.Client{Transport: s.transport(), Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + address.String())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func (s *testShoot) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		conn, response, err := s.connect(ctx, address)
		if err == nil && response.StatusCode != http.StatusOK {
			_ = conn.Close()
			err = fmt.Errorf("CONNECT %s: %s", address, response.Status)
		}
		return conn, err
	}}
}

// connect does what kube-apiserver's egress selector does.
func (s *testShoot) connect(ctx context.Context, address string) (net.Conn, *http.Response, error) {
	conn, err := (&tls.Dialer{Config: s.pki.client}).DialContext(ctx, "tcp", s.proxyAddress)
	if err != nil {
		return nil, nil, err
	}
	return connectThrough(conn, address)
}

// connectThrough asks the proxy at the other end of a connection for an address.
func connectThrough(conn net.Conn, address string) (net.Conn, *http.Response, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address}
	if err := request.Write(conn); err != nil {
		return nil, nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	return conn, response, err
}

func (s *testShoot) connectStatus(t testing.TB, address string) (int, string) {
	t.Helper()
	conn, response, err := s.connect(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// running runs f until stop is called, which waits for its end.
func running(t testing.TB, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("ended early: %v", err)
		}
	}()
	return func() { cancel(); <-done }
}

func newKey(t testing.TB) wgtypes.Key {
	t.Helper()
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func freeUDPPort(t testing.TB) int {
	t.Helper()
	conn, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}

func freeTCPAddress(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(nil)
	defer server.Close()
	return server.Listener.Addr().String()
}

// testPKI has a server certificate for 127.0.0.1 and a client certificate of one CA.
type testPKI struct {
	files  tlsfiles.Files
	client *tls.Config
}

func newTestPKI(t testing.TB) *testPKI {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	files := tlsfiles.Files{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt"),
	}
	for path, content := range map[string][]byte{files.Cert: certPEM, files.Key: keyPEM, files.CA: certPEM} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return &testPKI{files: files, client: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}
}
