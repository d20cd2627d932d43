package seed

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/egress"
)

// caring is the care for Seed one, whose system consists of these Deployments and whose Lease was just renewed.
func caring(t *testing.T, funcs interceptor.Funcs, deployments ...string) *Care {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{gardencorev1beta1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&gardencorev1beta1.Seed{}).
		WithObjects(&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}).
		WithInterceptorFuncs(funcs).Build()
	seed := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range deployments {
		seed.WithObjects(&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: name},
			Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		})
	}
	lease := &Lease{}
	lease.renewed.Store(time.Now().UnixNano())
	return &Care{Garden: garden, System: &System{Seed: seed.Build()}, Lease: lease, Period: time.Minute}
}

func (c *Care) look(t *testing.T, name string) (reconcile.Result, error) {
	t.Helper()
	return c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
}

func TestSeedsAreLookedAtByTheClock(t *testing.T) {
	ready := caring(t, interceptor.Funcs{}, resourceManagerName, egress.Name)
	if result, err := ready.look(t, "one"); err != nil || result.RequeueAfter != ready.Period {
		t.Errorf("ready: %+v, %v", result, err)
	}
	seed := &gardencorev1beta1.Seed{}
	if err := ready.Garden.Get(t.Context(), key("one"), seed); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []gardencorev1beta1.ConditionType{
		gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.SeedSystemComponentsHealthy,
	} {
		if c := conditions.Get(seed.Status.Conditions, kind); c == nil ||
			c.Status != gardencorev1beta1.ConditionTrue {
			t.Errorf("condition %s: %+v", kind, c)
		}
	}
	if result, err := ready.look(t, "gone"); err != nil || !result.IsZero() {
		t.Errorf("gone: %+v, %v", result, err)
	}
	if result, err := caring(t, interceptor.Funcs{}, egress.Name).look(t, "one"); err != nil ||
		result.RequeueAfter != CareRetry {
		t.Errorf("not ready: %+v, %v", result, err)
	}
	broken := caring(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return errors.New("the garden is away")
		},
	}, resourceManagerName, egress.Name)
	if _, err := broken.look(t, "one"); err == nil {
		t.Error("conditions that could not be written are not tried again")
	}
}
