package federation

import (
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// A shoot that is about to sleep is held, by a Lease in it, until what the fleet had there runs elsewhere and the old
// copy is gone.
func TestShootIsHeldUntilItIsDrained(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	w.becomesShoot(t, "member2")
	apply(t, w.fleet, namespace, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, namespace, -1, 2)
	w.healthyIn(t, namespace, "member2")
	eventually(t, "the fleet holds member2", func() error { return w.held("member2", true) })
	if err := w.held("member1", true); err == nil {
		t.Error("member1 is no shoot, but has a Lease")
	}

	w.changeCluster(t, "member2", func(c *clusterv1alpha1.Cluster) {
		taint := corev1.Taint{Key: clusterv1alpha1.TaintHibernated, Effect: corev1.TaintEffectNoExecute}
		c.Spec.Taints = append(c.Spec.Taints, taint)
	})
	w.placed(t, namespace, 1, "member1")
	w.replicasIn(t, namespace, 2, 2)
	if err := w.held("member2", true); err != nil {
		t.Errorf("while the replacement starts: %v", err)
	}
	w.healthyIn(t, namespace, "member1")
	w.replicasIn(t, namespace, 2, -1)
	eventually(t, "the fleet lets member2 sleep", func() error { return w.held("member2", false) })
}

// held tells whether a member has, or does not have, the Lease of the fleet.
func (w *world) held(name string, want bool) error {
	id, err := registration.Identity(ctx, w.fleet)
	if err != nil {
		return err
	}
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: registration.AccessName(id)}
	err = w.member[name].Get(ctx, key, lease)
	switch {
	case !want:
		return wantGone(err)
	case err == nil && lease.Labels[clusterv1alpha1.DrainLeaseLabel] != "true":
		return errors.New("the Lease has no label")
	}
	return err
}

// becomesShoot has a member be one of the project's shoots until the test ends.
func (w *world) becomesShoot(t *testing.T, name string) {
	t.Helper()
	w.changeCluster(t, name, func(c *clusterv1alpha1.Cluster) {
		metav1.SetMetaDataLabel(&c.ObjectMeta, clusterv1alpha1.ShootLabel, name)
	})
	t.Cleanup(func() {
		w.changeCluster(t, name, func(c *clusterv1alpha1.Cluster) {
			delete(c.Labels, clusterv1alpha1.ShootLabel)
			c.Spec.Taints, c.Spec.ImpersonatorSecretRef = nil, nil
		})
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = clusterv1alpha1.CredentialsNamespace, registration.ImpersonatorName(name)
		if err := client.IgnoreNotFound(w.fleet.Delete(ctx, secret)); err != nil {
			t.Error(err)
		}
	})
}

// changeCluster changes a member's Cluster, which controllers write as well.
func (w *world) changeCluster(t *testing.T, name string, change func(*clusterv1alpha1.Cluster)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := w.fleet.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
			return err
		}
		change(cluster)
		return w.fleet.Update(ctx, cluster)
	})
	if err != nil {
		t.Fatal(err)
	}
}
