package secrets

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const namespace = "shoot--demo--member1"

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestGenerateIsStable(t *testing.T) {
	c, clock := fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start)
	m := newManager(t, c, clock, nil)
	ca := generate(t, m, caConfig("ca"))
	server := generate(t, m, serverCert("server", "a.example.com", "b.example.com"))

	if !regexp.MustCompile(`^server-[0-9a-f]{8}$`).MatchString(server.Name) {
		t.Errorf("name is %q", server.Name)
	}
	if server.Immutable == nil || !*server.Immutable {
		t.Error("secret is not immutable")
	}
	again := newManager(t, c, clock, nil)
	if got := generate(t, again, caConfig("ca")); got.Name != ca.Name ||
		!bytes.Equal(got.Data["ca.crt"], ca.Data["ca.crt"]) {
		t.Error("a second manager made another CA")
	}
	if got := generate(t, again, serverCert("server", "b.example.com", "a.example.com",
		"b.example.com")); got.Name != server.Name {
		t.Errorf("order of names changed the secret: %s, was %s", got.Name, server.Name)
	}
	if got := generate(t, again, serverCert("server", "c.example.com")); got.Name == server.Name {
		t.Error("another configuration gave the same secret")
	}
}

func TestCertificatesVerify(t *testing.T) {
	m := newManager(t, fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start), nil)
	generate(t, m, CertificateConfig{Name: "ca", CommonName: "kubernetes", CertType: CACert, KeyAlgorithm: RSA})
	secret := generate(t, m, CertificateConfig{
		Name: "client", CommonName: "system:node:a", Organization: []string{"system:nodes"}, CertType: ServerClientCert,
		SigningCA: "ca", DNSNames: []string{"a"}, IPAddresses: []net.IP{net.ParseIP("10.4.0.1")},
	})
	bundle, found := m.Get("ca", Bundle)
	if !found {
		t.Fatal("the CA has no bundle")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle.Data[DataKeyCertificateBundle]) {
		t.Fatal("the bundle holds no certificate")
	}
	certificate, err := ParseCertificate(secret.Data[DataKeyCertificate])
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		for _, name := range []string{"a", "10.4.0.1"} {
			_, err := certificate.Verify(x509.VerifyOptions{
				DNSName: name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: start,
			})
			if err != nil {
				t.Errorf("usage %v, name %s: %v", usage, name, err)
			}
		}
	}
	if _, ok := certificate.PublicKey.(*ecdsa.PublicKey); !ok {
		t.Errorf("key is a %T, want ECDSA", certificate.PublicKey)
	}
	if certificate.Subject.CommonName != "system:node:a" || certificate.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject is %s", certificate.Subject)
	}
	caSecret, _ := m.Get("ca")
	caCertificate, err := ParseCertificate(caSecret.Data[DataKeyCertificateCA])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := caCertificate.PublicKey.(*rsa.PublicKey); !ok {
		t.Errorf("the CA's key is a %T, want RSA", caCertificate.PublicKey)
	}
}

func TestNewCAGivesNewLeaves(t *testing.T) {
	c, clock := fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start)
	m := newManager(t, c, clock, nil)
	ca := generate(t, m, caConfig("ca"))
	leaf := generate(t, m, CertificateConfig{Name: "client", CertType: ClientCert, SigningCA: "ca"})

	clock.SetTime(start.Add(time.Hour))
	rotated := newManager(t, c, clock, map[string]time.Time{"ca": start.Add(time.Hour)})
	newCA, err := rotated.Generate(t.Context(), caConfig("ca"), KeepOld())
	if err != nil {
		t.Fatal(err)
	}
	newLeaf := generate(t, rotated, CertificateConfig{Name: "client", CertType: ClientCert, SigningCA: "ca"})

	if newCA.Name == ca.Name || newLeaf.Name == leaf.Name {
		t.Errorf("rotation kept CA %s or leaf %s", newCA.Name, newLeaf.Name)
	}
	if previous, found := rotated.Get("ca", Old); !found || previous.Name != ca.Name {
		t.Errorf("the old CA is %v", previous)
	}
	bundle, _ := rotated.Get("ca", Bundle)
	for _, secret := range []*corev1.Secret{ca, newCA} {
		if !bytes.Contains(bundle.Data[DataKeyCertificateBundle], secret.Data[DataKeyCertificateCA]) {
			t.Errorf("the bundle misses %s", secret.Name)
		}
	}
	if err := rotated.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	finished := newManager(t, c, clock, map[string]time.Time{"ca": start.Add(time.Hour)})
	if got := generate(t, finished, caConfig("ca")); got.Name != newCA.Name {
		t.Errorf("after the rotation the CA is %s, want %s", got.Name, newCA.Name)
	}
	bundle, _ = finished.Get("ca", Bundle)
	if bytes.Contains(bundle.Data[DataKeyCertificateBundle], ca.Data[DataKeyCertificateCA]) {
		t.Error("the bundle still holds the old CA")
	}
}

func TestRenewal(t *testing.T) {
	c, clock := fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start)
	m := newManager(t, c, clock, nil)
	generate(t, m, caConfig("ca"))
	first := generate(t, m, serverCert("server", "a"))

	clock.SetTime(start.Add(validityLeaf * 79 / 100))
	if got := generate(t, m, serverCert("server", "a")); got.Name != first.Name {
		t.Errorf("renewed after 79 %% of its validity")
	}
	clock.SetTime(start.Add(validityLeaf * 81 / 100))
	second := generate(t, m, serverCert("server", "a"))
	if second.Name == first.Name {
		t.Error("not renewed after 81 % of its validity")
	}
	if got := generate(t, newManager(t, c, clock, nil), caConfig("ca")); unixLabel(got, LabelIssuedAt) != start.Unix() {
		t.Error("a CA was renewed without a rotation")
	}
	if got, _ := newManager(t, c, clock, nil).Get("server"); got.Name != second.Name {
		t.Errorf("Get returns %s, want the newest %s", got.Name, second.Name)
	}
}

func TestCleanupRemovesUnused(t *testing.T) {
	c, clock := fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start)
	m := newManager(t, c, clock, nil)
	generate(t, m, caConfig("ca"))
	generate(t, m, serverCert("server", "old"))
	foreign, err := New(t.Context(), c, namespace, Options{Identity: "other"})
	if err != nil {
		t.Fatal(err)
	}
	generate(t, foreign, RandomConfig{Name: "password"})

	m = newManager(t, c, clock, nil)
	generate(t, m, caConfig("ca"))
	generate(t, m, serverCert("server", "on the way"))
	latest := generate(t, m, serverCert("server", "new"))
	if err := m.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Labels[LabelName])
		if secret.Labels[LabelName] == "server" && secret.Name != latest.Name {
			t.Errorf("Secret %s is left, want the one that was generated last, %s", secret.Name, latest.Name)
		}
	}
	if got := strings.Join(names, " "); got != "ca-bundle ca password server" && got != "ca ca-bundle password server" {
		t.Errorf("left are %s", got)
	}
}

// Clients that know the old CA only go on trusting servers until the rotation is completed; servers that do not know
// the new CA yet go on accepting those clients that ask for it.
func TestWhoSignsDuringARotation(t *testing.T) {
	c, clock := fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start)
	client := CertificateConfig{Name: "client", CertType: ClientCert, SigningCA: "ca"}
	late := CertificateConfig{Name: "late", CertType: ClientCert, SigningCA: "ca", SignedByOldCA: true}
	both := CertificateConfig{Name: "both", CertType: ServerClientCert, SigningCA: "ca"}
	configs := []CertificateConfig{serverCert("server", "a"), both, client, late}
	before := newManager(t, c, clock, nil)
	generate(t, before, caConfig("ca"))
	for _, config := range configs {
		generate(t, before, config)
	}
	for _, phase := range []struct {
		name    string
		options []Option
		// byNew are the certificates that the new CA signs.
		byNew string
	}{
		{"both are trusted", []Option{KeepOld()}, "client"},
		{"both are trusted still", []Option{KeepOld()}, "client"},
		{"the old one is dropped", nil, "server both client late"},
	} {
		clock.SetTime(clock.Now().Add(time.Hour))
		m := newManager(t, c, clock, map[string]time.Time{"ca": start.Add(time.Hour)})
		ca, err := m.Generate(t.Context(), caConfig("ca"), phase.options...)
		if err != nil {
			t.Fatal(err)
		}
		var byNew []string
		for _, config := range configs {
			if secret := generate(t, m, config); bytes.Equal(secret.Data[DataKeyCertificateCA],
				ca.Data[DataKeyCertificateCA]) {
				byNew = append(byNew, config.Name)
			}
		}
		if got := strings.Join(byNew, " "); got != phase.byNew {
			t.Errorf("%s: the new CA signed %q, want %q", phase.name, got, phase.byNew)
		}
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"a CA that is missing", serverCert("server", "a"), `its CA "ca" has not been generated`},
		{"no CA", CertificateConfig{Name: "x", CertType: ClientCert}, "no signing CA"},
		{"a CA signed by another", CertificateConfig{Name: "x", CertType: CACert, SigningCA: "ca"}, "self-signed"},
		{"no type", CertificateConfig{Name: "x"}, "is unknown"},
		{
			"a kubeconfig without user", KubeconfigConfig{Name: "x", Server: "https://a"},
			"either a user or a token file",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newManager(t, fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start), nil)
			if _, err := m.Generate(t.Context(), test.config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	m := newManager(t, fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start), nil)
	generate(t, m, caConfig("ca"))
	generate(t, m, caConfig("ca-client"))
	secret := generate(t, m, KubeconfigConfig{
		Name: "admin", Server: "https://kube-apiserver", User: "admin", Groups: []string{"system:masters"},
	})
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[DataKeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	bundle, _ := m.Get("ca", Bundle)
	if config.Host != "https://kube-apiserver" || !bytes.Equal(config.CAData, bundle.Data[DataKeyCertificateBundle]) {
		t.Errorf("host %s or its CA is wrong", config.Host)
	}
	certificate, err := ParseCertificate(config.CertData)
	if err != nil || certificate.Subject.Organization[0] != "system:masters" {
		t.Errorf("certificate %v, error %v", certificate, err)
	}
	token := generate(t, m, KubeconfigConfig{
		Name: "generic-token-kubeconfig", Server: "https://kube-apiserver", TokenFile: "/token",
	})
	parsed, err := clientcmd.Load(token.Data[DataKeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	if got := parsed.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo].TokenFile; got != "/token" {
		t.Errorf("token file is %q", got)
	}
}

func TestOtherKinds(t *testing.T) {
	m := newManager(t, fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start), nil)
	wireguard := generate(t, m, WireGuardKeyPairConfig{Name: "wg"})
	for _, key := range []string{DataKeyWireGuardPrivateKey, DataKeyWireGuardPublicKey} {
		if raw, err := base64.StdEncoding.DecodeString(string(wireguard.Data[key])); err != nil || len(raw) != 32 {
			t.Errorf("%s has %d bytes, error %v", key, len(raw), err)
		}
	}
	if key := generate(t, m, EncryptionKeyConfig{Name: "key"}); string(key.Data["name"]) != "key1793534400" {
		t.Errorf("key is named %s", key.Data["name"])
	}
	if value := generate(t, m, RandomConfig{Name: "random", Length: 12}); len(value.Data[DataKeyPassword]) != 12 {
		t.Errorf("random value has %d characters", len(value.Data[DataKeyPassword]))
	}
	token := generate(t, m, StaticTokenConfig{Name: "token", User: "health", Groups: []string{"a", "b"}})
	if want := string(token.Data[DataKeyToken]) +
		",health,health,\"a,b\"\n"; string(token.Data[DataKeyStaticTokens]) != want {
		t.Errorf("token file is %q", token.Data[DataKeyStaticTokens])
	}
	generate(t, m, KeyConfig{Name: "service-account-key"})
	public, found := m.Get("service-account-key", Bundle)
	if !found || !bytes.HasPrefix(public.Data[DataKeyPublicKeyBundle], []byte("-----BEGIN PUBLIC KEY-----")) {
		t.Errorf("no bundle of public keys")
	}
	a := generate(t, m, DataConfig{Name: "config", Data: map[string][]byte{"a": []byte("1")}})
	b := generate(t, m, DataConfig{Name: "config", Data: map[string][]byte{"a": []byte("2")}})
	if a.Name == b.Name {
		t.Error("another content gave the same name")
	}
}

func TestRSAKeysAreThoseOfTheOptions(t *testing.T) {
	given, err := newRSAKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	m, err := New(t.Context(), fake.NewClientBuilder().Build(), namespace, Options{
		RSAKey: func(bits int) (*rsa.PrivateKey, error) {
			asked = bits
			return given, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := generate(t, m, KeyConfig{Name: "ssh", Bits: 3072})
	block, _ := pem.Decode(secret.Data[DataKeyRSAPrivateKey])
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil || !given.Equal(key) || asked != 3072 {
		t.Errorf("%d bits were asked for, and another key is stored than was given (%v)", asked, err)
	}
}

func TestConcurrentGenerate(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	m := newManager(t, c, clocktesting.NewFakePassiveClock(start), nil)
	generate(t, m, caConfig("ca"))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := m.Generate(t.Context(), serverCert("server", "a")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list, client.MatchingLabels{LabelName: "server"}); err != nil ||
		len(list.Items) != 1 {
		t.Errorf("%d secrets, error %v", len(list.Items), err)
	}
}

func caConfig(name string) CertificateConfig { return CertificateConfig{Name: name, CertType: CACert} }

func serverCert(name string, dnsNames ...string) CertificateConfig {
	return CertificateConfig{Name: name, CertType: ServerCert, SigningCA: "ca", DNSNames: dnsNames}
}

func newManager(t *testing.T, c client.Client, clock *clocktesting.FakePassiveClock,
	rotations map[string]time.Time) Manager {
	t.Helper()
	m, err := New(context.Background(), c, namespace, Options{Clock: clock, RotationInitiation: rotations})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func generate(t *testing.T, m Manager, config Config) *corev1.Secret {
	t.Helper()
	secret, err := m.Generate(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// A pointer would take another way through the defaults, and so get another checksum and another secret.
func TestPointersAreRefused(t *testing.T) {
	m := newManager(t, fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start), nil)
	config := caConfig("ca")
	_, err := m.Generate(t.Context(), &config)
	if err == nil || !strings.Contains(err.Error(), "by value") {
		t.Errorf("got %v", err)
	}
}
