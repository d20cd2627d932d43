package shoot

import (
	"context"

	"github.com/trellis-garden/trellis/pkg/flow"
)

// ReconcileFlow builds the graph that creates a shoot or brings it up to date. To hibernate it, the whole graph is run as for
// a shoot that is awake, but for no machines, and ends with the sleep: it needs the control plane to let the machines go. Of
// a shoot that sleeps only the foundation is kept up to date, all else follows when it wakes up.
func (o *Operation) ReconcileFlow() (*flow.Flow, error) {
	g := flow.NewGraph("Shoot cluster reconciliation")
	f := o.addFoundation(g)
	if o.Plan.Hibernation == Asleep {
		o.addPublication(g, f.secrets)
		o.addSleep(g, f.secrets)
		return g.Compile()
	}
	infrastructure := o.addInfrastructure(g, f)
	c := o.addControlPlane(g, f, infrastructure)
	o.addPublication(g, append(o.onceAuthoritiesReplaced(c), f.secrets)...)
	system := o.addSystemComponents(g, f, c)
	o.addNodes(g, f, infrastructure, c, system)
	if o.Plan.Hibernation == FallingAsleep {
		o.addSleep(g, g.Last()...)
	}
	return g.Compile()
}

// cleanUpSecrets deletes secrets that nothing uses any more; only after a flow that has asked for all that are in use.
func (o *Operation) cleanUpSecrets(ctx context.Context) error { return o.secrets.Cleanup(ctx) }
