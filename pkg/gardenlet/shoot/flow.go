package shoot

import (
	"context"

	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// ReconcileFlow builds the graph that creates a shoot or brings it up to date. To hibernate it, the whole graph is
// run as for a shoot that is awake, but for no machines, and ends with the sleep: it needs the control plane to let
// the machines go. Of a shoot that sleeps only the foundation is kept up to date, all else follows when it wakes up.
func (o *Operation) ReconcileFlow() (*flow.Flow, error) {
	g := flow.NewGraph("Shoot cluster reconciliation")
	f := o.foundation.Add(g)
	o.publication.AddSSHKeypair(g, f.Secrets)
	if o.Plan.Hibernation == plan.Asleep {
		o.publication.AddAuthorities(g, f.Secrets)
		o.hibernation.Add(g, f.Secrets)
		return g.Compile()
	}
	ready := o.infrastructure.Add(g, f)
	c := o.controlPlane.Add(g, f, ready, o.backup.Add(g, f))
	o.publication.AddAuthorities(g, append(c.AuthoritiesReplaced, f.Secrets)...)
	deployed := o.system.Add(g, f, c)
	o.controlPlane.AddStage(g, components.Autoscalers, o.workers.Add(g, f, ready, c, deployed))
	if o.Plan.Hibernation == plan.FallingAsleep {
		o.hibernation.Add(g, g.Last()...)
	}
	return g.Compile()
}

// cleanUpSecrets deletes secrets that nothing uses any more; only after a flow that has asked for all that are in use.
func (o *Operation) cleanUpSecrets(ctx context.Context) error { return o.keyring.Cleanup(ctx) }
