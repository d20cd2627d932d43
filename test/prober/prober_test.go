package prober

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What is away for three seconds does not answer two requests, and a third one when it is tried again.
func TestProberCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := Start(t.Context(), func(context.Context) error {
			if at := time.Since(begin); at >= time.Second && at < 4*time.Second {
				return errors.New("away")
			}
			return nil
		})
		time.Sleep(5 * time.Second) // of the test's own clock
		told := p.Stop()
		if told.Failed != 2 || told.Retried != 1 || told.All < 10 || told.Longest != 3100*time.Millisecond ||
			!strings.HasSuffix(told.Last, ": away") {
			t.Errorf("got %s", told)
		}
	})
}

// What is not answered until the end counts, too.
func TestProberIsStoppedWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Start(t.Context(), func(context.Context) error { return errors.New("away") })
		time.Sleep(5 * time.Second) // of the test's own clock
		if told := p.Stop(); told.Longest != 5*time.Second || told.Failed != told.All || told.All == 0 {
			t.Errorf("got %s", told)
		}
	})
}

// writeKubeconfig writes one for a server whose certificate is of this authority.
func writeKubeconfig(t *testing.T, server string, authority *x509.Certificate) string {
	t.Helper()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: "+
		"{cluster: a, user: a}}], users: [{name: a, user: {token: secret}}], "+
		"clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]}", server,
		base64.StdEncoding.EncodeToString(bundle))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The API is asked with the token of the kubeconfig, each time by a connection of its own. Whatever is not the object
// is no answer.
func TestAPIIsAsked(t *testing.T) {
	var mutex sync.Mutex
	code, from := http.StatusOK, map[string]bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		from[r.RemoteAddr] = true
		if r.URL.Path != "/api/v1/namespaces/default" || r.Header.Get("Authorization") != "Bearer secret" {
			code = http.StatusUnauthorized
		}
		w.WriteHeader(code)
	}))
	defer server.Close()
	ask, err := API(writeKubeconfig(t, server.URL, server.Certificate()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ask(t.Context()); err != nil {
			t.Error(err)
		}
	}
	mutex.Lock()
	if len(from) != 2 {
		t.Errorf("two requests came by %d connections", len(from))
	}
	code = http.StatusServiceUnavailable
	mutex.Unlock()
	if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want an error with 503", err)
	}
	if _, err := API(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a kubeconfig that is not there: no error")
	}
}

// Who stands in for the API server gets no token, and has given no answer.
func TestAnImpostorIsNotAsked(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ask, err := API(writeKubeconfig(t, server.URL, otherAuthority(t)))
	if err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	if err := ask(t.Context()); !errors.As(err, &unknown) {
		t.Errorf("got %v, want one of an unknown authority", err)
	}
	if len(asked) > 0 {
		t.Error("it was asked")
	}
}

func otherAuthority(t *testing.T) *x509.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
