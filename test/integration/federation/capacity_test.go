package federation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// addNode gives a member a node, as its kubelet would.
func addNode(t *testing.T, in client.Client, name, cpu, memory string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "fast"}}}
	if err := in.Create(ctx, node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Delete(ctx, node) })
	setAllocatable(t, in, node, cpu, memory)
	return node
}

func setAllocatable(t *testing.T, in client.Client, node *corev1.Node, cpu, memory string) {
	t.Helper()
	before := node.DeepCopy()
	node.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("1000"),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := in.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func addPod(t *testing.T, in client.Client, name, node, cpu string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		}}},
	}}
	if err := in.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Delete(ctx, pod, client.GracePeriodSeconds(0)) })
	return pod
}

// capacityIs waits until a member's status tells so much CPU, and the reason of its condition.
func (w *world) capacityIs(t *testing.T, name, total, available, contiguous, reason string) *clusterv1alpha1.Cluster {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	eventually(t, fmt.Sprintf("%s has %s CPU, %s free, %s on one node", name, total, available, contiguous),
		func() error {
			if err := w.fleet.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
				return err
			}
			summary := cluster.Status.ResourceSummary
			if summary == nil {
				return fmt.Errorf("no summary: %+v", cluster.Status.Conditions)
			}
			got := [3]string{}
			for i, list := range []corev1.ResourceList{summary.Allocatable, summary.Available, summary.Contiguous} {
				got[i] = list.Cpu().String()
			}
			c := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionResourcesObserved)
			if got != [3]string{total, available, contiguous} || c == nil || c.Reason != reason {
				return fmt.Errorf("got %v, %+v", got, c)
			}
			return nil
		})
	return cluster
}

func TestCapacityFollowsNodesAndPods(t *testing.T) {
	w := newWorld(t)
	in := w.member["member2"]
	small := addNode(t, in, "small", "2", "4Gi")
	w.startFederation(t)
	w.capacityIs(t, "member2", "2", "2", "2", clusterv1alpha1.ReasonObserved)
	addNode(t, in, "large", "8", "32Gi")
	pod := addPod(t, in, "p1", "large", "3")
	addPod(t, in, "p2", "", "500m")
	cluster := w.capacityIs(t, "member2", "10", "6500m", "5", clusterv1alpha1.ReasonObserved)
	if classes := cluster.Status.ResourceSummary.NodeClasses; len(classes) != 2 ||
		classes[0].Free.Cpu().String() != "5" || classes[0].Labels["disk"] != "fast" {
		t.Errorf("classes %+v", classes)
	}
	counts := map[int64]int{}
	for _, m := range cluster.Status.ResourceSummary.AllocatableModelings {
		counts[m.Grade] = m.Count
	}
	if counts[1] != 1 || counts[3] != 1 {
		t.Errorf("small is of grade 1, large of grade 3 (4 cores, 32 GiB): %v", counts)
	}

	if err := in.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.capacityIs(t, "member2", "10", "9500m", "8", clusterv1alpha1.ReasonObserved)
	setAllocatable(t, in, small, "1000000", "4Gi")
	cluster = w.capacityIs(t, "member2", "8", "7500m", "8", clusterv1alpha1.ReasonImplausible)
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
		t.Error("the member stays ready")
	}
}
