package shoot

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// phases are the phases of a rotation in order.
var phases = []gardencorev1beta1.CredentialsRotationPhase{
	"", gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationPreparingWithoutWorkersRollout, gardencorev1beta1.RotationWaitingForWorkersRollout,
	gardencorev1beta1.RotationPrepared, gardencorev1beta1.RotationCompleting, gardencorev1beta1.RotationCompleted,
}

func TestPlanOfRotations(t *testing.T) {
	at := metav1.Unix(1_800_000_000, 0)
	// Per phase: keep the old one, change what the API server presents or trusts, renew tokens, stage of encryption.
	wanted := [][4]string{
		{"", "", "", ""}, {"keep", "replace", "renew", "Preparing"}, {"keep", "replace", "renew", "Preparing"}, {"keep", "", "", ""},
		{"keep", "", "", "Rewriting"}, {"", "replace", "", "Completing"}, {"", "", "", ""},
	}
	for i, phase := range phases {
		plan := planRotation(&gardencorev1beta1.ShootStatus{Credentials: &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &at},
			ServiceAccountKey:      &gardencorev1beta1.ServiceAccountKeyRotation{Phase: phase},
			ETCDEncryptionKey:      &gardencorev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
		}}}, encryption.Scheme{})
		word := func(is bool, what string) string {
			if is {
				return what
			}
			return ""
		}
		got := [4]string{word(plan.KeepOldAuthorities && plan.KeepOldServiceAccountKey, "keep"), word(plan.ReplacesAuthorities, "replace"), word(plan.RenewsTokens, "renew"), string(plan.Encryption.stage(""))}
		if got != wanted[i] {
			t.Errorf("phase %q means %q, want %q", phase, got, wanted[i])
		}
		if !plan.Initiated[component.CAVPN].Equal(at.Time) || len(plan.Initiated) != len(component.CertificateAuthorities(false)) {
			t.Errorf("phase %q: the rotations began at %v", phase, plan.Initiated)
		}
	}
}

func TestStageOfEncryption(t *testing.T) {
	changed := &encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"secrets"}}
	for _, test := range []struct {
		name    string
		plan    EncryptionPlan
		reached encryption.Stage
		want    string
	}{
		{"another scheme", EncryptionPlan{From: changed}, "", "Preparing until "},
		{"another scheme, stopped", EncryptionPlan{From: changed}, encryption.Rewriting, "Rewriting until "},
		{"another scheme, stopped at its end", EncryptionPlan{From: changed}, encryption.Completed, "Completed until "},
		{"another key", EncryptionPlan{Phase: gardencorev1beta1.RotationPreparing}, "", "Preparing until Rewriting"},
		{"another key, stopped", EncryptionPlan{Phase: gardencorev1beta1.RotationPreparing}, encryption.Rewriting, "Rewriting until Rewriting"},
		{"completed", EncryptionPlan{Phase: gardencorev1beta1.RotationCompleted}, encryption.Rewriting, " until "},
	} {
		if got := string(test.plan.stage(test.reached)) + " until " + string(test.plan.until()); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestSchemeBefore(t *testing.T) {
	applied := &gardencorev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}, Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "aescbc"}}
	same := encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"configmaps", "secrets"}}
	if before := schemeBefore(applied, same); before != nil {
		t.Errorf("nothing changes, but before there was %v", before)
	}
	if before := schemeBefore(nil, same); before != nil {
		t.Errorf("nothing was stored, but as %v", before)
	}
	less := encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"secrets"}}
	if before := schemeBefore(applied, less); before == nil || !before.Equal(same) {
		t.Errorf("before there was %v, want %v", before, same)
	}
	if status := encryptionAtRest(same); !strings.EqualFold(strings.Join(status.Resources, ","), "configmaps") || status.Provider.Type != "aescbc" {
		t.Errorf("the status tells %+v", status)
	}
}

// A stage that was noted counts for the change that it was noted for only.
func TestStageIsRemembered(t *testing.T) {
	o := operation(t, func(in *Inputs) {
		in.Shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{EncryptionAtRest: &gardencorev1beta1.EncryptionAtRest{Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "secretbox"}}}
	})
	deployment := &appsv1.Deployment{ObjectMeta: o.meta(kubeapiserver.Name)}
	o.Seed = fake.NewClientBuilder().WithObjects(deployment).Build()
	expect := func(want encryption.Stage) {
		t.Helper()
		if got, err := o.encryptionStage(t.Context()); err != nil || got != want {
			t.Errorf("the stage is %q, %v; want %q", got, err, want)
		}
	}
	expect(encryption.Preparing)
	if err := o.noteEncryptionStage(t.Context(), encryption.Rewriting); err != nil {
		t.Fatal(err)
	}
	expect(encryption.Rewriting)
	o.Plan.Rotation.Encryption.From.Resources = []string{"secrets", "configmaps"}
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
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
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
	o := operation(t, func(*Inputs) {})
	secret := func(name, token string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: o.meta(name), Data: map[string][]byte{"token": []byte(token)}}
		s.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor"}
		s.Annotations = map[string]string{"serviceaccount.resources.gardener.cloud/token-renew-timestamp": "2027-01-15T08:00:00Z"}
		return s
	}
	old := secret("old", oldToken)
	o.Seed, o.secrets = fake.NewClientBuilder().WithObjects(old, secret("new", newToken), secret("empty", "")).Build(), keyring{publicKey: publicKey}
	if err := o.renewTokens(t.Context()); err == nil || !strings.Contains(err.Error(), "new key: old; is resource-manager running?") {
		t.Errorf("error = %v, want one that names the Secret old", err)
	}
	if err := o.Seed.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || len(old.Annotations) > 0 {
		t.Errorf("the token is not to be renewed: %v, %v", old.Annotations, err)
	}
	old.Data["token"] = []byte(newToken)
	if err := o.Seed.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := o.renewTokens(t.Context()); err != nil {
		t.Error(err)
	}
}

// Operations are taken out of the annotation when the status has them; what is not ours stays.
func TestOperationsAreTaken(t *testing.T) {
	shoot := inputs().Shoot
	shoot.ResourceVersion = ""
	shoot.Annotations = map[string]string{gardencorev1beta1.GardenerOperation: "rotate-ca-start;rollout-workers=a"}
	garden := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(shoot).WithStatusSubresource(shoot).Build()
	read := func() *gardencorev1beta1.Shoot {
		t.Helper()
		current := &gardencorev1beta1.Shoot{}
		if err := garden.Get(context.Background(), client.ObjectKeyFromObject(shoot), current); err != nil {
			t.Fatal(err)
		}
		return current
	}
	before := read()
	for range 2 {
		taken, err := takeOperations(t.Context(), newStatusWriter(garden, before), before)
		if err != nil {
			t.Fatal(err)
		}
		if taken.Status.Credentials.Rotation.CertificateAuthorities.Phase != gardencorev1beta1.RotationPreparing {
			t.Errorf("the rotation is %+v", taken.Status.Credentials.Rotation)
		}
		before = read()
		if got := before.Annotations[gardencorev1beta1.GardenerOperation]; got != "rollout-workers=a" {
			t.Errorf("left is %q", got)
		}
	}
}

func TestSuccessIsTold(t *testing.T) {
	o := operation(t, func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{EncryptionConfig: &gardencorev1beta1.EncryptionConfig{
			Resources: []string{"configmaps"}, Provider: gardencorev1beta1.EncryptionProvider{Type: ptr.To(gardencorev1beta1.EncryptionProviderTypeAESGCM)},
		}}
	})
	status := &gardencorev1beta1.ShootStatus{Credentials: &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: gardencorev1beta1.RotationCompleting},
	}}}
	o.succeeded(metav1.NewTime(time.Unix(1_800_000_000, 0)))(status)
	if phase := status.Credentials.Rotation.CertificateAuthorities.Phase; phase != gardencorev1beta1.RotationCompleted {
		t.Errorf("the phase is %s", phase)
	}
	if applied := status.Credentials.EncryptionAtRest; applied.Provider.Type != "aesgcm" || len(applied.Resources) != 1 || applied.Resources[0] != "configmaps" {
		t.Errorf("encryption at rest is %+v", applied)
	}
}
