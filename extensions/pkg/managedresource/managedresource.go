// Package managedresource hands objects to resource-manager, which keeps them in the shoot of a namespace or in the seed.
package managedresource

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// ClassShoot targets the shoot of the namespace.
	ClassShoot = ""
	// ClassSeed targets the seed.
	ClassSeed = "seed"

	secretPrefix = "managedresource-"
	manifestKey  = "objects.yaml"
)

// Render writes objects as YAML documents, in the given order. Kinds are taken from the scheme.
func Render(scheme *runtime.Scheme, objects ...client.Object) ([]byte, error) {
	var buffer bytes.Buffer
	for _, object := range objects {
		document, err := renderOne(scheme, object)
		if err != nil {
			return nil, fmt.Errorf("render %T %s: %w", object, client.ObjectKeyFromObject(object), err)
		}
		buffer.WriteString("---\n")
		buffer.Write(document)
	}
	return buffer.Bytes(), nil
}

func renderOne(scheme *runtime.Scheme, object client.Object) ([]byte, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = gvk.ToAPIVersionAndKind()
	delete(fields, "status")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return yaml.Marshal(fields)
}

// Apply creates or updates a ManagedResource with exactly these objects.
func Apply(ctx context.Context, c client.Client, namespace, name, class string, objects ...client.Object) error {
	manifest, err := Render(c.Scheme(), objects...)
	if err != nil {
		return fmt.Errorf("ManagedResource %s/%s: %w", namespace, name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretPrefix + name}}
	if _, err := controllerutil.CreateOrPatch(ctx, c, secret, func() error {
		secret.Data = map[string][]byte{manifestKey: manifest}
		return nil
	}); err != nil {
		return fmt.Errorf("ManagedResource %s/%s: write its Secret: %w", namespace, name, err)
	}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := controllerutil.CreateOrPatch(ctx, c, resource, func() error {
		resource.Spec.Class = nil
		if class != ClassShoot {
			resource.Spec.Class = &class
		}
		resource.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: secret.Name}}
		return nil
	}); err != nil {
		return fmt.Errorf("ManagedResource %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Delete removes a ManagedResource; resource-manager removes the objects, and then lets the ManagedResource go.
// The Secret stays until then, because the objects are known from it. gone tells whether all of it has gone.
func Delete(ctx context.Context, c client.Client, namespace, name string) (gone bool, err error) {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err = c.Delete(ctx, resource)
	if err == nil {
		return false, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("ManagedResource %s/%s: delete: %w", namespace, name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretPrefix + name}}
	if err := client.IgnoreNotFound(c.Delete(ctx, secret)); err != nil {
		return false, fmt.Errorf("ManagedResource %s/%s: delete its Secret: %w", namespace, name, err)
	}
	return true, nil
}

// Objects splits rendered YAML into its documents, for tests and tools.
func Objects(manifest []byte) []string {
	var documents []string
	for _, document := range strings.Split(string(manifest), "---\n") {
		if strings.TrimSpace(document) != "" {
			documents = append(documents, document)
		}
	}
	return documents
}
