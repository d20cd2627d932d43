package gardenlet

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// credentialsAreRotated goes through a rotation of everything but the key for encryption at rest, which takes an API
// server that answers. The machines are replaced at once for the authorities, and when they are asked to for the
// service account key.
func credentialsAreRotated(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	before := poolSecret(t, shoot)
	expectAuthorities(t, shoot, 1)
	operate(t, shoot, "rotate-ca-start;rotate-serviceaccount-key-start-without-workers-rollout")
	awaitPhases(t, shoot, gardencorev1beta1.RotationPrepared, gardencorev1beta1.RotationWaitingForWorkersRollout)
	expectAuthorities(t, shoot, 2)
	expectSecrets(t, shoot, "service-account-key", 2)
	during := poolSecret(t, shoot)
	if during == before {
		t.Error("the machines are not replaced")
	}

	operate(t, shoot, "rotate-rollout-workers=*")
	awaitPhases(t, shoot, gardencorev1beta1.RotationPrepared, gardencorev1beta1.RotationPrepared)
	if after := poolSecret(t, shoot); after == during {
		t.Error("the machines are not replaced for the service account key")
	}

	operate(t, shoot, "rotate-credentials-complete")
	awaitPhases(t, shoot, gardencorev1beta1.RotationCompleted, gardencorev1beta1.RotationCompleted)
	expectAuthorities(t, shoot, 1)
	expectSecrets(t, shoot, "service-account-key", 1)
	expectSecrets(t, shoot, "ca-client", 1)
	server := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: "kube-apiserver"},
	}
	if err := get(server); err != nil {
		t.Fatal(err)
	}
	for _, source := range server.Spec.Template.Spec.Volumes[0].Projected.Sources {
		if err := get(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace, Name: source.Secret.Name},
		}); err != nil {
			t.Errorf("kube-apiserver mounts what was cleaned up: %v", err)
		}
	}
	if applied := shoot.Status.Credentials.EncryptionAtRest; applied == nil ||
		applied.Provider.Type != gardencorev1beta1.EncryptionProviderTypeAESCBC {
		t.Errorf("encryption at rest is %+v", applied)
	}
}

// operate asks for operations.
func operate(t *testing.T, shoot *gardencorev1beta1.Shoot, operations string) {
	t.Helper()
	eventually(t, func() error {
		patch := client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, gardencorev1beta1.GardenerOperation, operations))
		return c.Patch(context.Background(), shoot, patch)
	})
}

// awaitPhases waits until the rotations are so far, and the operations are out of the annotation.
func awaitPhases(t *testing.T, shoot *gardencorev1beta1.Shoot,
	authorities, serviceAccountKey gardencorev1beta1.CredentialsRotationPhase) {
	t.Helper()
	succeeded(t, shoot)
	rotation := shoot.Status.Credentials.Rotation
	if rotation == nil || rotation.CertificateAuthorities.Phase != authorities ||
		rotation.ServiceAccountKey.Phase != serviceAccountKey {
		t.Fatalf("rotation is %+v, want phases %s and %s", rotation, authorities, serviceAccountKey)
	}
	if left, found := shoot.Annotations[gardencorev1beta1.GardenerOperation]; found {
		t.Errorf("operations %q are left in the annotation", left)
	}
}

// expectAuthorities checks how many certificate authorities the shoot's users are to trust.
func expectAuthorities(t *testing.T, shoot *gardencorev1beta1.Shoot, want int) {
	t.Helper()
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name + ".ca-cluster"},
	}
	if err := get(published); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(published.Data["ca.crt"], "BEGIN CERTIFICATE"); got != want {
		t.Errorf("%d authorities are published, want %d", got, want)
	}
}

// expectSecrets checks how many secrets of a name the control plane has.
func expectSecrets(t *testing.T, shoot *gardencorev1beta1.Shoot, name string, want int) {
	t.Helper()
	list := &corev1.SecretList{}
	if err := c.List(context.Background(), list, client.InNamespace(shoot.Status.TechnicalID),
		client.MatchingLabels{"name": name, "managed-by": "secrets-manager"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != want {
		t.Errorf("there are %d secrets %s, want %d", len(list.Items), name, want)
	}
}

// poolSecret names what the machines of the first pool are made from.
func poolSecret(t *testing.T, shoot *gardencorev1beta1.Shoot) string {
	t.Helper()
	worker := &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: shoot.Name},
	}
	if err := get(worker); err != nil {
		t.Fatal(err)
	}
	return *worker.Spec.Pools[0].NodeAgentSecretName
}
