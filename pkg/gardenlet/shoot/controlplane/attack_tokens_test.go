package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackTokenToGardenlet plays an extension that writes Secrets in the namespace of a shoot, for tokens that are
// no tokens of it.
func TestAttackTokenToGardenlet(t *testing.T) {
	loot := hostile.NewLoot(t)
	for what, kubeconfig := range loot.Kubeconfigs {
		if token := tokenOf(&corev1.Secret{
			Data: map[string][]byte{secrets.DataKeyKubeconfig: kubeconfig},
		}); token != "" {
			t.Errorf("%s: gardenlet takes the token %q from it", what, token)
		}
	}
	loot.Taken(t)
}
