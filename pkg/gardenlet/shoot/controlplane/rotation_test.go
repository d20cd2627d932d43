package controlplane

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// A stage that was noted counts for the change that it was noted for only.
func TestStageIsRemembered(t *testing.T) {
	c := &ControlPlane{Plan: plantest.New(t, func(in *plan.Inputs) {
		in.Shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{
			EncryptionAtRest: &gardencorev1beta1.EncryptionAtRest{
				Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "secretbox"},
			},
		}
	})}
	deployment := &appsv1.Deployment{ObjectMeta: c.Plan.Meta(kubeapiserver.Name)}
	c.Seed = fake.NewClientBuilder().WithObjects(deployment).Build()
	expect := func(want encryption.Stage) {
		t.Helper()
		if got, err := c.encryptionStage(t.Context()); err != nil || got != want {
			t.Errorf("the stage is %q, %v; want %q", got, err, want)
		}
	}
	expect(encryption.Preparing)
	if err := c.noteEncryptionStage(t.Context(), encryption.Rewriting); err != nil {
		t.Fatal(err)
	}
	expect(encryption.Rewriting)
	c.Plan.Rotation.Encryption.From.Resources = []string{"secrets", "configmaps"}
	expect(encryption.Preparing)
}

// A service account key, and a token that it signed.
func signed(t *testing.T) (publicKey []byte, token string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	const unsigned = "eyJhbGciOiJSUzI1NiJ9.e30"
	sum := sha256.Sum256([]byte(unsigned))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// keyring has one key.
type keyring struct {
	secrets.Manager
	publicKey []byte
}

func (k keyring) Get(string, ...secrets.GetOption) (*corev1.Secret, bool) {
	return &corev1.Secret{Data: map[string][]byte{secrets.DataKeyRSAPublicKey: k.publicKey}}, true
}

func TestTokensAreRenewed(t *testing.T) {
	publicKey, newToken := signed(t)
	_, oldToken := signed(t)
	c := &ControlPlane{Plan: plantest.New(t)}
	secret := func(name, token string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: c.Plan.Meta(name), Data: map[string][]byte{"token": []byte(token)}}
		s.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor"}
		s.Annotations = map[string]string{
			"serviceaccount.resources.gardener.cloud/token-renew-timestamp": "2027-01-15T08:00:00Z",
		}
		return s
	}
	old := secret("old", oldToken)
	c.Seed, c.Secrets = fake.NewClientBuilder().WithObjects(old, secret("new", newToken), secret("empty", "")).Build(),
		keyring{publicKey: publicKey}
	if err := c.renewTokens(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "new key: old; is resource-manager running?") {
		t.Errorf("error = %v, want one that names the Secret old", err)
	}
	if err := c.Seed.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || len(old.Annotations) > 0 {
		t.Errorf("the token is not to be renewed: %v, %v", old.Annotations, err)
	}
	old.Data["token"] = []byte(newToken)
	if err := c.Seed.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := c.renewTokens(t.Context()); err != nil {
		t.Error(err)
	}
}
