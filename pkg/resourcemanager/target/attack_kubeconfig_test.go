package target

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackKubeconfigToResourceManager plays an extension that writes Secrets in the namespace of a shoot: it puts a
// kubeconfig in the place of gardenlet's, by which resource-manager, who has all rights in the seed, would show its
// token or run a command.
func TestAttackKubeconfigToResourceManager(t *testing.T) {
	loot := hostile.NewLoot(t)
	for what, kubeconfig := range loot.Kubeconfigs {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName},
			Data:       map[string][]byte{SecretKey: kubeconfig},
		}
		target, err := NewStaticRegistry(fake.NewClientBuilder().WithObjects(secret).Build()).Shoot(t.Context(), "ns")
		if err == nil {
			t.Errorf("%s: the kubeconfig is used: %v", what, target.Ready(t.Context()))
		}
	}
	loot.Taken(t)
}
