package access

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackKubeconfigToGardenlet plays an extension that writes Secrets in the namespace of a shoot: by a kubeconfig
// there gardenlet, who has all rights in the seed, would show its token or run a command.
func TestAttackKubeconfigToGardenlet(t *testing.T) {
	loot := hostile.NewLoot(t)
	for what, kubeconfig := range loot.Kubeconfigs {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: kubeapiserver.InternalKubeconfigSecret},
			Data:       map[string][]byte{secrets.DataKeyKubeconfig: kubeconfig},
		}
		clientset, err := Clientset(t.Context(), fake.NewClientBuilder().WithObjects(secret).Build(), "shoot--a--b")
		if err == nil {
			_, err := clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			t.Errorf("%s: the kubeconfig is used: %v", what, err)
		}
	}
	loot.Taken(t)
}
