package capacity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// A hostile member has nodes with more labels, taints and resources than a Cluster can hold: what is reported of it can
// be stored, and its honest nodes are in it.
func TestAttackLargeNodes(t *testing.T) {
	l := NewAccount(DefaultLimits())
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	add := func(name string, change func(*corev1.Node)) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": name}},
			Status: corev1.NodeStatus{
				Allocatable: room.DeepCopy(), Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
				},
			}}
		change(node)
		l.SetNode(node)
	}
	for i := range 20 {
		add(fmt.Sprintf("labels-%d", i), func(n *corev1.Node) {
			for k := range 2000 {
				n.Labels[fmt.Sprintf("label-%d.example.com/%s", k, strings.Repeat("x", 63))] = strings.Repeat("y", 63)
			}
		})
		add(fmt.Sprintf("taints-%d", i), func(n *corev1.Node) {
			for k := range 2000 {
				n.Spec.Taints = append(n.Spec.Taints,
					corev1.Taint{
						Key: fmt.Sprintf("taint-%d", k), Value: strings.Repeat("y", 63),
						Effect: corev1.TaintEffectNoSchedule,
					})
			}
		})
		add(fmt.Sprintf("resources-%d", i), func(n *corev1.Node) {
			for k := range 60 {
				n.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("example.com/%s-%d-%d", strings.Repeat("z", 200),
					i, k))] = resource.MustParse("1")
			}
		})
	}
	add("long-name", func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourceName(strings.Repeat("z", 1<<20))] = resource.MustParse("1")
	})
	add("honest", func(*corev1.Node) {})
	status := &clusterv1alpha1.ClusterStatus{}
	l.Report().Describe(nil, status)
	text, err := json.Marshal(status)
	if err != nil || len(text) > 512<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	found := false
	for _, class := range status.ResourceSummary.NodeClasses {
		found = found || class.Count == 1 && len(class.Free) == 3 && len(class.Taints) == 0
	}
	if !found {
		t.Error("the honest node is left out")
	}
	if cpu := status.ResourceSummary.Allocatable[corev1.ResourceCPU]; cpu.Value() < 4*60 {
		t.Errorf("got %s cores", cpu.String())
	}
}
