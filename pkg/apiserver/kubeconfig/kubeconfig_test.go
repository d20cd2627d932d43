package kubeconfig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// getter returns objects by name.
type getter map[string]runtime.Object

func (g getter) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if obj, ok := g[name]; ok {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(gardencorev1beta1.Resource("things"), name)
}

func newCA(t *testing.T) (certificatePEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(1000 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func testShoot() *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{
		{Name: "external", URL: "https://api.member1.demo.example"},
		{Name: "service-account-issuer", URL: "https://issuer.example"},
		{Name: "wildcard-tls-seed-bound", URL: "https://wildcard.example"},
	}
	return shoot
}

func newREST(t *testing.T, level Level, systemUser string) *REST {
	certificate, key := newCA(t)
	return &REST{
		Level: level,
		Sources: Sources{
			Shoots: getter{
				"member1": testShoot(), "young": &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "young"}},
			},
			InternalSecrets: getter{"member1.ca-client": &gardencorev1beta1.InternalSecret{
				Data: map[string][]byte{"ca.crt": certificate, "ca.key": key},
			}},
			ConfigMap: func(context.Context, string, string) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{Data: map[string]string{"ca.crt": "cluster CA"}}, nil
			},
		},
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context,
			a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == systemUser {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
		Clock:         clocktesting.NewFakePassiveClock(now),
		MaxExpiration: 24 * time.Hour,
	}
}

func asUser(name string) context.Context {
	return apirequest.WithUser(context.Background(), &user.DefaultInfo{Name: name})
}

func TestAdminKubeconfig(t *testing.T) {
	rest := newREST(t, Admin, "operator")
	asked := &authenticationv1alpha1.AdminKubeconfigRequest{}
	if _, err := rest.Create(asUser("alice"), "member1", asked, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := asked.Status.ExpirationTimestamp.Time, now.Add(time.Hour); !got.Equal(want) {
		t.Errorf("expires %v, want %v", got, want)
	}
	config, err := clientcmd.Load(asked.Status.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.CurrentContext, "garden-demo--member1-external"; got != want {
		t.Errorf("current context = %q, want %q", got, want)
	}
	if len(config.Clusters) != 2 || len(config.Contexts) != 2 {
		t.Errorf("got %d clusters and %d contexts, want one of each for both API server addresses",
			len(config.Clusters), len(config.Contexts))
	}
	external := config.Clusters["garden-demo--member1-external"]
	if external.Server != "https://api.member1.demo.example" ||
		string(external.CertificateAuthorityData) != "cluster CA" {
		t.Errorf("external cluster = %+v", external)
	}
	if wildcard :=
		config.Clusters["garden-demo--member1-wildcard-tls-seed-bound"]; len(wildcard.CertificateAuthorityData) > 0 {
		t.Error("the wildcard address carries a CA")
	}
	auth := config.AuthInfos["garden-demo--member1"]
	checkCredentials(t, rest, auth.ClientCertificateData, auth.ClientKeyData)
}

func checkCredentials(t *testing.T, rest *REST, certificatePEM, keyPEM []byte) {
	t.Helper()
	block, more := pem.Decode(keyPEM)
	if block == nil || block.Type != "RSA PRIVATE KEY" || len(more) > 0 || len(block.Headers) > 0 {
		t.Errorf("key is not one plain PEM block of type RSA PRIVATE KEY: %s", keyPEM)
	}
	block, more = pem.Decode(certificatePEM)
	if block == nil || len(more) > 0 {
		t.Fatalf("certificate is not one PEM block: %s", certificatePEM)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got := certificate.Subject.CommonName; got != "gardener.cloud:admin:alice" {
		t.Errorf("common name = %q", got)
	}
	if got := strings.Join(certificate.Subject.Organization, ","); got != "gardener.cloud:project:admins" {
		t.Errorf("organization = %q", got)
	}
	secret := rest.Sources.InternalSecrets.(getter)["member1.ca-client"].(*gardencorev1beta1.InternalSecret)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	if _, err := certificate.Verify(x509.VerifyOptions{
		Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Errorf("certificate does not verify: %v", err)
	}
}

func TestGroupFollowsRights(t *testing.T) {
	tests := map[string]struct {
		level Level
		user  string
		want  Identity
	}{
		"operator, admin": {
			Admin, "operator", Identity{"gardener.cloud:admin:operator", "gardener.cloud:system:admins"},
		},
		"project member, admin": {
			Admin, "alice", Identity{"gardener.cloud:admin:alice", "gardener.cloud:project:admins"},
		},
		"operator, viewer": {
			Viewer, "operator", Identity{"gardener.cloud:viewer:operator", "gardener.cloud:system:viewers"},
		},
		"project member": {
			Viewer, "alice", Identity{"gardener.cloud:viewer:alice", "gardener.cloud:project:viewers"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := newREST(t, test.level, "operator").identity(asUser(test.user))
			if err != nil || got != test.want {
				t.Errorf("identity = %v, %v; want %v", got, err, test.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		shoot   string
		seconds *int64
		is      func(error) bool
		message string
	}{
		"unknown shoot":           {shoot: "nobody", is: apierrors.IsNotFound},
		"shoot without addresses": {shoot: "young", is: apierrors.IsInvalid, message: "status.advertisedAddresses"},
		"too short": {
			shoot: "member1", seconds: new(int64(599)), is: apierrors.IsInvalid, message: "spec.expirationSeconds",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := &authenticationv1alpha1.ViewerKubeconfigRequest{
				Spec: authenticationv1alpha1.ViewerKubeconfigRequestSpec{ExpirationSeconds: test.seconds},
			}
			_, err := newREST(t, Viewer, "").Create(asUser("alice"), test.shoot, asked, nil, nil)
			if err == nil || !test.is(err) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestLongValidityIsCut(t *testing.T) {
	asked := &authenticationv1alpha1.ViewerKubeconfigRequest{
		Spec: authenticationv1alpha1.ViewerKubeconfigRequestSpec{ExpirationSeconds: new(int64(1000000))},
	}
	if _, err := newREST(t, Viewer, "").Create(asUser("alice"), "member1", asked, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := asked.Status.ExpirationTimestamp.Time, now.Add(24*time.Hour); !got.Equal(want) {
		t.Errorf("expires %v, want %v", got, want)
	}
}
