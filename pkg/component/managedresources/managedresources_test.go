package managedresources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/managedresources"
)

func TestObjectsAreDeployedAndRemoved(t *testing.T) {
	const namespace = "ns"
	seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).Build()
	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	}
	if err := Deploy(t.Context(), seed, namespace, "system", object("a"), object("b")); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "managedresource-system"}, secret); err != nil {
		t.Fatal(err)
	}
	if objects, err := managedresources.Decode(secret.Data); err != nil || len(objects) != 2 ||
		objects[1].GetName() != "b" {
		t.Errorf("the objects are %v (%v)", objects, err)
	}
	if list, err := List(t.Context(), seed, namespace); err != nil || len(list) != 1 ||
		list[0].Spec.SecretRefs[0].Name != secret.Name {
		t.Errorf("listed are %+v (%v)", list, err)
	}
	if err := Remove(t.Context(), seed, namespace, "system"); err != nil {
		t.Fatal(err)
	}
	if list, err := List(t.Context(), seed, namespace); err != nil || len(list) != 0 {
		t.Errorf("left are %+v (%v)", list, err)
	}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err == nil {
		t.Error("the Secret is left")
	}
}
