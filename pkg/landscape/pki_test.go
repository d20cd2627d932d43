package landscape

import (
	"crypto/x509"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func newTestPKI(t *testing.T) pki {
	t.Helper()
	p := pki{dir: t.TempDir()}
	if err := p.authority("ca"); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCertificatesVerify(t *testing.T) {
	p := newTestPKI(t)
	for _, c := range []certificate{
		{name: "server", ca: "ca", user: "server", hosts: []string{"example.test", "127.0.0.1"}},
		{name: "client", ca: "ca", user: "admin", groups: []string{"system:masters"}},
	} {
		if err := p.issue(c); err != nil {
			t.Fatal(err)
		}
	}
	ca, _, err := p.load("ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	server, _, err := p.load("server")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"example.test", "127.0.0.1"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	client, _, err := p.load("client")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Error(err)
	}
	if client.Subject.CommonName != "admin" || client.Subject.Organization[0] != "system:masters" {
		t.Errorf("the client is %s", client.Subject)
	}
}

func TestCertificatesAreKeptWhileTheyAreGood(t *testing.T) {
	p := newTestPKI(t)
	want := certificate{name: "server", ca: "ca", user: "server", hosts: []string{"a.test"}}
	if err := p.issue(want); err != nil {
		t.Fatal(err)
	}
	first, _, err := p.load("server")
	if err != nil {
		t.Fatal(err)
	}
	issueAgain := func(c certificate) *x509.Certificate {
		if err := p.issue(c); err != nil {
			t.Fatal(err)
		}
		again, _, err := p.load("server")
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	if !issueAgain(want).Equal(first) {
		t.Error("a good certificate was replaced")
	}
	want.hosts = []string{"a.test", "127.32.1.1"}
	if issueAgain(want).Equal(first) {
		t.Error("a certificate without the new address was kept")
	}
	if err := os.Remove(p.file("server.key")); err != nil {
		t.Fatal(err)
	}
	issueAgain(want)
}

func TestStillGood(t *testing.T) {
	p := newTestPKI(t)
	want := certificate{name: "client", ca: "ca", user: "admin"}
	if err := p.issue(want); err != nil {
		t.Fatal(err)
	}
	ca, _, err := p.load("ca")
	if err != nil {
		t.Fatal(err)
	}
	current, _, err := p.load("client")
	if err != nil {
		t.Fatal(err)
	}
	if !stillGood(current, want.template(), ca, time.Now()) {
		t.Error("a new certificate is not good")
	}
	if stillGood(current, want.template(), ca, current.NotAfter.Add(-time.Hour)) {
		t.Error("a certificate that is about to expire is good")
	}
	other := newTestPKI(t)
	otherCA, _, err := other.load("ca")
	if err != nil {
		t.Fatal(err)
	}
	if stillGood(current, want.template(), otherCA, time.Now()) {
		t.Error("a certificate of another authority is good")
	}
}

func TestKubeconfigIsComplete(t *testing.T) {
	p := newTestPKI(t)
	if err := p.issue(certificate{name: "admin", ca: "ca", user: "admin"}); err != nil {
		t.Fatal(err)
	}
	data, err := p.kubeconfig("https://127.32.1.1:443", "api.garden.test", "ca", "admin")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.32.1.1:443" || config.ServerName != "api.garden.test" || len(config.CAData) == 0 ||
		len(config.KeyData) == 0 {
		t.Errorf("got host %s, server name %s, %d bytes of CA, %d bytes of key", config.Host, config.ServerName,
			len(config.CAData), len(config.KeyData))
	}
}
