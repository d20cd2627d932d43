package seedconditions

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

func TestShootShowsTheConditionsOfItsSeed(t *testing.T) {
	ctx := context.Background()
	condition := func(t gardencorev1beta1.ConditionType,
		status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Condition {
		return gardencorev1beta1.Condition{Type: t, Status: status}
	}
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "eu"}}
	shoot.Status.Conditions = []gardencorev1beta1.Condition{
		condition(gardencorev1beta1.ShootAPIServerAvailable, "True"),
		condition(gardencorev1beta1.SeedBackupBucketsReady, "False"),
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	seed.Status.Conditions = []gardencorev1beta1.Condition{condition(gardencorev1beta1.SeedGardenletReady, "Unknown")}
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "eu", Finalizers: []string{"gardener"}},
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "eu"}},
	}
	c := indextest.NewClientBuilder().WithObjects(shoot, seed, managedSeed).WithStatusSubresource(shoot, seed).Build()
	r := &Reconciler{Client: c, Now: time.Now}
	statuses := func() map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus {
		t.Helper()
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "eu"}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			t.Fatal(err)
		}
		found := map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus{}
		for _, condition := range shoot.Status.Conditions {
			found[condition.Type] = condition.Status
		}
		return found
	}
	if got := statuses(); len(got) != 2 || got[gardencorev1beta1.ShootAPIServerAvailable] != "True" ||
		got[gardencorev1beta1.SeedGardenletReady] != "Unknown" {
		t.Errorf("conditions = %v", got)
	}
	if err := c.Delete(ctx, managedSeed); err != nil {
		t.Fatal(err)
	}
	if got := statuses(); len(got) != 1 {
		t.Errorf("conditions = %v, want only its own", got)
	}
}
