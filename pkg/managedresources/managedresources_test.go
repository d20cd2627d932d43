package managedresources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

func configMap(name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
}

// Nothing of an earlier version stays, whoever wrote it and however it was stored.
func TestWriteReplacesWhatThereIs(t *testing.T) {
	old := secretOf("ns", "mr")
	old.Data = map[string][]byte{"objects.yaml": []byte("kind: Old")}
	c := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(old).Build()
	for _, r := range []Resource{
		{Namespace: "ns", Name: "mr", Class: resourcesv1alpha1.ClassSeed, InjectLabels: map[string]string{"a": "b"}},
		{Namespace: "ns", Name: "mr"},
	} {
		if err := Write(t.Context(), c, r, configMap("a"), configMap("b")); err != nil {
			t.Fatal(err)
		}
		resource, secret := resourceOf("ns", "mr"), secretOf("ns", "mr")
		for _, object := range []client.Object{resource, secret} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
		}
		if ptr.Deref(resource.Spec.Class, "") != r.Class || len(resource.Spec.InjectLabels) != len(r.InjectLabels) {
			t.Errorf("spec %+v, want that of %+v", resource.Spec, r)
		}
		if len(resource.Spec.SecretRefs) != 1 || resource.Spec.SecretRefs[0].Name != secret.Name ||
			*resource.Spec.KeepObjects {
			t.Errorf("spec %+v", resource.Spec)
		}
		objects, err := Decode(secret.Data)
		if err != nil || len(objects) != 2 || objects[1].GetName() != "b" {
			t.Errorf("objects %v, error %v", objects, err)
		}
	}
}

func TestSecretGoesAfterItsManagedResource(t *testing.T) {
	resource := resourceOf("ns", "mr")
	resource.Finalizers = []string{resourcesv1alpha1.FinalizerName}
	secret := secretOf("ns", "mr")
	c := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(resource, secret).Build()
	remove := func(want bool) {
		t.Helper()
		if gone, err := Delete(t.Context(), c, "ns", "mr"); err != nil || gone != want {
			t.Fatalf("gone %v, error %v", gone, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); apierrors.IsNotFound(err) != want {
			t.Fatalf("the Secret: %v", err)
		}
	}
	remove(false)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
		t.Fatal(err)
	}
	resource.Finalizers = nil
	if err := c.Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	remove(true)
	remove(true)
}

func TestErrorsNameTheManagedResource(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	err := Write(t.Context(), c, Resource{Namespace: "ns", Name: "mr"},
		&resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	if err == nil || err.Error()[:len("ManagedResource ns/mr: encoding ")] != "ManagedResource ns/mr: encoding " {
		t.Errorf("error %v", err)
	}
}
