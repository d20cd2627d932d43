package controlplane

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/managedresources"
)

// The shoot's default class asks the provisioner that the machine driver runs; the deletion waits until it is gone
// from the shoot.
func TestStorageClass(t *testing.T) {
	scheme, err := command.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	a := actuator{client: c}
	object := &extensionsv1alpha1.ControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "one"},
	}
	for range 2 {
		if err := a.Reconcile(t.Context(), logr.Discard(), object, nil); err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{
		Namespace: "shoot--demo--one", Name: "managedresource-" + managedResourceName,
	}, secret); err != nil {
		t.Fatal(err)
	}
	objects, err := managedresources.Decode(secret.Data)
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %v, error %v", objects, err)
	}
	text, err := yaml.Marshal(objects[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(text)
	for _, part := range []string{
		"kind: StorageClass", "provisioner: " + volumes.Provisioner,
		`storageclass.kubernetes.io/is-default-class: "true"`, "reclaimPolicy: Delete",
	} {
		if !strings.Contains(manifest, part) {
			t.Errorf("%q is missing in %s", part, manifest)
		}
	}
	var again *extension.RequeueAfter
	if err := a.Delete(t.Context(), logr.Discard(), object, nil); !errors.As(err, &again) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := a.Delete(t.Context(), logr.Discard(), object, nil); err != nil {
			t.Errorf("got %v", err)
		}
	}
}
