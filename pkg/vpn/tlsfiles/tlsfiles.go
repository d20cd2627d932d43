// Package tlsfiles serves TLS with certificates from files that may be replaced while the process runs, as mounted
// Secrets are.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// recheck bounds how often files are looked at. Kubelet itself takes up to a minute to replace them.
const recheck = 10 * time.Second

// Files names a server certificate and the CA of its clients.
type Files struct {
	Cert, Key, ClientCA string
}

// ServerConfig returns a configuration for TLS 1.2 and newer that requires client certificates of the CA. It fails
// when the files cannot be used now. Later, files that cannot be used leave the last good ones in place.
func ServerConfig(files Files) (*tls.Config, error) {
	r := &reloader{files: files, now: time.Now}
	if err := r.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.current(), nil },
	}, nil
}

type reloader struct {
	files Files
	now   func() time.Time

	mu      sync.Mutex
	config  *tls.Config
	version version
	checked time.Time
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
		_ = r.loadLocked()
	}
	return r.config
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
	config, err := r.files.read()
	if err != nil {
		return err
	}
	r.config, r.version = config, version
	return nil
}

func (f Files) version() (version, error) {
	var v version
	for i, path := range []string{f.Cert, f.Key, f.ClientCA} {
		info, err := os.Stat(path)
		if err != nil {
			return v, fmt.Errorf("TLS file: %w", err)
		}
		v[i] = fileVersion{modified: info.ModTime(), size: info.Size()}
	}
	return v, nil
}

func (f Files) read() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("loading certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("reading client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("client CA %s has no PEM certificate", f.ClientCA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		// An HTTP/2 stream cannot be taken over for CONNECT as a connection can.
		NextProtos: []string{"http/1.1"},
	}, nil
}
