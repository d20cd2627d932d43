package vpnseedserver

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

func values() Values {
	return Values{
		Image: "vpn:v1", Replicas: 1, NodeNetworks: []string{"10.180.0.0/24"}, PodNetworks: []string{"10.3.0.0/16"},
		ServiceNetworks: []string{"10.4.0.0/16"}, ClusterDNS: "10.4.0.10",
	}
}

func TestObjects(t *testing.T) {
	files := []component.SecretFiles{
		{Secret: "vpn-seed-server-11111111", Files: map[string]string{"tls.crt": "tls/tls.crt"}},
	}
	golden.Check[client.Object](t, "objects", service(namespace, "cHVibGlj"), deployment(namespace, values(), files))
}

func TestBothEndsKnowEachOther(t *testing.T) {
	of := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	c := fake.NewClientBuilder().WithObjects(of).Build()
	manager, err := secrets.New(t.Context(), c, namespace, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager,
		[]string{component.CAVPN}); err != nil {
		t.Fatal(err)
	}
	if err := New(c, namespace, manager, values()).Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	private, seedPublic, err := ShootKeys(t.Context(), manager)
	if err != nil {
		t.Fatal(err)
	}
	shoot, _ := manager.Get(ShootKeysName)
	if !bytes.Equal(private, shoot.Data[secrets.DataKeyWireGuardPrivateKey]) {
		t.Error("the shoot's private key is not the one whose public key the seed has")
	}
	service := &corev1.Service{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: Name}, service); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{service, of} {
		if object.GetAnnotations()[vpnv1alpha1.AnnotationPublicKey] != string(seedPublic) {
			t.Errorf("the gateway is told another public key than the shoot by the %T", object)
		}
	}
}
