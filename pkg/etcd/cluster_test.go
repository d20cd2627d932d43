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
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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

func TestThreeMembersAreOneCluster(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.voters(t)
	c.write(t, 0, 20)
	c.check(t, 20)
	c.stop(t)

	c.launch(t)
	c.waitReady(t)
	c.check(t, 20)
	for i, p := range c.processes {
		if log := p.log(); strings.Contains(log, "learner") || strings.Contains(log, "not stopped in order") {
			t.Errorf("member %d did not just go on:\n%s", i, log)
		}
	}
}

func TestASingleMemberGrows(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.options[0].BackupDir = t.TempDir()
	alone := c.grow(t, 50)
	c.waitReady(t)
	for _, m := range c.voters(t) {
		if m.PeerURLs[0] == advertisedPeerURL {
			t.Errorf("%v is where nobody reaches it", m)
		}
	}
	c.write(t, 50, 5)
	c.check(t, 55)
	// It goes on where it was: clients notice nothing.
	before, err := Inspect(alone)
	if err != nil {
		t.Fatal(err)
	}
	if after := c.processes[0].revision(t); after < before+5 || after > before+100 {
		t.Errorf("revision %d became %d by five writes and what of them was tried again", before, after)
	}
	// It could be any of them now.
	c.processes[0].kill(t)
	c.waitReady(t, 1, 2)
	c.write(t, 55, 5)
}

// Its etcd serves while nobody can join yet.
func TestAGrowingMemberWaitsForNobody(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	alone := newTestSteward(c.options[0], zap.NewNop())
	if err := alone.startEmpty(0); err != nil {
		t.Fatal(err)
	}
	c.launch(t, 0)
	c.waitReady(t, 0)
	c.write(t, 0, 5)
	c.launch(t, 1, 2)
	c.waitReady(t)
	c.check(t, 5)
}

// A single member whose data may be older than the backups must not hand it on to members that do not know of that.
func TestASingleMemberGrowsOnlyOnceItsDataIsConfirmed(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	bucket := c.options[0].Store.Bucket
	single := c.singleOptions(t)
	p := launch(t, single)
	p.waitUntil(t, "ready", p.ready)
	c.write(t, 0, 5)
	p.stop(t)
	rename(t, bucket, bucket+".hidden")

	c.launch(t)
	c.waitReady(t, 0)
	c.processes[1].waitForLog(t, "none of --members is")
	rename(t, bucket+".hidden", bucket)
	c.waitReady(t)
	c.check(t, 5)
}

// singleOptions are those of the first member before there were others.
func (c *testCluster) singleOptions(t *testing.T) Options {
	t.Helper()
	single := c.options[0]
	single.Members, single.PeerCertFile, single.PeerKeyFile, single.PeerTrustedCAFile = nil, "", "", ""
	single.ListenPeerURL = "http://" + freeAddress(t)
	return single
}

func TestALostOrDamagedMemberJoinsAgain(t *testing.T) {
	for name, test := range map[string]struct {
		ordinal int
		harm    func(t *testing.T, o *Options)
	}{
		"the volume of the first": {0, func(t *testing.T, o *Options) { o.DataDir = t.TempDir() }},
		"the directory of another": {
			2, func(t *testing.T, o *Options) { removeAll(t, filepath.Join(o.DataDir, memberDir)) },
		},
		"the log of the first": {0, func(t *testing.T, o *Options) { damageLog(t, o.DataDir) }},
		"the database of another": {
			1, func(t *testing.T, o *Options) { overwrite(t, dbPath(o.DataDir), 4096, 64<<10) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t)
			c.store(t)
			c.launch(t)
			c.waitReady(t)
			c.write(t, 0, 20)
			before := c.voters(t)
			c.processes[test.ordinal].kill(t)
			test.harm(t, &c.options[test.ordinal])
			c.write(t, 20, 5)

			c.launch(t, test.ordinal)
			c.waitReady(t)
			c.check(t, 25)
			if others := common(before, c.voters(t)); others != memberCount-1 {
				t.Errorf("%d of the members are as before", others)
			}
			log := c.processes[test.ordinal].log()
			if !strings.Contains(log, "joins them again") || strings.Contains(log, "RESTORED") ||
				strings.Contains(log, "REBUILT") {
				t.Errorf("it did not just join again:\n%s", log)
			}
		})
	}
}

// common counts the members that two lists have.
func common(a, b []*etcdserverpb.Member) int {
	known := map[uint64]bool{}
	for _, m := range a {
		known[m.ID] = true
	}
	count := 0
	for _, m := range b {
		if known[m.ID] {
			count++
		}
	}
	return count
}

// The way that the log advises leads back to what was backed up, and nothing else does.
func TestALostQuorumIsForPeople(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launch(t)
	c.waitReady(t)
	c.write(t, 0, 20)
	c.processes[0].waitForStore(t, c.processes[0].revision(t))
	for _, p := range c.processes {
		p.kill(t)
	}
	for i := range 2 {
		c.options[i].DataDir = t.TempDir()
	}
	c.launch(t)
	for i, p := range c.processes {
		p.waitForLog(t, quorumAdvice)
		if hasData(c.options[i].DataDir) != (i == 2) {
			t.Errorf("member %d has made data, or lost it", i)
		}
		if err := p.ready(); err == nil || !strings.Contains(err.Error(), "waiting for") {
			t.Errorf("member %d says %v", i, err)
		}
	}
	for i, p := range c.processes {
		p.kill(t)
		c.options[i].DataDir = t.TempDir()
	}
	c.launch(t)
	c.waitReady(t)
	c.voters(t)
	c.check(t, 20)
	if log := c.processes[0].log(); !strings.Contains(log, "RESTORED") {
		t.Errorf("it was not restored:\n%s", log)
	}
}

// The first member, without data, may be the one that has lost it.
func TestTheFirstMemberWaitsForAllOthers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t, 0, 1)
	c.processes[0].waitForLog(t, "which may have data, do not answer")
	for i := range 2 {
		if hasData(c.options[i].DataDir) {
			t.Errorf("member %d has made data", i)
		}
	}
	c.launch(t, 2)
	c.waitReady(t)
	c.voters(t)
}

// grow starts a single member, stops it after some writes, and has it grow. It returns a copy of what it was.
func (c *testCluster) grow(t *testing.T, writes int) (alone string) {
	t.Helper()
	single := c.singleOptions(t)
	p := launch(t, single)
	p.waitUntil(t, "ready", p.ready)
	c.write(t, 0, writes)
	p.stop(t)
	alone = t.TempDir()
	if err := os.CopyFS(alone, os.DirFS(single.DataDir)); err != nil {
		t.Fatal(err)
	}
	c.launch(t)
	return alone
}

// Data that was alone at its time starts no second cluster beside the one that came of it.
func TestDataOfBeforeTheOthersJoinedIsReplaced(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	alone := c.grow(t, 10)
	c.waitReady(t)
	c.write(t, 10, 10)
	for _, p := range c.processes {
		p.kill(t)
	}
	c.options[0].DataDir = alone
	c.launch(t, 1)
	c.waitData(t, 1)
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "of a time before they joined")
	c.launch(t, 2)
	c.waitReady(t)
	c.voters(t)
	c.check(t, 20)
}

func TestDataOfAnotherClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	c.processes[0].kill(t)
	c.options[0].DataDir = t.TempDir()
	if err := New(c.options[0], zap.NewNop()).startEmpty(0); err != nil {
		t.Fatal(err)
	}
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "move away what is not needed")
	c.write(t, 0, 10)
	c.processes[0].kill(t)
	if own, err := identify(c.options[0].DataDir); err != nil || !own.alone {
		t.Errorf("the data is now that of %+v, %v", own, err)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	for _, i := range []int{1, 2} {
		c.launch(t, i)
	}
	// The first runs here, and looks after the others only when it is told to.
	first := newTestSteward(c.options[0], zap.NewNop())
	if err := errors.Join(first.prepare(t.Context()), first.start(t.Context())); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = first.stop()
		}
	})
	isLearner := func(p *process) func() error {
		return func() error {
			if err := p.ready(); err == nil || !strings.Contains(err.Error(), "is a learner") {
				return fmt.Errorf("it says %w", err)
			}
			return nil
		}
	}
	joined := -1
	c.processes[1].waitUntil(t, "a learner", func() error {
		for _, i := range []int{1, 2} {
			if isLearner(c.processes[i])() == nil {
				joined = i
				return nil
			}
		}
		return errors.New("there is none")
	})
	// There is one at a time.
	c.processes[3-joined].waitForLog(t, "is still a learner")
	care := &memberCare{
		Steward: first, peers: peers{&first.options, first.memberPace.ask}, soonest: time.Now().Add(time.Hour),
	}
	c.processes[1].waitUntil(t, "three voters", func() error {
		return errors.Join(care.look(t.Context()), c.processes[1].ready(), c.processes[2].ready())
	})
	c.voters(t)

	// Two are a quorum, one is none, whatever it has.
	c.processes[1].kill(t)
	c.waitReady(t, 2)
	first.etcd.Server.HardStop()
	first.etcd.Close()
	ended = true
	c.processes[2].waitUntil(t, "not ready without a leader", func() error {
		if err := c.processes[2].ready(); err == nil || !strings.Contains(err.Error(), "no leader") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
}

func TestLeaderlessIsBorneForAWhile(t *testing.T) {
	var l leaderless
	now := time.Now()
	for _, step := range []struct {
		missing bool
		after   time.Duration
		want    bool
	}{
		{true, 0, false}, {true, 4 * time.Second, false}, {false, 5 * time.Second, false},
		{true, 6 * time.Second, false}, {true, 10 * time.Second, false}, {true, 11 * time.Second, true},
	} {
		if got := l.lasts(step.missing, 5*time.Second, now.Add(step.after)); got != step.want {
			t.Errorf("after %s: got %v", step.after, got)
		}
	}
	if !(&leaderless{}).lasts(true, 0, now) {
		t.Error("a single member bears it")
	}
}

// Whoever has no certificate of the peers' authority is told nothing, and cannot join.
func TestOnlyPeersArePeers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "which may have data, do not answer")
	check := func(t *testing.T, path string, refused bool) {
		t.Helper()
		for name, files := range map[string][2]string{
			"no certificate":        {},
			"a client's":            pair(c.clients.issue(t, x509.ExtKeyUsageClientAuth)),
			"the server's":          {c.options[1].CertFile, c.options[1].KeyFile},
			"one of some authority": pair(newAuthority(t, "peers").issue(t, x509.ExtKeyUsageClientAuth)),
		} {
			options := c.options[1]
			options.PeerCertFile, options.PeerKeyFile = files[0], files[1]
			p := peers{&options, time.Second}
			var into any
			err := p.get(t.Context(), c.options[0].Members[0].PeerURL+path, &into)
			if (err != nil) != refused {
				t.Errorf("%s with %s: %v", path, name, err)
			}
		}
		p := peers{&c.options[1], time.Second}
		var into any
		if err := p.get(t.Context(), c.options[0].Members[0].PeerURL+path, &into); err != nil {
			t.Errorf("%s as a peer: %v", path, err)
		}
	}
	check(t, answerPath, true)
	c.launch(t, 1, 2)
	c.waitReady(t)
	check(t, membersPath, true)

	// One that takes the place of a member, with what a client has.
	c.processes[1].kill(t)
	thief := c.options[1]
	thief.DataDir = t.TempDir()
	thief.PeerCertFile, thief.PeerKeyFile = c.clients.issue(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	p := launch(t, thief)
	p.waitForLog(t, "which may have data, do not answer")
	if hasData(thief.DataDir) {
		t.Error("it has got data")
	}
	c.voters(t)
}

func pair(a, b string) [2]string { return [2]string{a, b} }

// Backups go on with the next leader, and lead to what it has written.
func TestBackupsFollowTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launch(t)
	c.waitReady(t)
	written := 0
	for range 3 {
		c.write(t, written, 10)
		written += 10
		leader := c.leader(t)
		p := c.processes[leader]
		p.waitForStore(t, p.revision(t))
		p.kill(t)
		others := []int{(leader + 1) % 3, (leader + 2) % 3}
		c.waitReady(t, others...)
		c.write(t, written, 10)
		written += 10
		next := c.processes[others[0]]
		next.waitForStore(t, next.revision(t))
		c.launch(t, leader)
		c.waitReady(t)
	}
	for i, p := range c.processes {
		p.kill(t)
		c.options[i].DataDir = t.TempDir()
	}
	c.launch(t)
	c.waitReady(t)
	c.check(t, written)
}

// Only the leader writes to the store.
func TestFollowersWriteNoBackups(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.store(t)
	c.launch(t)
	c.waitReady(t)
	leader := c.leader(t)
	c.write(t, 0, 20)
	c.processes[leader].waitForStore(t, c.processes[leader].revision(t))
	for i, p := range c.processes {
		value, err := p.metric(`etcd_steward_store_bytes_total{kind="delta"}`)
		if err != nil || (value > 0) != (i == leader) {
			t.Errorf("member %d has put %f bytes while %d leads, error %v", i, value, leader, err)
		}
	}
}

func TestMembersDefragmentInTurns(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	for i := range c.options {
		c.options[i].QuotaBackendBytes = testQuota
	}
	c.launch(t)
	c.waitReady(t)
	// History fills the quota, as it is written faster than it is compacted.
	value := make([]byte, 1<<20)
	c.processes[0].waitUntil(t, "all defragmented", func() error {
		_, _ = rand.Read(value)
		_, err := c.client.Put(t.Context(), "key/same", string(value))
		if err != nil && !errors.Is(err, rpctypes.ErrNoSpace) {
			return err
		}
		for _, p := range c.processes {
			if !strings.Contains(p.output.String(), `"defragmented"`) {
				return fmt.Errorf("%s has not", p.options.Name)
			}
		}
		return nil
	})
	c.processes[0].waitUntil(t, "writes", func() error {
		_, err := c.client.Put(t.Context(), "key/later", "x")
		return err
	})
}

func TestTheLeaderIsTheLastInTurn(t *testing.T) {
	members := []*etcdserverpb.Member{{ID: 3, Name: "a"}, {ID: 1, Name: "c"}, {ID: 2, Name: "b"}}
	for leader, want := range map[uint64]string{3: "b c a", 1: "a b c", 2: "a c b"} {
		var got []string
		for _, m := range inTurn(members, leader) {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with leader %d: %v, want %s", leader, got, want)
		}
	}
}

// One that was the leader, or says it was, has no turns to give.
func TestTurnsAreTakenFromTheLeaderOnly(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t)
	c.waitReady(t)
	leader := c.leader(t)
	follower := (leader + 1) % memberCount
	status, err := c.client.Status(t.Context(), c.options[follower].ListenClientURL)
	if err != nil {
		t.Fatal(err)
	}
	right := turn{Leader: status.Leader, Term: status.RaftTerm}
	for name, test := range map[string]struct {
		to      int
		turn    turn
		refused bool
	}{
		"the leader":           {follower, right, false},
		"an earlier term":      {follower, turn{right.Leader, right.Term - 1}, true},
		"another member":       {follower, turn{status.Header.MemberId, right.Term}, true},
		"a leader is told":     {leader, right, true},
		"nobody in particular": {follower, turn{}, true},
	} {
		if err := giveTestTurn(t, c, test.to, test.turn); (err != nil) != test.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func giveTestTurn(t *testing.T, c *testCluster, to int, given turn) error {
	t.Helper()
	p := peers{&c.options[0], 5 * time.Second}
	via, err := p.via(p.clientTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer via.CloseIdleConnections()
	body := fmt.Sprintf(`{"leader":%d,"term":%d}`, given.Leader, given.Term)
	return do(t.Context(), via, "POST", c.options[to].ListenClientURL+defragmentPath, strings.NewReader(body), &turn{})
}
