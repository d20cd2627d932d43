package publication

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// withKeys is a publication whose secrets are there, after a rotation of the SSH key pair at a time (the zero time
// for none).
func withKeys(t *testing.T, seed client.Client, change func(*plan.Inputs), rotated time.Time) *Publication {
	t.Helper()
	plan := plantest.New(t, func(in *plan.Inputs) {
		change(in)
		if !rotated.IsZero() {
			in.Shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					SSHKeypair: &gardencorev1beta1.ShootSSHKeypairRotation{
						LastInitiationTime: &metav1.Time{Time: rotated},
					},
				},
			}
		}
	})
	manager, err := secrets.New(t.Context(), seed, plan.Namespace,
		secrets.Options{RotationInitiation: plan.Rotation.Initiated})
	if err != nil {
		t.Fatal(err)
	}
	o := &Publication{
		Shoot: plan.Identity, Workerless: plan.Workerless, SSHAccess: plan.SSHAccess, Secrets: manager,
		Garden: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(),
	}
	if err := o.GenerateSSHKeypair(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	return o
}

// published reads a Secret of the garden; nil if there is none.
func published(t *testing.T, o *Publication, suffix string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: o.Shoot.GardenMeta(suffix)}
	if err := o.Garden.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		t.Fatal(err)
	}
	return secret
}

func TestUsersGetTheKeyThatMachinesLetIn(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	o := withKeys(t, seed, func(*plan.Inputs) {}, time.Time{})
	if err := o.publishSSHKeypair(t.Context()); err != nil {
		t.Fatal(err)
	}
	secret := published(t, o, "ssh-keypair")
	signer, err := ssh.ParsePrivateKey(secret.Data["id_rsa"])
	if err != nil {
		t.Fatal(err)
	}
	keys, err := o.AuthorizedKeys()
	if err != nil || len(keys) != 1 || keys[0] != string(ssh.MarshalAuthorizedKey(signer.PublicKey())) ||
		keys[0] != string(secret.Data["id_rsa.pub"]) {
		t.Errorf("machines let in %q, %v", keys, err)
	}
	if published(t, o, "ssh-keypair.old") != nil {
		t.Error("there is an old key before any rotation")
	}

	after := withKeys(t, seed, func(*plan.Inputs) {}, time.Now().Add(time.Minute))
	after.Garden = o.Garden
	if err := after.publishSSHKeypair(t.Context()); err != nil {
		t.Fatal(err)
	}
	both, err := after.AuthorizedKeys()
	if err != nil || len(both) != 2 || both[1] != keys[0] || both[0] == keys[0] {
		t.Errorf("after a rotation machines let in %q, %v", both, err)
	}
	if old := published(t, after, "ssh-keypair.old"); old == nil || string(old.Data["id_rsa.pub"]) != keys[0] {
		t.Errorf("the old key is %v", old)
	}
}

func TestWithoutSSHAccessThereIsNoKey(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	before := withKeys(t, seed, func(*plan.Inputs) {}, time.Time{})
	if err := before.publishSSHKeypair(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := withKeys(t, seed, func(in *plan.Inputs) {
		in.Shoot.Spec.Provider.WorkersSettings = &gardencorev1beta1.WorkersSettings{
			SSHAccess: &gardencorev1beta1.SSHAccess{Enabled: false},
		}
	}, time.Time{})
	o.Garden = before.Garden
	if err := o.publishSSHKeypair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys, err := o.AuthorizedKeys(); err != nil || len(keys) != 0 {
		t.Errorf("machines let in %q, %v", keys, err)
	}
	if published(t, o, "ssh-keypair") != nil {
		t.Error("the key is left in the garden")
	}
}
