package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// secured is a steward whose certificates a test replaces.
type secured struct {
	*process
	// server has signed the certificate of the server.
	server *authority
}

// startSecured starts a steward with a certificate of an authority, which trusts clients of the same one.
func startSecured(t *testing.T, ca *authority) *secured {
	t.Helper()
	dir := t.TempDir()
	options := testOptions(t)
	options.SnapshotPeriod = time.Hour
	options.ListenClientURL = "https://" + freeAddress(t)
	options.TrustedCAFile = filepath.Join(dir, "ca.crt")
	options.CertFile, options.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	s := &secured{process: &process{options: options}}
	s.trust(t, ca)
	s.present(t, ca)
	s.process = launch(t, options)
	s.waitUntil(t, "ready", s.ready)
	return s
}

// trust writes the bundle of authorities.
func (s *secured) trust(t *testing.T, authorities ...*authority) {
	t.Helper()
	var bundle []byte
	for _, ca := range authorities {
		bundle = append(bundle, ca.pem()...)
	}
	swap(t, s.options.TrustedCAFile, string(bundle))
}

// present writes another certificate of the server.
func (s *secured) present(t *testing.T, ca *authority) {
	t.Helper()
	certificate, key := ca.issue(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	swap(t, s.options.CertFile, content(t, certificate))
	swap(t, s.options.KeyFile, content(t, key))
	s.server = ca
}

// swap replaces a file at once, as the kubelet does.
func swap(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(read)
}

// tls is that of a client with a certificate of an authority.
func (s *secured) tls(t *testing.T, ca *authority) *tls.Config {
	t.Helper()
	info := transport.TLSInfo{TrustedCAFile: s.server.file}
	info.CertFile, info.KeyFile = ca.issue(t, x509.ExtKeyUsageClientAuth)
	config, err := info.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (s *secured) connectAs(t *testing.T, ca *authority) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.options.ListenClientURL}, TLS: s.tls(t, ca), Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// dial connects as a client with a certificate of an authority, and tells why it is refused. A server that takes a
// client says something first.
func (s *secured) dial(t *testing.T, ca *authority) (*tls.Conn, error) {
	t.Helper()
	address, err := url.Parse(s.options.ListenClientURL)
	if err != nil {
		t.Fatal(err)
	}
	config := s.tls(t, ca)
	config.NextProtos = []string{"h2"}
	connection, err := tls.Dial("tcp", address.Host, config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, err = connection.Read(make([]byte, 1))
	return connection, err
}

// awaitRefused waits until a client is refused.
func (s *secured) awaitRefused(t *testing.T, ca *authority) {
	t.Helper()
	s.waitUntil(t, "a client that is refused", func() error {
		if _, err := s.dial(t, ca); err == nil {
			return errors.New("it is taken")
		}
		return nil
	})
}

// awaitTaken waits until a client is taken.
func (s *secured) awaitTaken(t *testing.T, ca *authority) {
	t.Helper()
	s.waitUntil(t, "a client that is taken", func() error { _, err := s.dial(t, ca); return err })
}

// awaitServed waits until the files are in use, or refused.
func (s *secured) awaitServed(t *testing.T, isRefused bool) {
	t.Helper()
	files := &certificates{options: &s.options}
	s.waitUntil(t, "a look at the files", func() error {
		told, err := status.Ask(t.Context(), s.options.HealthAddress)
		if err != nil {
			return err
		}
		now, err := files.read()
		want := status.CertificatesChecksum(now.authorities, now.certificate)
		if served := told.Certificates; err != nil || served == nil || (served.Refused != "") != isRefused ||
			!isRefused && served.Checksum != want {
			return fmt.Errorf("it tells %+v, %w", served, err)
		}
		return nil
	})
}

// prober asks again and again; it counts what was answered and what failed.
func (s *secured) prober(t *testing.T, client *clientv3.Client) (stop func() (answered, failed int64)) {
	t.Helper()
	var answered, failed atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			request, done := context.WithTimeout(ctx, 30*time.Second)
			_, err := client.Get(request, "treasure")
			done()
			switch {
			case err == nil:
				answered.Add(1)
			case ctx.Err() == nil:
				failed.Add(1)
			}
			pause(ctx, 10*time.Millisecond)
		}
	}()
	return func() (int64, int64) { cancel(); <-ended; return answered.Load(), failed.Load() }
}

// In a rotation, both authorities are trusted first; then the server presents a certificate of the new one, and the old
// one is forgotten. A client with a new certificate has its connection all the while.
func TestClientsAreServedThroughoutARotation(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t, "etcd"), newAuthority(t, "etcd")
	s := startSecured(t, before)
	client := s.connectAs(t, before)
	if _, err := client.Put(t.Context(), "treasure", "gold"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dial(t, after); err == nil {
		t.Fatal("a client of an authority that is not trusted was taken")
	}
	old, err := s.dial(t, before)
	if err != nil {
		t.Fatal(err)
	}
	stop := s.prober(t, client)
	s.trust(t, before, after)
	s.awaitTaken(t, after)
	s.awaitTaken(t, before)
	if answered, failed := stop(); answered == 0 || failed > 0 {
		t.Errorf("%d requests were answered, %d failed, while another authority came to be trusted", answered, failed)
	}

	renewed := s.connectAs(t, after)
	stop = s.prober(t, renewed)
	s.present(t, after)
	s.trust(t, after)
	s.awaitServed(t, false)
	s.awaitRefused(t, before)
	s.awaitTaken(t, after)
	if answered, failed := stop(); answered == 0 || failed > 0 {
		t.Errorf("%d requests were answered, %d failed, while the old authority was forgotten", answered, failed)
	}
	_ = old.SetReadDeadline(time.Now().Add(time.Minute))
	for err == nil {
		_, err = old.Read(make([]byte, 1024))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("who was trusted before is still connected")
	}
	kept, err := s.connectAs(t, after).Get(t.Context(), "treasure")
	if err != nil || len(kept.Kvs) != 1 || string(kept.Kvs[0].Value) != "gold" {
		t.Errorf("got %v, %v", kept, err)
	}
	s.process.client = renewed
	s.stop(t)
}

// Who writes nonsense over what etcd mounts neither ends it nor changes whom it trusts.
func TestAttackCertificatesThatAreNone(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "etcd"), newAuthority(t, "etcd")
	s := startSecured(t, ca)
	client := s.connectAs(t, ca)
	stop := s.prober(t, client)
	_, foreignKey := other.issue(t, x509.ExtKeyUsageServerAuth)
	block := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	for name, harm := range map[string]struct{ path, content string }{
		"an empty bundle":             {s.options.TrustedCAFile, ""},
		"a bundle of nonsense":        {s.options.TrustedCAFile, "\x00\xff nonsense"},
		"a certificate of nonsense":   {s.options.TrustedCAFile, block},
		"nonsense after an authority": {s.options.TrustedCAFile, string(other.pem()) + block},
		"the key of another":          {s.options.KeyFile, content(t, foreignKey)},
		"no key":                      {s.options.KeyFile, ""},
		"no certificate":              {s.options.CertFile, block},
		"a certificate of another":    {s.options.CertFile, string(other.pem())},
	} {
		intact := content(t, harm.path)
		swap(t, harm.path, harm.content)
		s.awaitServed(t, true)
		if _, err := s.dial(t, ca); err != nil {
			t.Errorf("%s: clients are served no more: %v", name, err)
		}
		if _, err := s.dial(t, other); err == nil {
			t.Errorf("%s: a client is taken that is not trusted", name)
		}
		swap(t, harm.path, intact)
		s.awaitServed(t, false)
	}
	removeAll(t, s.options.TrustedCAFile)
	s.awaitUnreadable(t)
	s.trust(t, ca)
	s.awaitServed(t, false)
	if answered, failed := stop(); answered == 0 || failed > 0 {
		t.Errorf("%d requests were answered, %d failed", answered, failed)
	}
	s.process.client = client
	s.stop(t)
}

// awaitUnreadable waits until it is told that a file is missing.
func (s *secured) awaitUnreadable(t *testing.T) {
	t.Helper()
	s.waitUntil(t, "telling that a file is missing", func() error {
		told, err := status.Ask(t.Context(), s.options.HealthAddress)
		if err != nil || told.Certificates.Refused == "" {
			return fmt.Errorf("it tells %+v, %w", told, err)
		}
		return nil
	})
}

// The authority of peers is never one of clients, whenever it comes to be mounted.
func TestAttackClientsAreNoPeersLater(t *testing.T) {
	clients, peers := newAuthority(t, "clients"), newAuthority(t, "peers")
	s := New(memberOptions(t), zap.NewNop())
	s.options.CertFile, s.options.KeyFile = clients.issue(t, x509.ExtKeyUsageServerAuth)
	s.options.TrustedCAFile, s.options.PeerTrustedCAFile = clients.file, peers.file
	s.options.ListenClientURL = "https://127.0.0.1:1"
	if err := s.readCertificates(); err != nil {
		t.Fatal(err)
	}
	before := s.certificates.told()
	write(t, clients.file, string(clients.pem())+string(peers.pem()))
	s.certificates.reload()
	if got := s.certificates.told(); got.Checksum != before.Checksum || got.Refused == "" {
		t.Errorf("told is %+v, before %+v", got, before)
	}
}

// A connection that is made while its client's authority is forgotten does not stay.
func TestAConnectionIsNotAdmittedByWhatWasTrusted(t *testing.T) {
	before, after := newAuthority(t, "etcd"), newAuthority(t, "etcd")
	s := New(testOptions(t), zap.NewNop())
	s.options.CertFile, s.options.KeyFile = before.issue(t, x509.ExtKeyUsageServerAuth)
	s.options.TrustedCAFile, s.options.ListenClientURL = filepath.Join(t.TempDir(), "ca.crt"), "https://127.0.0.1:1"
	write(t, s.options.TrustedCAFile, string(before.pem()))
	if err := s.readCertificates(); err != nil {
		t.Fatal(err)
	}
	file, _ := before.issue(t, x509.ExtKeyUsageClientAuth)
	chain, err := parseAuthorities([]byte(content(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	c := s.certificates
	if err := c.admit(&clientConnection{}, chain); err != nil {
		t.Errorf("a client that is trusted is refused: %v", err)
	}
	if err := c.admit(&clientConnection{}, nil); err == nil {
		t.Error("a client without a certificate is admitted")
	}
	clear(c.connections)
	write(t, s.options.TrustedCAFile, string(after.pem()))
	c.reload()
	if err := c.admit(&clientConnection{}, chain); err == nil {
		t.Error("a client is admitted that is not trusted any more")
	}
}

func TestStartsWithoutCertificatesAreRefused(t *testing.T) {
	ca := newAuthority(t, "etcd")
	options := testOptions(t)
	options.ListenClientURL = "https://" + freeAddress(t)
	if err := New(options, zap.NewNop()).Run(t.Context()); err == nil {
		t.Error("clients are served without a certificate")
	}
	options.CertFile, options.KeyFile = ca.issue(t, x509.ExtKeyUsageServerAuth)
	options.TrustedCAFile = options.KeyFile
	if err := New(options, zap.NewNop()).Run(t.Context()); err == nil {
		t.Error("clients are served without an authority")
	}
}
