package trellisctl

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func TestUnschedulable(t *testing.T) {
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoExecute}
	cordoned := corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	drained := corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		before []corev1.Taint
		effect corev1.TaintEffect
		set    bool
		want   []corev1.Taint
	}{
		"cordon":         {[]corev1.Taint{own}, corev1.TaintEffectNoSchedule, true, []corev1.Taint{own, cordoned}},
		"cordon twice":   {[]corev1.Taint{cordoned}, corev1.TaintEffectNoSchedule, true, []corev1.Taint{cordoned}},
		"cordon drained": {[]corev1.Taint{drained}, corev1.TaintEffectNoSchedule, true, []corev1.Taint{drained, cordoned}},
		"drain":          {[]corev1.Taint{own, cordoned}, corev1.TaintEffectNoExecute, true, []corev1.Taint{own, cordoned, drained}},
		"uncordon":       {[]corev1.Taint{own, cordoned, drained}, "", false, []corev1.Taint{own}},
	} {
		got := unschedulable(tc.before, tc.effect, tc.set)
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %v", name, got)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%s: got %v", name, got)
			}
		}
	}
}

func TestListMembers(t *testing.T) {
	scheme, err := FleetScheme()
	if err != nil {
		t.Fatal(err)
	}
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	now := time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
	edge := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}},
		Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.3", NodeSummary: &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2},
			Conditions:      []metav1.Condition{{Type: "Ready", Status: "True", Reason: "ClusterReady"}},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "16Gi"), Available: list("5", "8Gi"), Contiguous: list("3", "4Gi")},
		},
	}
	unknown := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: metav1.NewTime(now)}}
	fleet := &Fleet{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(edge, unknown).Build()}
	var out bytes.Buffer
	if err := fleet.ListMembers(context.Background(), &out, now); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	want := []string{
		"MEMBER MODE VERSION READY NODES CPU MEMORY TAINTS AGE",
		"edge Push v1.36.3 yes 2/3 8 / 5 / 3 16.0Gi / 8.0Gi / 4.0Gi k:NoSchedule 60m",
		"new - - - - - - - 0s",
	}
	for i, w := range want {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != w {
			t.Errorf("got %q, want %q", got, w)
		}
	}
}
