package proxy

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
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
)

// authority signs the certificates of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour),
		time.Now().Add(time.Hour)
	parent, signer := template, key
	if a != nil {
		parent, signer = a.certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

func newAuthority(t *testing.T) *authority {
	der, key := (*authority)(nil).sign(t,
		&x509.Certificate{
			Subject: pkix.Name{CommonName: "egress"}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign,
		})
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key}
}

// client is the certificate of a control plane's namespace.
func (a *authority) client(t *testing.T, namespace string) tls.Certificate {
	der, key := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: namespace}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// files of a server.
func (a *authority) files(t *testing.T) tlsfiles.Files {
	der, key := a.sign(t, &x509.Certificate{
		DNSNames: []string{"egress"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return tlsfiles.Files{
		Cert: write("tls.crt", "CERTIFICATE", der), Key: write("tls.key", "PRIVATE KEY", keyDER),
		CA: write("ca.crt", "CERTIFICATE", a.certificate.Raw),
	}
}

// fixture is a proxy in whose world every connection leads to a server that says which address was dialled.
type fixture struct {
	authority        *authority
	cluster, outside string
	names            map[string][]netip.Addr
}

func start(t *testing.T, rules egress.Rules) *fixture { return startDialing(t, rules, echo) }

func startDialing(t *testing.T, rules egress.Rules,
	dial func(ctx context.Context, network, address string) (net.Conn, error)) *fixture {
	f := &fixture{authority: newAuthority(t), names: map[string][]netip.Addr{}}
	server := New(Config{
		TLS: f.authority.files(t), Rules: rules, Log: logr.Discard(), Dial: dial,
		Resolve: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if addresses, found := f.names[host]; found {
				return addresses, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host}
		},
	})
	listen := func() net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
	cluster, outside := listen(), listen()
	f.cluster, f.outside = cluster.Addr().String(), outside.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, cluster, outside) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// echo pretends to dial: the other end says the address, and ends.
func echo(_ context.Context, _, address string) (net.Conn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.WriteString(conn, address)
			_ = conn.Close()
		}
	}()
	return net.Dial("tcp", listener.Addr().String())
}

// connect asks a port of the proxy for an address, and returns the status with what was dialled, or why not.
func (f *fixture) connect(t *testing.T, port string, certificates []tls.Certificate, address string) (int, string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(f.authority.certificate)
	conn, err := tls.Dial("tcp", port, &tls.Config{RootCAs: pool, ServerName: "egress", Certificates: certificates})
	if err != nil {
		return 0, err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return 0, err.Error()
	}
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	said, _ := io.ReadAll(reader)
	return response.StatusCode, string(said)
}

// A cluster without workers reaches what its extension serves, and nothing else, least of all what another's serves.
func TestAttackAddressesOfAClusterWithoutWorkers(t *testing.T) {
	f := start(t, egress.Rules{Allowed: []egress.Allowance{{Network: netip.MustParsePrefix("10.0.0.0/8")}}})
	fleet := []tls.Certificate{f.authority.client(t, "shoot--demo--fleet")}
	if status, said := f.connect(t, f.cluster, fleet, "240.0.0.2:8443"); status != 200 ||
		said != "served-apis.shoot--demo--fleet.svc:8443" {
		t.Errorf("what the extension serves: got %d %q", status, said)
	}
	for _, address := range []string{
		"10.1.0.5:8081", "127.0.0.1:8080", "169.254.169.254:80", "8.8.8.8:443", "240.0.0.2:443",
		"[::ffff:240.0.0.2]:8443", "240.0.0.1:8443",
		"served-apis.shoot--demo--other.svc:8443", "etcd-main-client:2379", "kubernetes.default.svc:443", "[::1]:8443",
	} {
		if status, said := f.connect(t, f.cluster, fleet, address); status != http.StatusForbidden ||
			!strings.Contains(said, "without workers") {
			t.Errorf("%s: got %d %q, want 403", address, status, said)
		}
	}
}

func TestAttackWithoutCertificate(t *testing.T) {
	f, stranger := start(t, egress.Rules{}), newAuthority(t)
	for name, certificates := range map[string][]tls.Certificate{
		"none": nil, "of another authority": {stranger.client(t, "shoot--demo--fleet")},
		"of no namespace": {f.authority.client(t, "a.b")}, "without a name": {f.authority.client(t, "")},
	} {
		// Each port is asked for what it would give to a control plane.
		for port, address := range map[string]string{f.cluster: "240.0.0.2:8443", f.outside: "1.1.1.1:443"} {
			if status, said := f.connect(t, port, certificates, address); status == 200 {
				t.Errorf("certificate %s, %s: got %d %q", name, address, status, said)
			}
		}
	}
}

// What is dialled is the address that was decided about, never the name.
func TestAttackNamesOfPrivateAddresses(t *testing.T) {
	f := start(t, egress.Rules{
		Denied:  []netip.Prefix{netip.MustParsePrefix("8.8.4.0/24")},
		Allowed: []egress.Allowance{{Network: netip.MustParsePrefix("172.18.0.2/32"), Port: 443}},
	})
	client := []tls.Certificate{f.authority.client(t, "shoot--demo--member1")}
	for name, address := range map[string]string{
		"hooks.example.com.": "93.184.216.34", "inside.example.com.": "10.1.0.5",
		"metadata.example.com.": "169.254.169.254", "mapped.example.com.": "::ffff:127.0.0.1",
		"gateway.example.com.": "172.18.0.2", "seed.example.com.": "8.8.4.4",
	} {
		f.names[name] = []netip.Addr{netip.MustParseAddr(address)}
	}
	f.names["both.example.com."] = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("1.1.1.1")}
	for _, test := range []struct {
		address string
		status  int
		said    string
	}{
		{"hooks.example.com:443", 200, "93.184.216.34:443"},
		{"both.example.com.:443", 200, "1.1.1.1:443"},
		{"gateway.example.com:443", 200, "172.18.0.2:443"},
		{"1.1.1.1:8080", 200, "1.1.1.1:8080"},
		{"gateway.example.com:6443", 403, "172.16.0.0/12"},
		{"inside.example.com:443", 403, "10.0.0.0/8"},
		{"metadata.example.com:80", 403, "169.254.169.254/32"},
		{"168.63.129.16:80", 403, "168.63.129.16/32"},
		{"mapped.example.com:80", 403, "127.0.0.0/8"},
		{"seed.example.com:443", 403, "8.8.4.0/24"},
		{"[::1]:443", 403, "::/3"},
		{"240.0.0.2:8443", 403, "240.0.0.0/4"},
		{"etcd-main-client:2379", 502, "no such host"},
		{"kubernetes.default.svc:443", 502, "no such host"},
		{"1.1.1.1:0", 400, "no port"},
		{"0x7f.1:80", 502, "no such host"},
	} {
		if status, said := f.connect(t, f.outside, client, test.address); status != test.status ||
			!strings.Contains(said, test.said) {
			t.Errorf("%s: got %d %q, want %d %q", test.address, status, said, test.status, test.said)
		}
	}
}

func TestConnectionsOfOneClientAreBounded(t *testing.T) {
	s, a := New(Config{Log: logr.Discard()}), client{namespace: "a"}
	for range maxConnectionsOfClient {
		if !s.count(a) {
			t.Fatal("refused too early")
		}
	}
	if s.count(a) || !s.count(client{namespace: "b"}) ||
		!s.count(client{namespace: "a", organization: egress.Extensions}) {
		t.Error("one client is bounded, and only that one")
	}
	s.discount(a)
	if !s.count(a) {
		t.Error("a connection that ended still counts")
	}
	if most := (client{namespace: "a", organization: "others"}).maxConnections(); most != maxConnectionsOfClient {
		t.Errorf("a client of another organization has %d connections", most)
	}
}

// What an idle connection takes in this process, that of the client included, is no more than is reckoned with.
func TestMemoryOfConnections(t *testing.T) {
	const count = 400
	var ends sync.Map
	f := startDialing(t, egress.Rules{Allowed: []egress.Allowance{{Network: netip.MustParsePrefix("10.0.0.0/8")}}},
		func(context.Context, string, string) (net.Conn, error) {
			near, far, err := pair()
			ends.Store(far, true)
			return near, err
		})
	t.Cleanup(func() { ends.Range(func(end, _ any) bool { _ = end.(net.Conn).Close(); return true }) })
	certificates := []tls.Certificate{f.authority.client(t, "shoot--a")}
	f.hold(t, certificates) // what is made once
	before := memoryInUse()
	for range count {
		f.hold(t, certificates)
	}
	if each := (memoryInUse() - before) / count; each > connectionMemory {
		t.Errorf("%d bytes for each; reckoned are %d", each, connectionMemory)
	}
}

// hold opens a connection through the proxy, and keeps it for the test.
func (f *fixture) hold(t *testing.T, certificates []tls.Certificate) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(f.authority.certificate)
	conn, err := tls.Dial("tcp", f.outside,
		&tls.Config{RootCAs: pool, ServerName: "egress", Certificates: certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprint(conn, "CONNECT 10.9.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", response, err)
	}
}

// pair returns both ends of a TCP connection.
func pair() (near, far net.Conn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	if near, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	far, err = listener.Accept()
	return near, far, err
}

// memoryInUse is what the heap and the stacks take after collections, of which the second empties pools.
func memoryInUse() int {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}
