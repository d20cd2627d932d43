package resourcemanager

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

// The approvers of a shoot are looked at again with its kubeconfig, and when it becomes a fleet or is none any more.
// Only the former makes the way to the shoot another one.
func TestSecretsOfApprovers(t *testing.T) {
	const kubeconfig = `{"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`
	targets := target.NewStaticRegistry(fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: target.SecretName},
		Data:       map[string][]byte{target.SecretKey: []byte(kubeconfig)},
	}).Build())
	for name, tc := range map[string]struct{ concerns, forgets bool }{
		target.SecretName:          {true, true},
		fleetv1alpha1.AccessSecret: {true, false},
		"cloudprovider":            {false, false},
	} {
		secret := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, ResourceVersion: "another"},
		}
		if got := concernsApprovers(secret); got != tc.concerns {
			t.Errorf("%s concerns approvers: %t", name, got)
		}
		before, err := targets.Shoot(t.Context(), "shoot")
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(targetOf(targets)(t.Context(), secret)); tc.concerns &&
			got != "[shoot/"+target.SecretName+"]" {
			t.Errorf("%s leads to %s", name, got)
		}
		if forgotten := before.Context().Err() != nil; forgotten != tc.forgets {
			t.Errorf("%s has the target forgotten: %t", name, forgotten)
		}
	}
}
