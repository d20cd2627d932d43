package worker

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Migrate implements extension.Migrator: machine-controller-manager stops, as the machines are another seed's.
// gardenlet waits for its end before it removes the objects of machines.
func (a *actuator) Migrate(ctx context.Context, _ logr.Logger, worker *extensionsv1alpha1.Worker,
	_ *cluster.Cluster) error {
	return a.stopManager(ctx, worker.Namespace)
}
