package federation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func TestMembersAreDescribed(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	for _, name := range memberNames {
		w.ready(t, name, metav1.ConditionTrue, "ClusterReady", func(cluster *clusterv1alpha1.Cluster) error {
			if cluster.Status.KubernetesVersion == "" || len(cluster.Status.APIEnablements) == 0 ||
				cluster.Status.NodeSummary == nil {
				return fmt.Errorf("status %+v", cluster.Status)
			}
			return nil
		})
	}
}

func TestMemberLeaves(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, input(t, "003-karmada-cool-policy")[0], input(t, "000-karmada-nginx-3docs")[0])
	w.replicasIn(t, namespace, 2, 2)
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.fleet.Get(ctx, types.NamespacedName{Name: "member2"}, cluster); err != nil {
		t.Fatal(err)
	}
	remove(t, w.fleet, cluster)
	w.replicasIn(t, namespace, 2, -1)
	eventually(t, "the cluster is gone", func() error {
		return wantGone(w.fleet.Get(ctx, types.NamespacedName{Name: "member2"}, cluster))
	})

	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("member2"))
	back := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member2"}, Spec: cluster.Spec}
	back.Spec.Taints = nil
	eventually(t, "the cluster may come back", func() error { return w.fleet.Create(ctx, back) })
}

// finalizeNamespace does what a fleet's namespace controller would.
func (w *world) finalizeNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := w.fleet.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.DeletionTimestamp == nil {
		t.Fatalf("namespace %s is not being deleted", name)
	}
	namespace.Spec.Finalizers = nil
	if err := w.fleet.SubResource("finalize").Update(ctx, namespace); err != nil {
		t.Fatal(err)
	}
}
