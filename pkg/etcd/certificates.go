package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// certificatesPeriod is how often the files are looked at.
const certificatesPeriod = time.Second

// certificates are what clients are served with. Their files are read again and again: others are taken over without a
// connection that ends, but for those whose client is not trusted any more. Files that are none are not taken, and that
// is told.
type certificates struct {
	options *Options
	log     *zap.Logger

	mu      sync.Mutex
	current presented
	// seen are the files that were looked at last, refused is why they were not taken.
	seen    files
	refused string
	// connections are those of clients that are trusted.
	connections map[*clientConnection][]*x509.Certificate
}

// files are the contents of those of the options.
type files struct{ certificate, key, authorities []byte }

// presented is what files say.
type presented struct {
	certificate tls.Certificate
	// authorities are those of clients; nil if anybody is one.
	authorities *x509.CertPool
	checksum    string
}

// readCertificates reads what clients are served with, before anybody is.
func (s *Steward) readCertificates() error {
	if scheme, _, err := hostOf(s.options.ListenClientURL); err != nil || scheme != "https" {
		return err
	}
	c := &certificates{options: &s.options, log: s.log, connections: map[*clientConnection][]*x509.Certificate{}}
	read, err := c.read()
	if err == nil {
		c.seen = read
		c.current, err = c.parse(read)
	}
	if err == nil {
		s.certificates = c
	}
	return err
}

func (c *certificates) read() (files, error) {
	var read files
	var all []error
	for _, file := range []struct {
		path    string
		content *[]byte
	}{
		{c.options.CertFile, &read.certificate}, {c.options.KeyFile, &read.key},
		{c.options.TrustedCAFile, &read.authorities},
	} {
		if file.path == "" {
			continue
		}
		var err error
		*file.content, err = os.ReadFile(file.path)
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return files{}, err
	}
	return read, nil
}

func (f files) equal(other files) bool {
	return bytes.Equal(f.certificate, other.certificate) && bytes.Equal(f.key, other.key) &&
		bytes.Equal(f.authorities, other.authorities)
}

// parse reads what is in files.
func (c *certificates) parse(read files) (presented, error) {
	certificate, err := tls.X509KeyPair(read.certificate, read.key)
	if err != nil {
		return presented{}, fmt.Errorf("--cert-file %s and --key-file %s: %w", c.options.CertFile, c.options.KeyFile,
			err)
	}
	parsed := presented{
		certificate: certificate, checksum: status.CertificatesChecksum(read.authorities, read.certificate),
	}
	if c.options.TrustedCAFile == "" {
		return parsed, nil
	}
	trusted, err := parseAuthorities(read.authorities)
	if err != nil {
		return presented{}, fmt.Errorf("--trusted-ca-file %s: %w", c.options.TrustedCAFile, err)
	}
	parsed.authorities = x509.NewCertPool()
	for _, authority := range trusted {
		parsed.authorities.AddCert(authority)
	}
	return parsed, c.options.checkClients(trusted)
}

// watch takes over other files until ctx is done.
func (c *certificates) watch(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, certificatesPeriod) {
		c.reload()
	}
}

// reload takes over the files if they have changed.
func (c *certificates) reload() {
	read, err := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && read.equal(c.seen) {
		return
	}
	// What cannot be read is looked at again, also if it is as before.
	c.seen = read
	var next presented
	if err == nil {
		next, err = c.parse(read)
	}
	if err != nil {
		c.refuse(err)
		return
	}
	c.current, c.refused = next, ""
	ended := c.endUntrusted()
	c.log.Info("clients are served with other certificates or authorities", zap.String("checksum", next.checksum),
		zap.Int("connectionsEnded", ended))
}

// refuse notes why the files are not taken.
func (c *certificates) refuse(err error) {
	refused := status.Text(err.Error())
	if c.refused == refused {
		return
	}
	c.refused = refused
	c.log.Error("THE CERTIFICATES ON THE DISK ARE NOT TAKEN; clients are served with those of before", zap.Error(err))
}

// endUntrusted ends the connections of clients that are not trusted any more.
func (c *certificates) endUntrusted() (ended int) {
	for connection, chain := range c.connections {
		if c.current.verify(chain) != nil {
			_ = connection.Conn.Close()
			delete(c.connections, connection)
			ended++
		}
	}
	return ended
}

// verify tells why a client with a certificate is not trusted. The certificate is the first of the chain.
func (p presented) verify(chain []*x509.Certificate) error {
	if p.authorities == nil {
		return nil
	}
	if len(chain) == 0 {
		return errors.New("the client has presented no certificate")
	}
	options := x509.VerifyOptions{
		Roots: p.authorities, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, certificate := range chain[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := chain[0].Verify(options)
	return err
}

// config is that of connections; nil without TLS. Sessions are not resumed: who was trusted once may not be now.
func (c *certificates) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true, GetConfigForClient: c.configFor,
	}
}

// configFor is the configuration of one connection.
func (c *certificates) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	connection, isFollowed := hello.Conn.(*clientConnection)
	if !isFollowed {
		return nil, fmt.Errorf("a connection from %s is not followed", hello.Conn.RemoteAddr())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true, NextProtos: []string{"h2"},
		Certificates:     []tls.Certificate{c.current.certificate},
		VerifyConnection: func(state tls.ConnectionState) error { return c.admit(connection, state.PeerCertificates) },
	}
	if c.current.authorities != nil {
		config.ClientCAs, config.ClientAuth = c.current.authorities, tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// admit has a connection be one of those that end when its client is not trusted any more, which may have come to be
// while it was made.
func (c *certificates) admit(connection *clientConnection, chain []*x509.Certificate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.current.verify(chain); err != nil {
		return err
	}
	c.connections[connection] = slices.Clone(chain)
	return nil
}

func (c *certificates) forget(connection *clientConnection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.connections, connection)
}

// told is what the status tells; nil without TLS.
func (c *certificates) told() *status.Certificates {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &status.Certificates{Checksum: c.current.checksum, Refused: c.refused}
}

// follow returns a listener whose connections can be ended.
func (c *certificates) follow(listener net.Listener) net.Listener {
	return &followingListener{listener, c}
}

type followingListener struct {
	net.Listener
	certificates *certificates
}

// Accept implements net.Listener.
func (l *followingListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &clientConnection{accepted, l.certificates}, nil
}

// clientConnection is one that can be ended.
type clientConnection struct {
	net.Conn
	certificates *certificates
}

// Close implements net.Conn.
func (c *clientConnection) Close() error {
	c.certificates.forget(c)
	return c.Conn.Close()
}
