package federation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/controllers"
)

// BenchmarkPropagation measures how many objects per second reach both members, with all writes.
func BenchmarkPropagation(b *testing.B) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	options := controllers.DefaultOptions()
	options.MetricsAddress, options.HealthAddress = "0", "0"
	done := make(chan error, 1)
	go func() { done <- controllers.Run(running, fleetConfig, options) }()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := fleet.Create(ctx, namespace); err != nil {
		b.Fatal(err)
	}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
		"metadata": map[string]any{"name": "all", "namespace": namespace.Name},
		"spec":     map[string]any{"resourceSelectors": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}},
	}}
	if err := fleet.Create(ctx, policy); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	createConfigMaps(b, namespace.Name, b.N)
	for _, name := range memberNames {
		for {
			var list corev1.ConfigMapList
			if err := member[name].List(ctx, &list, client.InNamespace(namespace.Name)); err != nil {
				b.Fatal(err)
			}
			if len(list.Items) >= b.N {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	cancel()
	<-done
}

// creators is how many objects are created at a time: enough that they are not what is measured.
const creators = 16

func createConfigMaps(b *testing.B, namespace string, count int) {
	b.Helper()
	var wg sync.WaitGroup
	for creator := range creators {
		wg.Go(func() {
			for i := creator; i < count; i += creators {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i), Namespace: namespace}}
				if err := fleet.Create(ctx, object); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
