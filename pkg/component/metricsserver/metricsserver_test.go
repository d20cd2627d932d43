package metricsserver

import (
	"crypto/x509"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

func TestObjects(t *testing.T) {
	golden.CheckWithScheme(t, apis.GardenScheme(), "objects", Objects(Values{
		Image: "metrics-server:v1", Certificate: []byte("certificate"), PrivateKey: []byte("key"),
		CABundle: []byte("bundle"), KubeletCABundle: []byte("kubelets"),
	})...)
}

// kube-apiserver verifies the certificate for the name of the Service that the registration names, with the bundle in
// it.
func TestServerCertificateIsThatOfTheService(t *testing.T) {
	manager, err := secrets.New(t.Context(), fake.NewClientBuilder().WithScheme(apis.GardenScheme()).Build(),
		"shoot--demo--member1", secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager,
		[]string{Authority}); err != nil {
		t.Fatal(err)
	}
	secret, err := ServerCertificate(t.Context(), manager)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := secrets.ParseCertificate(secret.Data[secrets.DataKeyCertificate])
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := component.CABundle(manager, Authority)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle.Data[secrets.DataKeyCertificateBundle])
	service := registration(nil).Spec.Service
	if _, err := certificate.Verify(x509.VerifyOptions{
		DNSName: service.Name + "." + service.Namespace + ".svc", Roots: trusted,
	}); err != nil {
		t.Error(err)
	}
}
