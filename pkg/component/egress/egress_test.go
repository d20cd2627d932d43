package egress

import (
	"bytes"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

func TestObjects(t *testing.T) {
	files := []component.SecretFiles{{Secret: "egress-11111111", Files: map[string]string{"tls.crt": "tls/tls.crt"}}}
	values := Values{
		Image: "vpn:v1", DeniedNetworks: []string{"10.1.0.0/16", "10.2.0.0/16"},
		AllowedNetworks: []string{"172.18.0.2/32:443"},
	}
	golden.Check[client.Object](t, "objects", newProxy(nil).Service(), deployment(values, files))
}

// A control plane's certificate is signed by the authority of the proxy, of which nothing but the certificate reaches
// its namespace.
func TestControlPlanesShareTheAuthority(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if err := New(c, Values{Image: "vpn:v1"}).Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	authority, err := Authority(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	generate := func() *corev1.Secret {
		manager, err := secrets.New(t.Context(), c, "shoot--demo--fleet",
			secrets.Options{Authorities: map[string]*corev1.Secret{component.CAEgress: authority}})
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := manager.Generate(t.Context(), secrets.CertificateConfig{
			Name: "client", CommonName: "shoot--demo--fleet", CertType: secrets.ClientCert,
			SigningCA: component.CAEgress,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := manager.Cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	first := generate()
	if second := generate(); second.Name != first.Name {
		t.Errorf("a second run made %s, the first %s", second.Name, first.Name)
	}
	if !bytes.Equal(first.Data[secrets.DataKeyCertificateCA], authority.Data[secrets.DataKeyCertificateCA]) {
		t.Error("another authority signed it")
	}
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list, client.InNamespace("shoot--demo--fleet")); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(list.Items,
		func(s corev1.Secret) bool { return len(s.Data[secrets.DataKeyPrivateKeyCA]) > 0 }) {
		t.Error("the key of the authority reached the control plane's namespace")
	}
	if again, err := Authority(t.Context(), c); err != nil || again.Name != authority.Name {
		t.Errorf("the authority changed: %v, %v", again, err)
	}
}
