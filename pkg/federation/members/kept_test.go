package members

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

func TestWatchesKeepWholeObjectsWithoutWhoManagesThem(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec":   map[string]any{"replicas": int64(1) << 60, "share": 0.5, "empty": map[string]any{}},
		"status": map[string]any{"readyReplicas": int64(2)},
	}}
	object.SetNamespace("shop")
	object.SetName("web")
	object.SetUID("1-2-3")
	object.SetResourceVersion("7")
	object.SetLabels(map[string]string{"app": "web"})
	object.SetAnnotations(map[string]string{
		workv1alpha1.NamespaceAnnotation: "trellis-es-one", workv1alpha1.NameAnnotation: "web-1", "other": "kept too",
	})
	wanted := object.DeepCopy()
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})

	transformed, err := keep(object)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := keep(transformed); err != nil || again != transformed {
		t.Errorf("what is kept is kept once more: %v, %v", again, err)
	}
	k := transformed.(*kept)
	if key, err := toolscache.MetaNamespaceKeyFunc(k); err != nil || key != "shop/web" {
		t.Errorf("the cache knows it as %q: %v", key, err)
	}
	if k.GetResourceVersion() != "7" || k.GetUID() != "1-2-3" ||
		k.GetAnnotations()[workv1alpha1.NameAnnotation] != "web-1" {
		t.Errorf("metadata: %+v", k.ObjectMeta)
	}
	for range 2 { // Whoever got it may change it.
		got, err := k.DeepCopyObject().(*kept).decode()
		if err != nil || !apiequality.Semantic.DeepEqual(got, wanted) {
			t.Fatalf("got %v: %v, want %v", got, err, wanted)
		}
		unstructured.RemoveNestedField(got.Object, "spec", "replicas")
	}
}
