package connectproxy

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

func proxy(c client.Client) Proxy {
	return Proxy{
		Client: c, Namespace: "garden", Name: "proxy", Labels: component.Labels("proxy", "test"), Authority: "ca-proxy",
		MountPath: "/etc/proxy",
		Ports:     []corev1.ContainerPort{{Name: "http-connect", ContainerPort: 9443, Protocol: corev1.ProtocolTCP}},
	}
}

func TestCertificateHasTheNamesOfTheService(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	manager, err := secrets.New(t.Context(), c, "garden", secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	authority := secrets.CertificateConfig{Name: "ca-proxy", CommonName: "proxy", CertType: secrets.CACert}
	if _, err := manager.Generate(t.Context(), authority); err != nil {
		t.Fatal(err)
	}
	files, err := proxy(c).Files(t.Context(), manager)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: files[0].Secret}, secret); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data[secrets.DataKeyCertificate])
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"proxy", "proxy.garden", "proxy.garden.svc", "proxy.garden.svc.cluster.local"}
	if !slices.Equal(certificate.DNSNames, want) {
		t.Errorf("got %q, want %q", certificate.DNSNames, want)
	}
}

// What was deployed is gone after Destroy and WaitCleanup, which may be called again.
func TestDestroy(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	p := proxy(c)
	deployment := p.Deployment(Pod{Image: "vpn:v1", Replicas: 1, MostMemory: "1Gi"})
	if err := component.Apply(t.Context(), c, p.Service(), deployment); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.WaitCleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment is still there: %v", err)
	}
}
