package vpn_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/dns/dnsmessage"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/seedserver"
	"github.com/trellis-garden/trellis/pkg/vpn/shootclient"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
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
