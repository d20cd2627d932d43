package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// write stores a new self-signed certificate for name in all files.
func write(t *testing.T, files Files, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, content := range map[string][]byte{
		files.Cert: cert, files.CA: cert, files.Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newFiles(t *testing.T) Files {
	dir := t.TempDir()
	return Files{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt"),
	}
}

func nameOf(t *testing.T, config *tls.Config) string {
	t.Helper()
	cert, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert.Subject.CommonName
}

func TestCertificatesAreReadAgain(t *testing.T) {
	files := newFiles(t)
	write(t, files, "first")
	now := time.Unix(1_700_000_000, 0)
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	r := &reloader{files: files, log: log, now: func() time.Time { return now }, build: server}
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	write(t, files, "the second, longer than the first")
	if got := nameOf(t, r.current()); got != "first" {
		t.Errorf("within the pause: got %q", got)
	}
	now = now.Add(recheck)
	if got := nameOf(t, r.current()); got != "the second, longer than the first" {
		t.Errorf("after the pause: got %q", got)
	}

	if err := os.WriteFile(files.Key, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		now = now.Add(recheck)
		if got := nameOf(t, r.current()); got != "the second, longer than the first" {
			t.Errorf("with a broken key: got %q, want the last good certificate", got)
		}
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "the last good one stays") ||
		!strings.Contains(logged[0], files.Key) {
		t.Errorf("a broken key is logged as %q, want one line that names it", logged)
	}

	write(t, files, "third")
	now = now.Add(recheck)
	if got := nameOf(t, r.current()); got != "third" || len(logged) != 2 {
		t.Errorf("with a new key: got %q, logged %q", got, logged)
	}
}

func TestClientConfig(t *testing.T) {
	files := newFiles(t)
	if _, err := ClientConfig(files, logr.Discard()); err == nil {
		t.Error("missing files were accepted")
	}
	write(t, files, "first")
	current, err := ClientConfig(files, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if config := current(); nameOf(t, config) != "first" || config.RootCAs == nil || config.InsecureSkipVerify {
		t.Errorf("got %+v", config)
	}
}

func TestServerConfigRequiresClientCertificates(t *testing.T) {
	files := newFiles(t)
	if _, err := ServerConfig(files, logr.Discard()); err == nil {
		t.Error("missing files were accepted")
	}
	write(t, files, "first")
	config, err := ServerConfig(files, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	current, err := config.GetConfigForClient(nil)
	if err != nil || current.ClientAuth != tls.RequireAndVerifyClientCert || current.ClientCAs == nil {
		t.Errorf("got %+v, %v", current, err)
	}
}
