package seed

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestSilentGardenlet(t *testing.T) {
	tests := map[string]struct {
		registered, heartbeat time.Duration // ago; no heartbeat when zero
		want                  gardencorev1beta1.ConditionStatus
		again                 time.Duration
	}{
		"heartbeat in time": {
			time.Hour, 10 * time.Second, gardencorev1beta1.ConditionTrue, 30 * time.Second,
		},
		"heartbeat overdue": {
			time.Hour, time.Minute, gardencorev1beta1.ConditionUnknown, 40 * time.Second,
		},
		"new, before the first heartbeat":     {5 * time.Second, 0, gardencorev1beta1.ConditionTrue, 35 * time.Second},
		"old, and never heard a heartbeat of": {time.Hour, 0, gardencorev1beta1.ConditionUnknown, 40 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seed := &gardencorev1beta1.Seed{
				ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(now.Add(-test.registered))},
			}
			seed.Status.Conditions = []gardencorev1beta1.Condition{
				{Type: gardencorev1beta1.SeedGardenletReady, Status: gardencorev1beta1.ConditionTrue},
			}
			objects := []client.Object{seed}
			if test.heartbeat > 0 {
				renewed := metav1.NewMicroTime(now.Add(-test.heartbeat))
				objects = append(objects, &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: "a"},
					Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
				})
			}
			c := indextest.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(seed).Build()
			r := &Reconciler{
				Client: c, Leases: c, GracePeriod: DefaultGracePeriod, Now: func() time.Time { return now },
			}

			result, err := r.Reconcile(context.Background(),
				reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seed)})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != test.again {
				t.Errorf("looks again after %v, want %v", result.RequeueAfter, test.again)
			}
			if err := c.Get(context.Background(), client.ObjectKeyFromObject(seed), seed); err != nil {
				t.Fatal(err)
			}
			if got := seed.Status.Conditions[0].Status; got != test.want {
				t.Errorf("GardenletReady = %s, want %s", got, test.want)
			}
		})
	}
}

func TestShootsOfASilentSeedAreUnknown(t *testing.T) {
	ctx := context.Background()
	condition := func(status gardencorev1beta1.ConditionStatus) []gardencorev1beta1.Condition {
		return []gardencorev1beta1.Condition{{Type: gardencorev1beta1.ShootAPIServerAvailable, Status: status}}
	}
	shoot := func(name, seed string) *gardencorev1beta1.Shoot {
		return &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: name},
			Status: gardencorev1beta1.ShootStatus{
				SeedName: &seed, Conditions: condition(gardencorev1beta1.ConditionTrue),
				Constraints: condition(gardencorev1beta1.ConditionTrue),
			},
		}
	}
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
	}
	c := indextest.NewClientBuilder().WithObjects(seed, shoot("here", "a"),
		shoot("there", "b")).WithStatusSubresource(seed, &gardencorev1beta1.Shoot{}).Build()
	r := &Reconciler{
		Client: c, Leases: c, GracePeriod: DefaultGracePeriod, ShootGracePeriod: DefaultShootGracePeriod,
		Now: func() time.Time { return now },
	}
	if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seed)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]gardencorev1beta1.ConditionStatus{
		"here": gardencorev1beta1.ConditionUnknown, "there": gardencorev1beta1.ConditionTrue,
	} {
		found := &gardencorev1beta1.Shoot{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "garden-demo", Name: name}, found); err != nil {
			t.Fatal(err)
		}
		if found.Status.Conditions[0].Status != want || found.Status.Constraints[0].Status != want {
			t.Errorf("%s: conditions %v, constraints %v; want %s", name, found.Status.Conditions,
				found.Status.Constraints, want)
		}
	}
}
