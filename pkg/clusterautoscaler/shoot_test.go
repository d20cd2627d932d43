package clusterautoscaler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestSnapshot(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
	}
	priorities := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: gardencorev1beta1.ClusterAutoscalerPriorityConfigMap,
		},
		Data: map[string]string{gardencorev1beta1.ClusterAutoscalerPriorityKey: "7: ['^pool$']"},
	}
	watched := newShoot(kubernetesfake.NewClientset(
		node("n"), pod("a", "1", ""), claim, priorities,
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
	))
	if err := watched.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := watched.snapshot(start)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Nodes) != 1 || len(got.Pods) != 1 || got.Facts.Claims["default/data"] == nil ||
		got.Facts.Namespaces["default"]["team"] != "a" {
		t.Errorf("got %+v", got)
	}
	if priority, found := got.Priorities.of("pool"); !found || priority != 7 {
		t.Errorf("got priority %d, %v", priority, found)
	}
	if _, err := ParsePriorities("1: ['(']"); err == nil {
		t.Error("an expression that is none must be refused")
	}
}
