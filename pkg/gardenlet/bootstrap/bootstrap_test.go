package bootstrap

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestSigningRequestNamesTheSeed(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := signingRequest("local", key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(csr.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Subject.CommonName != "gardener.cloud:system:seed:local" ||
		parsed.Subject.Organization[0] != "gardener.cloud:system:seeds" {
		t.Errorf("subject is %s", parsed.Subject)
	}
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		t.Errorf("signer is %s", csr.Spec.SignerName)
	}
}

func TestIssued(t *testing.T) {
	for _, test := range []struct {
		name   string
		status certificatesv1.CertificateSigningRequestStatus
		want   string
		err    string
	}{
		{name: "pending"},
		{name: "signed", status: certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("c")}, want: "c"},
		{
			name: "denied", status: certificatesv1.CertificateSigningRequestStatus{
				Conditions: []certificatesv1.CertificateSigningRequestCondition{
					{Type: certificatesv1.CertificateDenied, Message: "not you"},
				},
			}, err: "Denied: not you",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := issued(&certificatesv1.CertificateSigningRequest{Status: test.status})
			if string(got) != test.want || (err == nil) != (test.err == "") ||
				(err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestWaitSeesTheCertificate(t *testing.T) {
	clientset := kubernetesfake.NewClientset(&certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status:     certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("c")},
	})
	got, err := waitForCertificate(t.Context(), clientset, "a")
	if err != nil || string(got) != "c" {
		t.Errorf("got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := waitForCertificate(ctx, clientset, "b"); err == nil ||
		!strings.Contains(err.Error(), "garden-controller-manager") {
		t.Errorf("error is %v", err)
	}
}

func TestCertificateIsUsedUntilShortlyBeforeItsEnd(t *testing.T) {
	start := time.Now()
	kubeconfig := kubeconfigFor(t, "local", start, start.Add(10*time.Hour))
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": kubeconfig}}
	for _, test := range []struct {
		seed string
		at   time.Time
		want bool
	}{
		{"local", start.Add(time.Hour), true},
		{"local", start.Add(10*time.Hour - 30*time.Second), false},
		{"other", start.Add(time.Hour), false},
	} {
		if _, got := usable(secret, test.seed, test.at); got != test.want {
			t.Errorf("seed %s at %s: usable %v, want %v", test.seed, test.at.Sub(start), got, test.want)
		}
	}
	if _, got := usable(&corev1.Secret{}, "local", start); got {
		t.Error("an empty Secret is usable")
	}
	restConfig, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	renew, end, err := Expiry(restConfig)
	if err != nil || renew.Sub(start).Round(time.Minute) != 8*time.Hour ||
		end.Sub(start).Round(time.Minute) != 10*time.Hour {
		t.Errorf("renewal after %s, end after %s, %v", renew.Sub(start), end.Sub(start), err)
	}
}

func TestOwnKubeconfigIsPreferred(t *testing.T) {
	kubeconfig := kubeconfigFor(t, "local", time.Now(), time.Now().Add(time.Hour))
	seed := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "own"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}).Build()
	connection := config.GardenClientConnection{
		KubeconfigSecret:    &config.SecretReference{Namespace: "garden", Name: "own"},
		BootstrapKubeconfig: &config.SecretReference{Namespace: "garden", Name: "bootstrap"},
	}
	got, err := GardenConfig(t.Context(), seed, connection, "local")
	if err != nil || got.Host != "https://garden" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := GardenConfig(t.Context(), seed, connection, "other"); err == nil ||
		!strings.Contains(err.Error(), "bootstrap") {
		t.Errorf("error is %v", err)
	}
}

// due returns a kubeconfig whose certificate is due for renewal, with whatever replicas wait beyond that.
func due(t *testing.T, now time.Time) []byte {
	t.Helper()
	return kubeconfigFor(t, "local", now.Add(-99*time.Hour), now.Add(time.Hour))
}

// A replica that has stood by since before another one renewed the certificate takes that, instead of one that ends
// while it stands by. It asks the garden for nothing.
func TestAReplicaTakesWhatAnotherHasRenewed(t *testing.T) {
	now := time.Now()
	renewed := kubeconfigFor(t, "local", now.Add(-time.Hour), now.Add(99*time.Hour))
	r := renewerOf(t, due(t, now), renewed)
	r.Garden.Host = "https://127.0.0.1:1" // Nobody answers there.
	if r.NeedLeaderElection() {
		t.Error("who stands by does not look")
	}
	if err := r.Start(t.Context()); !errors.Is(err, ErrRenewed) {
		t.Errorf("got %v, want to start again", err)
	}
	if got := storedKubeconfig(t, r); !bytes.Equal(got, renewed) {
		t.Error("the certificate was renewed again")
	}
}

// Whoever finds the own certificate, or one that is due as well, renews it.
func TestADueCertificateIsRenewed(t *testing.T) {
	now := time.Now()
	own := due(t, now)
	for name, stored := range map[string][]byte{
		"the own one": own, "another one that is due": due(t, now), "one of another seed": kubeconfigFor(t, "other",
			now.Add(-time.Hour), now.Add(99*time.Hour)), "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			issued := kubeconfigFor(t, "local", now, now.Add(time.Hour))
			r := renewerOf(t, own, stored)
			garden := gardenThatIssues(t, issued)
			r.Garden.Host, r.Garden.CAData = garden.URL, pem.EncodeToMemory(&pem.Block{
				Type: "CERTIFICATE", Bytes: garden.Certificate().Raw,
			})
			if err := r.Start(t.Context()); !errors.Is(err, ErrRenewed) {
				t.Fatalf("got %v, want to start again", err)
			}
			got, err := clientcmd.RESTConfigFromKubeConfig(storedKubeconfig(t, r))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.CertData, configOf(t, issued).CertData) {
				t.Error("the new certificate is not stored")
			}
		})
	}
}

// Replicas that have begun together do not end together, and all have most of the time left to try again.
func TestRenewalsAreApart(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		wait := apart(time.Hour)
		if seen[wait] = true; wait < 0 || wait >= 15*time.Minute {
			t.Errorf("waits for %s of an hour", wait)
		}
	}
	if len(seen) < 90 {
		t.Errorf("only %d waits of 100 differ", len(seen))
	}
	if wait := apart(-time.Hour); wait != 0 {
		t.Errorf("an expired certificate waits for %s", wait)
	}
}

func configOf(t *testing.T, kubeconfig []byte) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// renewerOf has a kubeconfig, and another one, if it is not nil, is stored in the seed.
func renewerOf(t *testing.T, own, stored []byte) *Renewer {
	t.Helper()
	seed := fake.NewClientBuilder()
	if stored != nil {
		seed = seed.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "own"},
			Data:       map[string][]byte{kubeconfigKey: stored},
		})
	}
	return &Renewer{
		Seed: seed.Build(), Garden: configOf(t, own), SeedName: "local",
		Connection: config.GardenClientConnection{
			KubeconfigSecret: &config.SecretReference{Namespace: "garden", Name: "own"},
		},
	}
}

func storedKubeconfig(t *testing.T, r *Renewer) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := r.Seed.Get(t.Context(), key(*r.Connection.KubeconfigSecret), secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data[kubeconfigKey]
}

// gardenThatIssues is a garden that answers each request for a certificate with that of a kubeconfig.
func gardenThatIssues(t *testing.T, kubeconfig []byte) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(&certificatesv1.CertificateSigningRequest{
			TypeMeta: metav1.TypeMeta{
				APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest",
			},
			ObjectMeta: metav1.ObjectMeta{Name: "seed-csr-1"},
			Status:     certificatesv1.CertificateSigningRequestStatus{Certificate: configOf(t, kubeconfig).CertData},
		})
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// kubeconfigFor returns a kubeconfig with a certificate for the gardenlet of a seed.
func kubeconfigFor(t *testing.T, seed string, from, to time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: UserName(seed), Organization: []string{gardencorev1beta1.SeedsGroup}},
		NotBefore:    from, NotAfter: to,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &Certificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM,
	}
	kubeconfig, err := Kubeconfig(&rest.Config{Host: "https://garden"}, seed, certificate)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
