package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackKubeconfigToExtensions plays an extension that would have the token of another one that works for the same
// shoot.
func TestAttackKubeconfigToExtensions(t *testing.T) {
	loot := hostile.NewLoot(t)
	for what, kubeconfig := range loot.Kubeconfigs {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: internalSecret},
			Data:       map[string][]byte{"kubeconfig": kubeconfig},
		}
		config, err := RESTConfig(t.Context(), fake.NewClientBuilder().WithObjects(secret).Build(), "shoot--a--b")
		if err == nil {
			_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			t.Errorf("%s: the kubeconfig is used: %v", what, err)
		}
	}
	loot.Taken(t)
}
