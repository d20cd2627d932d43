package federation

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/csrapprover"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

// startApprover runs the part of the seed's resource-manager that approves what agents of the fleet renew, until the
// test ends.
func (w *world) startApprover(t *testing.T) {
	t.Helper()
	kubeconfig, err := os.ReadFile(kubeconfigFile(t, w.fleetConfig))
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name string, data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: name}, Data: data}
	}
	seed := fake.NewClientBuilder().WithObjects(
		secret(target.SecretName, map[string][]byte{target.SecretKey: kubeconfig}),
		secret(fleetv1alpha1.AccessSecret, nil),
	).Build()
	running, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	approver := &csrapprover.Reconciler{
		Seed: seed, Targets: target.NewStaticRegistry(seed), Context: running, Again: func(string) {},
	}
	result, err := approver.Reconcile(ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: fleetNamespace, Name: target.SecretName}})
	if err != nil || result.RequeueAfter > 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
}
