package members

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

func TestAConnectionFollowsTheFileOfItsAuthority(t *testing.T) {
	var served atomic.Pointer[tls.Certificate]
	file := filepath.Join(t.TempDir(), "ca.crt")
	rotate := func() {
		certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		served.Store(&pair)
		if err := os.WriteFile(file, certificate, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*served.Load()}}, nil
	}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	var connected int
	pool := NewPool(func(string, client.Object) { connected++ }, outside.Direct)
	use := func(wanted int) {
		t.Helper()
		member, err := pool.Use(t.Context(), "one",
			&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: file}})
		if err != nil {
			t.Fatal(err)
		}
		if err := member.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		if connected != wanted {
			t.Errorf("connected %d times, want %d", connected, wanted)
		}
	}
	use(1)
	use(1)
	rotate()
	use(2)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	use(2)
	if _, err := pool.Use(t.Context(), "other",
		&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: file}}); err == nil {
		t.Error("connected without an authority")
	}
}
