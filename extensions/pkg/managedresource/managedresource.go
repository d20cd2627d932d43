// Package managedresource hands objects to resource-manager, which keeps them in the shoot of a namespace or in the
// seed.
package managedresource

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/managedresources"
)

const (
	// ClassShoot targets the shoot of the namespace.
	ClassShoot = ""
	// ClassSeed targets the seed.
	ClassSeed = resourcesv1alpha1.ClassSeed
)

// Apply creates or updates a ManagedResource with exactly these objects.
func Apply(ctx context.Context, c client.Client, namespace, name, class string, objects ...client.Object) error {
	return managedresources.Write(ctx, c, managedresources.Resource{Namespace: namespace, Name: name, Class: class},
		objects...)
}

// Delete removes a ManagedResource; resource-manager removes the objects, and then lets the ManagedResource go.
// The Secret stays until then, because the objects are known from it. gone tells whether all of it has gone.
func Delete(ctx context.Context, c client.Client, namespace, name string) (gone bool, err error) {
	return managedresources.Delete(ctx, c, namespace, name)
}
