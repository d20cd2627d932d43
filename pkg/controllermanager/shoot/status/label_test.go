package status

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestLabelFollowsTheStatus(t *testing.T) {
	ctx := context.Background()
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	r := &Reconciler{
		Client: fake.NewClientBuilder().
			WithScheme(apis.GardenScheme()).WithObjects(shoot).WithStatusSubresource(shoot).Build(),
	}
	for _, step := range []struct {
		last *gardencorev1beta1.LastOperation
		want string
	}{
		{nil, ""},
		{&gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateProcessing}, "progressing"},
		{&gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}, "healthy"},
	} {
		shoot.Status.LastOperation = step.last
		if err := r.Client.Status().Update(ctx, shoot); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(ctx, reconcile.Request{
			NamespacedName: client.ObjectKeyFromObject(shoot),
		}); err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			t.Fatal(err)
		}
		if got := shoot.Labels[gardencorev1beta1.LabelShootStatus]; got != step.want {
			t.Errorf("label = %q, want %q", got, step.want)
		}
	}
}
