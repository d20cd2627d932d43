package seed

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A seed has two resource-managers when they can be on two nodes.
func TestReplicasOfASeed(t *testing.T) {
	system := &System{Seed: fake.NewClientBuilder().Build()}
	for nodes, want := range []int32{1, 1, 2, 2} {
		if got, err := system.replicas(t.Context()); err != nil || got != want {
			t.Errorf("with %d nodes: %d replicas, %v; want %d", nodes, got, err, want)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", nodes)}}
		if err := system.Seed.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
}
