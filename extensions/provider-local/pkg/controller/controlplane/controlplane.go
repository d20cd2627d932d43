// Package controlplane is the ControlPlane controller of provider-local. The local cloud needs no cloud controllers:
// nodes set their own addresses and provider IDs, and volumes and load balancers are served by the machine driver. What
// is left is the StorageClass that asks for volumes.
package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/pkg/managedresource"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// managedResourceName is what brings objects into the shoot.
const managedResourceName = "extension-controlplane-shoot"

// Add registers the controller.
func Add(mgr manager.Manager) error {
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.ControlPlane]{
		Kind:     extensionsv1alpha1.ControlPlaneResource,
		Type:     apis.Type,
		Actuator: actuator{client: mgr.GetClient()},
	})
}

type actuator struct {
	client client.Client
}

// Reconcile implements extension.Actuator.
func (a actuator) Reconcile(ctx context.Context, _ logr.Logger, controlPlane *extensionsv1alpha1.ControlPlane,
	_ *cluster.Cluster) error {
	return managedresource.Apply(ctx, a.client, controlPlane.Namespace, managedResourceName, managedresource.ClassShoot,
		storageClass())
}

// Delete implements extension.Actuator.
func (a actuator) Delete(ctx context.Context, _ logr.Logger, controlPlane *extensionsv1alpha1.ControlPlane,
	_ *cluster.Cluster) error {
	gone, err := managedresource.Delete(ctx, a.client, controlPlane.Namespace, managedResourceName)
	if err != nil || gone {
		return err
	}
	return &extension.RequeueAfter{
		After: 500 * time.Millisecond, Cause: errors.New("the objects in the shoot are being removed"),
	}
}

func storageClass() client.Object {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "default", Annotations: map[string]string{extensionsv1alpha1.AnnotationDefaultStorageClass: "true"},
		},
		Provisioner:          volumes.Provisioner,
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(false),
	}
}
