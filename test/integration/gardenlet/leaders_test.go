package gardenlet

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager"
)

// TestOneResourceManagerWorks ends the one of two resource-managers that works: the other one, which had done nothing,
// goes on. Each leaves its name on what it applies.
func TestOneResourceManagerWorks(t *testing.T) {
	admin := seedForManagedResources(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenNamespace}}
	if err := admin.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	electing := func(name string) (stop func()) {
		return start(t, name, func(ctx context.Context) error {
			return resourcemanager.Run(ctx, env.Config, resourcemanager.Options{
				ClusterID: name, SyncPeriod: time.Minute, Concurrency: 1, HealthAddress: "0", MetricsAddress: "0",
				LeaderElection: true, SkipNameValidation: true,
			})
		})
	}
	end := electing("first")
	holder := leaderOtherThan(t, admin, "resource-manager", "")
	electing("second")
	applied := applyForLeader(t, admin, "before")
	eventually(t, func() error { return isAppliedBy(admin, applied, "first") })
	end()
	leaderOtherThan(t, admin, "resource-manager", holder)
	applied = applyForLeader(t, admin, "after")
	eventually(t, func() error { return isAppliedBy(admin, applied, "second") })
}

// leaderOtherThan waits until another one than before has a lease.
func leaderOtherThan(t *testing.T, admin client.Client, name, before string) (holder string) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: gardencorev1beta1.GardenNamespace, Name: name,
	}}
	eventually(t, func() error {
		if err := admin.Get(context.Background(), client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if holder = ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder == before {
			return fmt.Errorf("the leader is %q", holder)
		}
		return nil
	})
	return holder
}

// applyForLeader has a ConfigMap applied in the seed until the test ends.
func applyForLeader(t *testing.T, admin client.Client, name string) (wanted *corev1.ConfigMap) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: "leader-" + name}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: meta, Spec: resourcesv1alpha1.ManagedResourceSpec{
		Class: new(resourcesv1alpha1.ClassSeed), SecretRefs: []corev1.LocalObjectReference{{Name: meta.Name}},
	}}
	secret := &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"object.yaml": fmt.Sprintf(
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}}", meta.Namespace, meta.Name)}}
	for _, object := range []client.Object{secret, mr} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, object := range []client.Object{mr, secret} {
			if err := admin.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
			eventually(t, func() error {
				err := admin.Get(context.Background(), client.ObjectKeyFromObject(object), object)
				if !apierrors.IsNotFound(err) {
					return fmt.Errorf("%T %s is still there (%w)", object, object.GetName(), err)
				}
				return nil
			})
		}
	})
	return &corev1.ConfigMap{ObjectMeta: meta}
}

func isAppliedBy(admin client.Client, object client.Object, name string) error {
	if err := admin.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	want := fmt.Sprintf("%s:%s/%s", name, object.GetNamespace(), object.GetName())
	if got := object.GetAnnotations()[resourcesv1alpha1.OriginAnnotation]; got != want {
		return fmt.Errorf("origin is %q, want %q", got, want)
	}
	return nil
}
