package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/ports"
)

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		err    string
	}{
		"defaults":       {func(*Options) {}, ""},
		"no workers":     {func(o *Options) { o.Workers = 0 }, "--workers"},
		"no namespace":   {func(o *Options) { o.Namespace = "" }, "--namespace"},
		"a long silence": {func(o *Options) { o.LeaseDuration = time.Hour }, "--lease-duration"},
		"a long life": {
			func(o *Options) { o.CertificateLifetime = 60 * 24 * time.Hour }, "--certificate-lifetime",
		},
		"a short life":       {func(o *Options) { o.CertificateLifetime = time.Minute }, "--certificate-lifetime"},
		"a kind that is not": {func(o *Options) { o.Allowance.Kinds = []string{"pods"} }, "--allow-kinds"},
	} {
		options := DefaultOptions()
		options.Namespace = "n"
		tc.change(&options)
		if err := options.Validate(); (tc.err == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

// An agent that nobody has accepted, and whose member does not even answer, is healthy: starting it anew would not
// help. It tells what it does, and that it does not serve its member.
func TestWhatIsToldWhileWaiting(t *testing.T) {
	options := DefaultOptions()
	options.Namespace, options.HealthAddress, options.MetricsAddress = "n", address(t), address(t)
	options.Member = &rest.Config{Host: "http://127.0.0.1:1"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, options) }()
	for _, tc := range []struct {
		url    string
		status int
		body   string
	}{
		{options.HealthAddress + "/healthz", http.StatusOK, "ok"},
		{options.HealthAddress + "/readyz", http.StatusServiceUnavailable, "does not serve its member yet"},
		{
			options.MetricsAddress + "/metrics", http.StatusOK,
			"federation_agent_certificate_expiration_timestamp_seconds 0",
		},
	} {
		if status, body := get(t, "http://"+tc.url); status != tc.status || !strings.Contains(body, tc.body) {
			t.Errorf("%s: got %d, %.200s", tc.url, status, body)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// address is one that nothing listens on.
func address(t *testing.T) string {
	t.Helper()
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// get what is answered, once somebody listens.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		response, err := http.Get(url)
		if err == nil {
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			return response.StatusCode, string(body)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// issued makes a certificate for a key, as a fleet would.
func issued(t *testing.T, user string, key []byte, expires time.Time) []byte {
	t.Helper()
	block, _ := pem.Decode(key)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotBefore: expires.Add(-time.Hour),
		NotAfter: expires,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, parsed.(*ecdsa.PrivateKey).Public(), authority)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestStoredCertificates(t *testing.T) {
	now := time.Now()
	key, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		certificate, key []byte
		usable           bool
	}{
		"good":             {issued(t, "u", key, now.Add(time.Minute)), key, true},
		"expired":          {issued(t, "u", key, now.Add(-time.Minute)), key, false},
		"of another user":  {issued(t, "v", key, now.Add(time.Minute)), key, false},
		"of another key":   {issued(t, "u", key, now.Add(time.Minute)), other, false},
		"none":             {nil, key, false},
		"something broken": {[]byte("x"), key, false},
	} {
		got := certificate(&corev1.Secret{Data: map[string][]byte{"tls.crt": tc.certificate, "tls.key": tc.key}}, "u",
			now)
		if (got != nil) != tc.usable {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The key is stored before anybody hears of it, and stays the same: an agent that is started again asks for the same
// certificate.
func TestKeyStays(t *testing.T) {
	s := store{fake.NewClientBuilder().Build(), "n"}
	first, err := s.key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.key(t.Context())
	if err != nil || string(first.Data["tls.key"]) != string(second.Data["tls.key"]) ||
		len(second.Data["tls.key"]) == 0 {
		t.Errorf("got %v", err)
	}
	if err := s.setLeaving(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if found, err := s.read(t.Context(), credentialsSecret); err != nil || len(found.Data[leavingKey]) == 0 ||
		len(found.Data["tls.key"]) == 0 {
		t.Errorf("got %v, %v", found.Data, err)
	}
	if err := s.setLeaving(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if found, err := s.read(t.Context(), credentialsSecret); err != nil || found.Data[leavingKey] != nil {
		t.Errorf("got %v, %v", found.Data, err)
	}
}

// A Secret that somebody emptied gets a key again.
func TestEmptiedCredentials(t *testing.T) {
	s := store{
		fake.NewClientBuilder().WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: credentialsSecret},
		}).Build(), "n",
	}
	got, err := s.key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registration.KeyFingerprint(got.Data["tls.key"]); err != nil {
		t.Error(err)
	}
}
