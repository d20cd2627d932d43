package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// authority is one that is made for a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// file is the bundle that verifies what it has signed.
	file string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{certificate: certificate, key: key, file: filepath.Join(t.TempDir(), "ca.crt")}
	write(t, a.file, string(a.pem()))
	return a
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue returns the files of a certificate for the loopback address and its key.
func (a *authority) issue(t *testing.T, usages ...x509.ExtKeyUsage) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: usages,
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
	return certFile, keyFile
}

// testLink is how peers reach a member: a TCP proxy that tests can cut.
type testLink struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newTestLink(t *testing.T, to string) *testLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &testLink{listener: listener, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); l.setCut(true) })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(from)
		}
	}()
	return l
}

func (l *testLink) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if !l.add(from, to) {
		return
	}
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() { _, _ = io.Copy(pair[0], pair[1]); ended <- struct{}{} }()
	}
	<-ended
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
	delete(l.conns, to)
}

func (l *testLink) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
	return !l.cut
}

func (l *testLink) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.conns {
		if cut {
			_ = c.Close()
		}
	}
}

// testCluster are three stewards, each in a process of its own.
type testCluster struct {
	clients, peers *authority
	options        []Options
	links          []*testLink
	processes      []*process
	client         *clientv3.Client
}

// newTestCluster starts nothing yet. What they back up, they do in a store.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{
		clients: newAuthority(t, "clients"), peers: newAuthority(t, "peers"), processes: make([]*process, memberCount),
	}
	var members []Member
	for i := range memberCount {
		listen := freeAddress(t)
		link := newTestLink(t, listen)
		c.links = append(c.links, link)
		peerURL := "https://" + link.listener.Addr().String()
		members = append(members, Member{Name: fmt.Sprintf("etcd-%d", i), PeerURL: peerURL})
		c.options = append(c.options, c.optionsOf(t, members[i].Name, listen))
	}
	for i := range c.options {
		c.options[i].Members = members
	}
	c.client = c.connect(t, c.options...)
	return c
}

func (c *testCluster) optionsOf(t *testing.T, name, listen string) Options {
	t.Helper()
	options := testOptions(t)
	options.Name, options.SnapshotPeriod, options.BackupDir = name, time.Hour, ""
	options.ListenPeerURL, options.ListenClientURL = "https://"+listen, "https://"+freeAddress(t)
	options.CertFile, options.KeyFile = c.clients.issue(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	options.TrustedCAFile = c.clients.file
	options.PeerCertFile, options.PeerKeyFile = c.peers.issue(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	options.PeerTrustedCAFile = c.peers.file
	return options
}

// store has all members back up to one.
func (c *testCluster) store(t *testing.T) {
	t.Helper()
	s := localStore(t)
	for i := range c.options {
		c.options[i].Store = s
	}
}

// clientTLS is that of kube-apiserver: a client's certificate.
func (c *testCluster) clientTLS(t *testing.T) *tls.Config {
	t.Helper()
	info := transport.TLSInfo{TrustedCAFile: c.clients.file}
	info.CertFile, info.KeyFile = c.clients.issue(t, x509.ExtKeyUsageClientAuth)
	config, err := info.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (c *testCluster) connect(t *testing.T, options ...Options) *clientv3.Client {
	t.Helper()
	var urls []string
	for _, o := range options {
		urls = append(urls, o.ListenClientURL)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: urls, TLS: c.clientTLS(t), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// launch starts members, all of them without ordinals.
func (c *testCluster) launch(t *testing.T, ordinals ...int) {
	t.Helper()
	if len(ordinals) == 0 {
		ordinals = []int{0, 1, 2}
	}
	for _, i := range ordinals {
		c.processes[i] = launch(t, c.options[i])
		c.processes[i].client = c.client
	}
}

// waitReady waits until members are voters that serve.
func (c *testCluster) waitReady(t *testing.T, ordinals ...int) {
	t.Helper()
	if len(ordinals) == 0 {
		ordinals = []int{0, 1, 2}
	}
	for _, i := range ordinals {
		c.processes[i].waitUntil(t, c.options[i].Name+" ready", c.processes[i].ready)
	}
}

// waitLearner waits until a member is a learner, and returns its ordinal.
func (c *testCluster) waitLearner(t *testing.T) int {
	t.Helper()
	learner := -1
	c.processes[1].waitUntil(t, "a learner", func() error {
		for _, i := range []int{1, 2} {
			if err := c.processes[i].ready(); err != nil && strings.Contains(err.Error(), "is a learner") {
				learner = i
				return nil
			}
		}
		return errors.New("there is none")
	})
	return learner
}

// waitData waits until a member tells the others that it has data.
func (c *testCluster) waitData(t *testing.T, ordinal int) {
	t.Helper()
	asks := peers{&c.options[0], time.Second}
	c.processes[ordinal].waitUntil(t, "telling that it has data", func() error {
		if a := asks.ask(t.Context(), c.options[0].Members[ordinal]); a.holds != holdsData {
			return fmt.Errorf("it holds %s: %w", a.holds, a.err)
		}
		return nil
	})
}

// voters are the members that the cluster has, all of which must have come to be.
func (c *testCluster) voters(t *testing.T) []*etcdserverpb.Member {
	t.Helper()
	response, err := c.client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Members) != memberCount {
		t.Errorf("the members are %v", response.Members)
	}
	for _, m := range response.Members {
		if m.IsLearner || m.Name == "" {
			t.Errorf("%v is no voter", m)
		}
	}
	return response.Members
}

// leader is the ordinal of the leader, once there is one.
func (c *testCluster) leader(t *testing.T) int {
	t.Helper()
	leader := -1
	c.processes[0].waitUntil(t, "a leader", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for i, o := range c.options {
			response, err := c.client.Status(ctx, o.ListenClientURL)
			if err == nil && response.Leader == response.Header.MemberId {
				leader = i
				return nil
			}
		}
		return errors.New("there is none")
	})
	return leader
}

// write writes keys, each as often as it takes: the leader may be gone.
func (c *testCluster) write(t *testing.T, from, count int) {
	t.Helper()
	end, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := 0; i < count; {
		ctx, cancel := context.WithTimeout(end, 3*time.Second)
		_, err := c.client.Put(ctx, fmt.Sprintf("key/%04d", from+i), strings.Repeat("x", 1000))
		cancel()
		switch {
		case err == nil:
			i++
		case end.Err() != nil:
			t.Fatal(err)
		}
	}
}

// check reads keys from each member by itself.
func (c *testCluster) check(t *testing.T, want int) {
	t.Helper()
	for i, o := range c.options {
		client := c.connect(t, o)
		response, err := client.Get(t.Context(), "key/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || response.Count != int64(want) {
			t.Errorf("member %d has %v keys, want %d, error %v", i, response, want, err)
		}
	}
}

func (c *testCluster) stop(t *testing.T) {
	t.Helper()
	// Together: the last one would wait for a quorum to hand over to.
	for _, p := range c.processes {
		_ = p.command.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range c.processes {
		p.stop(t)
	}
}

// waitForLog waits until a member has said something.
func (p *process) waitForLog(t *testing.T, says string) {
	t.Helper()
	p.waitUntil(t, "log: "+says, func() error {
		if !strings.Contains(p.output.String(), says) {
			return errors.New("it does not say so")
		}
		return nil
	})
}
