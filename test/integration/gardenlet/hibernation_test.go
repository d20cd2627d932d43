package gardenlet

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// testHibernation creates a fleet that sleeps, wakes it up, puts it to sleep again, and deletes it in its sleep.
func testHibernation(t *testing.T) {
	shoot := example(t, "shoot-fleet")
	shoot.Name = "sleeper"
	shoot.Spec.DNS = nil
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	create(t, shoot)
	succeeded(t, shoot)
	checkAsleep(t, shoot)

	hibernate(t, shoot, false)
	succeeded(t, shoot)
	checkAwake(t, shoot)

	hibernate(t, shoot, true)
	succeeded(t, shoot)
	checkAsleep(t, shoot)
	deleted(t, shoot)
}

// hibernate says whether a shoot is to sleep.
func hibernate(t *testing.T, shoot *gardencorev1beta1.Shoot, enabled bool) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"hibernation":{"enabled":%t}}}`, enabled))
	if err := c.Patch(context.Background(), shoot, patch); err != nil {
		t.Fatal(err)
	}
}

func checkAsleep(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	if !shoot.Status.IsHibernated {
		t.Error("status.hibernated is false")
	}
	checkReplicas(t, shoot.Status.TechnicalID, 0)
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		for _, wanted := range []gardencorev1beta1.ConditionType{
			gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ShootControlPlaneHealthy,
			gardencorev1beta1.ShootSystemComponentsHealthy,
		} {
			if found := conditions.Get(shoot.Status.Conditions, wanted); found == nil ||
				found.Status != gardencorev1beta1.ConditionTrue || found.Reason != "ConditionNotChecked" {
				return fmt.Errorf("%s is %+v", wanted, found)
			}
		}
		return nil
	})
	records := &extensionsv1alpha1.DNSRecordList{}
	if err := c.List(context.Background(), records, client.InNamespace(shoot.Status.TechnicalID)); err != nil ||
		len(records.Items) != 0 {
		t.Errorf("%d DNS records are left, %v", len(records.Items), err)
	}
}

func checkAwake(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	if shoot.Status.IsHibernated {
		t.Error("status.hibernated is true")
	}
	checkReplicas(t, shoot.Status.TechnicalID, 1)
}

// checkReplicas looks at all parts of a control plane.
func checkReplicas(t *testing.T, namespace string, want int32) {
	t.Helper()
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := get(deployment); err != nil || *deployment.Spec.Replicas != want {
			t.Errorf("Deployment %s has %d replicas, want %d (%v)", name, ptr.Deref(deployment.Spec.Replicas, -1), want,
				err)
		}
	}
	for _, name := range []string{"etcd-main", "etcd-events"} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := get(set); err != nil || *set.Spec.Replicas != want {
			t.Errorf("StatefulSet %s has %d replicas, want %d (%v)", name, ptr.Deref(set.Spec.Replicas, -1), want, err)
		}
	}
}
