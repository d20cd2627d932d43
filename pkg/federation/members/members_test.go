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
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

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
	var logged []string
	ctx := ctrllog.IntoContext(t.Context(),
		funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	use := func(wanted int) {
		t.Helper()
		member, err := pool.Use(ctx, "one",
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
	if len(logged) > 0 {
		t.Errorf("logged %q while the file was there", logged)
	}
	use(2)
	use(2)
	if len(logged) != 1 || !strings.Contains(logged[0], file) {
		t.Errorf("logged %q, want once that %s cannot be read", logged, file)
	}
	if _, err := pool.Use(t.Context(), "other",
		&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: file}}); err == nil {
		t.Error("connected without an authority")
	}
}
