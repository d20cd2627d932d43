package vpnshoot

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func values() Values {
	return Values{
		Image: "vpn:v1", Endpoint: "gateway.local.trellis.garden:51820",
		Keys: Keys{PrivateKey: []byte("private"), SeedPublicKey: []byte("public")},
	}
}

func pair() Values {
	v := values()
	v.Second = &Keys{PrivateKey: []byte("second private"), SeedPublicKey: []byte("second public")}
	return v
}

func TestObjects(t *testing.T) {
	golden.Check(t, "objects", Objects(values())...)
	golden.Check(t, "second", Objects(pair())[2:]...)
}

// Where a second path comes, the pod of the first stays, and so does its tunnel.
func TestTheFirstPathStaysWhenASecondComes(t *testing.T) {
	one, two := Objects(values()), Objects(pair())
	if len(two) != 2*len(one) || !apiequality.Semantic.DeepEqual(one, two[:len(one)]) {
		t.Errorf("the first path is replaced: %v", two)
	}
}

// Root on a node with one end of a tunnel has the keys of that one.
func TestAttackKeysOfTheOtherPath(t *testing.T) {
	objects := Objects(pair())
	for i, private := range []string{"private", "second private"} {
		secret := objects[2*i].(*corev1.Secret)
		if string(secret.Data["private-key"]) != private {
			t.Errorf("Secret %s has private key %q", secret.Name, secret.Data["private-key"])
		}
		deployment := objects[2*i+1].(*appsv1.Deployment)
		for _, source := range deployment.Spec.Template.Spec.Volumes[0].Projected.Sources {
			if source.Secret.Name != secret.Name {
				t.Errorf("%s mounts %s", deployment.Name, source.Secret.Name)
			}
		}
	}
}
