// Package tlsfiles serves and uses TLS with certificates from files that may be replaced while the process runs, as
// mounted Secrets are. API servers and etcd, which are libraries, read theirs again by themselves.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// recheck bounds how often files are looked at. Kubelet itself takes up to a minute to replace them.
const recheck = 10 * time.Second

// Files names the certificate of one side and the CA of the other.
type Files struct {
	Cert, Key, CA string
}

// ServerConfig returns a configuration for TLS 1.2 and newer that requires client certificates of the CA. It fails
// when the files cannot be used now. Later, files that cannot be used are logged and leave the last good ones in place.
func ServerConfig(files Files, log logr.Logger) (*tls.Config, error) {
	r := &reloader{files: files, log: log, now: time.Now, build: server}
	if err := r.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.current(), nil },
	}, nil
}

// ClientConfig returns the configuration for a connection to a server of the CA: what the files hold when it is called.
// It fails when the files cannot be used now. Later, files that cannot be used are logged and leave the last good ones
// in place.
func ClientConfig(files Files, log logr.Logger) (current func() *tls.Config, err error) {
	r := &reloader{files: files, log: log, now: time.Now, build: client}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r.current, nil
}

type reloader struct {
	files Files
	log   logr.Logger
	now   func() time.Time
	build func(tls.Certificate, *x509.CertPool) *tls.Config

	mu      sync.Mutex
	config  *tls.Config
	version version
	checked time.Time
	// failure is what was logged last; empty while the files are good. It is logged once.
	failure string
}

// version tells whether files changed: Secrets are replaced by a symbolic link, which changes modification times.
type version [3]fileVersion

type fileVersion struct {
	modified time.Time
	size     int64
}

func (r *reloader) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now().Sub(r.checked) >= recheck {
		r.report(r.loadLocked())
	}
	return r.config
}

// report logs that files cannot be used, and that they can be used again.
func (r *reloader) report(err error) {
	switch {
	case err == nil && r.failure != "":
		r.failure = ""
		r.log.Info("Certificate can be read again", "file", r.files.Cert)
	case err != nil && r.failure != err.Error():
		r.failure = err.Error()
		r.log.Error(err, "Certificate cannot be read, the last good one stays", "file", r.files.Cert)
	}
}

func (r *reloader) load() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loadLocked()
}

func (r *reloader) loadLocked() error {
	r.checked = r.now()
	version, err := r.files.version()
	if err != nil {
		return err
	}
	if r.config != nil && version == r.version {
		return nil
	}
	config, err := r.read()
	if err != nil {
		return err
	}
	r.config, r.version = config, version
	return nil
}

func (f Files) version() (version, error) {
	var v version
	for i, path := range []string{f.Cert, f.Key, f.CA} {
		info, err := os.Stat(path)
		if err != nil {
			return v, fmt.Errorf("TLS file: %w", err)
		}
		v[i] = fileVersion{modified: info.ModTime(), size: info.Size()}
	}
	return v, nil
}

func (r *reloader) read() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(r.files.Cert, r.files.Key)
	if err != nil {
		return nil, fmt.Errorf("loading certificate %s with key %s: %w", r.files.Cert, r.files.Key, err)
	}
	pem, err := os.ReadFile(r.files.CA)
	if err != nil {
		return nil, fmt.Errorf("reading CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA %s has no PEM certificate", r.files.CA)
	}
	return r.build(cert, pool), nil
}

func server(cert tls.Certificate, clients *x509.CertPool) *tls.Config {
	config := http1(cert)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients
	return config
}

func client(cert tls.Certificate, servers *x509.CertPool) *tls.Config {
	config := http1(cert)
	config.RootCAs = servers
	return config
}

// http1 leaves HTTP/2 out: one of its streams cannot be taken over for CONNECT as a connection can.
func http1(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"},
	}
}
