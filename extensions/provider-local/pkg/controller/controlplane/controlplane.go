// Package controlplane is the ControlPlane controller of provider-local. The local cloud needs no cloud controllers: nodes
// set their own addresses and provider IDs.
package controlplane

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Add registers the controller.
func Add(mgr manager.Manager) error {
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.ControlPlane]{
		Kind:     extensionsv1alpha1.ControlPlaneResource,
		Type:     apis.Type,
		Actuator: actuator{},
	})
}

type actuator struct{}

// Reconcile implements extension.Actuator.
func (actuator) Reconcile(context.Context, logr.Logger, *extensionsv1alpha1.ControlPlane, *cluster.Cluster) error {
	return nil
}

// Delete implements extension.Actuator.
func (actuator) Delete(context.Context, logr.Logger, *extensionsv1alpha1.ControlPlane, *cluster.Cluster) error {
	return nil
}
