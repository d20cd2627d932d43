package access

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackEndlessAnswersToGardenlet plays the owner of a shoot who would fill gardenlet's memory, and with it end
// the care for all neighbours.
func TestAttackEndlessAnswersToGardenlet(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: kubeapiserver.InternalKubeconfigSecret},
		Data:       map[string][]byte{secrets.DataKeyKubeconfig: hostile.Shoot(t)},
	}
	clientset, err := Clientset(t.Context(), fake.NewClientBuilder().WithObjects(secret).Build(), "shoot--a--b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil ||
		!strings.Contains(err.Error(), hostile.Refused) {
		t.Errorf("got %v", err)
	}
}
