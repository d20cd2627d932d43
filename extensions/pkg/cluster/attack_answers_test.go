package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/test/hostile"
)

// TestAttackEndlessAnswersToExtensions plays the owner of a shoot who would fill the memory of an extension that serves
// all shoots of the seed.
func TestAttackEndlessAnswersToExtensions(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: internalSecret},
		Data:       map[string][]byte{"kubeconfig": hostile.Shoot(t)},
	}
	shoot, err := ShootClient(t.Context(), fake.NewClientBuilder().WithObjects(secret).Build(), "shoot--a--b",
		clientgoscheme.Scheme)
	if err == nil {
		err = shoot.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{})
	}
	if err == nil || !strings.Contains(err.Error(), hostile.Refused) {
		t.Errorf("got %v", err)
	}
}
