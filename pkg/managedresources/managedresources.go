// Package managedresources writes ManagedResources, by which objects are handed to resource-manager, and holds the
// format of their Secrets, which resource-manager reads. What resource-manager does with them is in
// pkg/resourcemanager.
package managedresources

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// secretPrefix begins the names of the Secrets of ManagedResources.
const secretPrefix = "managedresource-"

// Resource says where a ManagedResource is, and what is done with its objects.
type Resource struct {
	Namespace, Name string
	// Class is whose objects they are: empty for the shoot of the namespace, or resourcesv1alpha1.ClassSeed.
	Class string
	// InjectLabels are given to all objects.
	InjectLabels map[string]string
}

// SecretName is the name of the Secret with the objects of a ManagedResource.
func SecretName(name string) string { return secretPrefix + name }

// Write has resource-manager keep exactly these objects. It does not apply: nothing may stay in the Secret that another
// field manager wrote, or its objects would be kept too.
func Write(ctx context.Context, c client.Client, r Resource, objects ...client.Object) error {
	data, err := Encode(c.Scheme(), objects...)
	if err != nil {
		return fmt.Errorf("ManagedResource %s/%s: %w", r.Namespace, r.Name, err)
	}
	secret := secretOf(r.Namespace, r.Name)
	if _, err := controllerutil.CreateOrPatch(ctx, c, secret, func() error {
		secret.Data = data
		return nil
	}); err != nil {
		return fmt.Errorf("ManagedResource %s/%s: writing its Secret: %w", r.Namespace, r.Name, err)
	}
	resource := resourceOf(r.Namespace, r.Name)
	if _, err := controllerutil.CreateOrPatch(ctx, c, resource, func() error {
		resource.Spec = r.spec()
		return nil
	}); err != nil {
		return fmt.Errorf("ManagedResource %s/%s: writing it: %w", r.Namespace, r.Name, err)
	}
	return nil
}

func (r Resource) spec() resourcesv1alpha1.ManagedResourceSpec {
	spec := resourcesv1alpha1.ManagedResourceSpec{
		SecretRefs: []corev1.LocalObjectReference{{Name: SecretName(r.Name)}}, InjectLabels: r.InjectLabels,
		KeepObjects: new(false),
	}
	if r.Class != "" {
		spec.Class = &r.Class
	}
	return spec
}

// Delete has resource-manager delete the objects, and tells whether it has: gone is true once the ManagedResource is.
// Only then its Secret is deleted, because the objects are known from it. Where the kind is unknown there is nothing.
func Delete(ctx context.Context, c client.Client, namespace, name string) (gone bool, err error) {
	err = c.Delete(ctx, resourceOf(namespace, name))
	if err == nil {
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("ManagedResource %s/%s: deleting it: %w", namespace, name, err)
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, secretOf(namespace, name))); err != nil {
		return false, fmt.Errorf("ManagedResource %s/%s: deleting its Secret: %w", namespace, name, err)
	}
	return true, nil
}

func resourceOf(namespace, name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func secretOf(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName(name)}}
}
