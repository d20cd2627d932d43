package target

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackEndlessAnswersToResourceManager plays the owner of a shoot who would fill the memory of what cares for all
// shoots of the seed.
func TestAttackEndlessAnswersToResourceManager(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName},
		Data:       map[string][]byte{SecretKey: hostile.Shoot(t)},
	}
	target := shoot(t, NewStaticRegistry(fake.NewClientBuilder().WithObjects(secret).Build()))
	for what, err := range map[string]error{
		"the probe": target.Ready(t.Context()),
		"an object": target.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"},
			&corev1.ConfigMap{}),
		"the clientset": second(target.Kubernetes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})),
	} {
		if err == nil || !strings.Contains(err.Error(), hostile.Refused) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
