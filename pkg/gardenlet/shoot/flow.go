package shoot

import (
	"context"

	"github.com/trellis-garden/trellis/pkg/flow"
)

// ReconcileFlow builds the graph that creates a shoot or brings it up to date.
func (o *Operation) ReconcileFlow() (*flow.Flow, error) {
	g := flow.NewGraph("Shoot cluster reconciliation")
	f := o.addFoundation(g)
	infrastructure := o.addInfrastructure(g, f)
	c := o.addControlPlane(g, f, infrastructure)
	system := o.addSystemComponents(g, f)
	o.addNodes(g, f, infrastructure, c, system)
	return g.Compile()
}

// cleanUpSecrets deletes secrets that nothing uses any more; only after a flow that has asked for all that are in use.
func (o *Operation) cleanUpSecrets(ctx context.Context) error { return o.secrets.Cleanup(ctx) }
