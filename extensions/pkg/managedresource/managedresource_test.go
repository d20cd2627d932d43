package managedresource

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/managedresources"
)

const namespace = "shoot--demo--one"

func seed(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

// created is the same in all objects: one that is built again has none of the server's.
var created = metav1.Unix(1, 0)

func configMap(name string) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, CreationTimestamp: created},
		Data:       map[string]string{"a": "b"},
	}
}

func manifests(t *testing.T, c client.Client, name string) []*unstructured.Unstructured {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "managedresource-" + name},
		secret); err != nil {
		t.Fatal(err)
	}
	objects, err := managedresources.Decode(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// The objects are those of the last call: one that is left out is to be removed by resource-manager.
func TestApplyIsExact(t *testing.T) {
	c := seed(t)
	for _, objects := range [][]client.Object{{configMap("one"), configMap("two")}, {configMap("two")}} {
		if err := Apply(t.Context(), c, namespace, "flannel", ClassShoot, objects...); err != nil {
			t.Fatal(err)
		}
		if got := manifests(t, c, "flannel"); len(got) != len(objects) {
			t.Errorf("got %d documents: %v", len(got), got)
		}
	}
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "flannel"}, resource); err != nil {
		t.Fatal(err)
	}
	if len(resource.Spec.SecretRefs) != 1 || resource.Spec.SecretRefs[0].Name != "managedresource-flannel" ||
		resource.Spec.Class != nil {
		t.Errorf("got %+v", resource.Spec)
	}
}

func TestClass(t *testing.T) {
	c := seed(t)
	for class, want := range map[string]string{ClassSeed: "seed", ClassShoot: ""} {
		if err := Apply(t.Context(), c, namespace, "flannel", class, configMap("one")); err != nil {
			t.Fatal(err)
		}
		resource := &resourcesv1alpha1.ManagedResource{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "flannel"}, resource); err != nil {
			t.Fatal(err)
		}
		got := ""
		if resource.Spec.Class != nil {
			got = *resource.Spec.Class
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is written does not change by itself, or resource-manager would apply everything again and again.
func TestApplyIsStable(t *testing.T) {
	c := seed(t)
	var written []*corev1.Secret
	for range 2 {
		if err := Apply(t.Context(), c, namespace, "flannel", ClassShoot, configMap("one")); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: namespace, Name: managedresources.SecretName("flannel")}
		if err := c.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		written = append(written, secret)
	}
	if !reflect.DeepEqual(written[0].Data, written[1].Data) {
		t.Errorf("got %s and %s", written[0].Data, written[1].Data)
	}
	if object := manifests(t, c, "flannel")[0]; object.GetKind() != "ConfigMap" ||
		object.GetCreationTimestamp() != (metav1.Time{}) {
		t.Errorf("got %v", object)
	}
}

// A kind that nobody registered is refused before anything is written.
func TestUnknownKinds(t *testing.T) {
	c := seed(t)
	err := Apply(t.Context(), c, namespace, "flannel", ClassShoot, configMap("one"),
		&metav1Unknown{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	if err == nil || !strings.Contains(err.Error(), "ManagedResource shoot--demo--one/flannel: encoding") {
		t.Errorf("got %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "managedresource-flannel"},
		&corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

type metav1Unknown struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (m *metav1Unknown) DeepCopyObject() runtime.Object { return m }

// The Secret stays until resource-manager has let go of the ManagedResource: the objects are known from it.
func TestDeleteKeepsTheSecretUntilTheEnd(t *testing.T) {
	c := seed(t)
	if err := Apply(t.Context(), c, namespace, "flannel", ClassShoot, configMap("one")); err != nil {
		t.Fatal(err)
	}
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "flannel"}, resource); err != nil {
		t.Fatal(err)
	}
	resource.Finalizers = []string{"resources.gardener.cloud/gardener-resource-manager"}
	if err := c.Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if gone, err := Delete(t.Context(), c, namespace, "flannel"); err != nil || gone {
			t.Fatalf("got %v, %v", gone, err)
		}
		manifests(t, c, "flannel")
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "flannel"}, resource); err != nil {
		t.Fatal(err)
	}
	resource.Finalizers = nil
	if err := c.Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if gone, err := Delete(t.Context(), c, namespace, "flannel"); err != nil || !gone {
			t.Fatalf("got %v, %v", gone, err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "managedresource-flannel"},
		&corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}
