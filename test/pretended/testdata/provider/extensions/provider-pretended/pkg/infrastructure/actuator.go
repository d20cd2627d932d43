// Package infrastructure is the controller of Infrastructures of a cloud that does not exist.
package infrastructure

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Type is the spec.type this extension is responsible for.
const Type = "example"

// Actuator makes networks out of nothing.
type Actuator struct{}

// Reconcile tells the network of the nodes.
func (Actuator) Reconcile(_ context.Context, _ logr.Logger, infrastructure *extensionsv1alpha1.Infrastructure,
	_ *cluster.Cluster) error {
	infrastructure.Status.NodesCIDR = new("10.250.0.0/16")
	return nil
}

// Delete has nothing to do.
func (Actuator) Delete(context.Context, logr.Logger, *extensionsv1alpha1.Infrastructure, *cluster.Cluster) error {
	return nil
}
