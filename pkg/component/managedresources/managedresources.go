// Package managedresources has resource-manager keep objects in the shoot of a control plane.
package managedresources

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/managedresources"
)

// Deploy has resource-manager keep exactly these objects in the shoot of a namespace.
func Deploy(ctx context.Context, seed client.Client, namespace, name string, objects ...client.Object) error {
	return managedresources.Write(ctx, seed, managedresources.Resource{
		Namespace: namespace, Name: name,
		InjectLabels: map[string]string{gardencorev1beta1.ShootNoCleanup: "true"},
	}, objects...)
}

// Remove has resource-manager delete the objects in the shoot, and waits for that. Only then may their Secret go.
func Remove(ctx context.Context, seed client.Client, namespace, name string) error {
	gone, err := managedresources.Delete(ctx, seed, namespace, name)
	if err != nil || gone {
		return err
	}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := component.WaitUntilGone(ctx, seed, resource); err != nil {
		return err
	}
	_, err = managedresources.Delete(ctx, seed, namespace, name)
	return err
}

// List returns the ManagedResources of a control plane's namespace.
func List(ctx context.Context, seed client.Reader, namespace string) ([]resourcesv1alpha1.ManagedResource, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ManagedResources: %w", err)
	}
	return list.Items, nil
}
