// Package shoot reconciles Shoots: it decides once what a shoot is to be (plan), and brings it about with a graph of
// small tasks. Each of the packages below builds the part of the graph for one concern.
package shoot

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/backup"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/credentials"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/hibernation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/infrastructure"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/publication"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/restore"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/shootstate"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/systemcomponents"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/workers"
)

// Operation is one run of the flow that creates a shoot or brings it up to date. Its parts know of each other only
// what they need.
type Operation struct {
	Plan   *plan.Plan
	Inputs *plan.Inputs
	// Restored is what the control plane had on another seed; nil but in a restore.
	Restored *shootstate.Restored

	keyring        *foundation.Keyring
	foundation     *foundation.Foundation
	backup         *backup.Backup
	publication    *publication.Publication
	infrastructure *infrastructure.Infrastructure
	controlPlane   *controlplane.ControlPlane
	system         *systemcomponents.System
	workers        *workers.Workers
	hibernation    *hibernation.Hibernation
}

// begin has the control plane begin with what it had on another seed, if it is to be restored.
func (o *Operation) begin(restored *shootstate.Restored) {
	if restored != nil {
		o.Restored, o.foundation.Restored = restored, restored.Secrets
	}
}

// context is that of the flow.
func (o *Operation) context(ctx context.Context) context.Context {
	if o.Restored == nil {
		return ctx
	}
	return extension.WithStates(ctx, o.Restored.States)
}

// newOperation puts the parts together. The clients read from the API servers.
func newOperation(p *plan.Plan, in *plan.Inputs, garden client.Client, seed client.WithWatch,
	ask etcdcomponent.Ask, log logr.Logger) *Operation {
	keyring := &foundation.Keyring{}
	copier := &credentials.Copier{Shoot: p.Identity, Garden: garden, Seed: seed}
	objects := &extensions.Objects{Shoot: p.Identity, Seed: seed, Wanted: p.Extensions}
	published := &publication.Publication{
		Shoot: p.Identity, Workerless: p.Workerless, SSHAccess: p.SSHAccess, Garden: garden, Secrets: keyring,
	}
	infra := &infrastructure.Infrastructure{
		Plan: p, Seed: seed, SeedNetworks: in.Seed.Spec.Networks, Credentials: copier,
	}
	builder := &components.Builder{
		Seed: seed, Namespace: p.Namespace, Secrets: keyring, NodeNetworks: infra.NodeNetworks,
		Values: p.Values, AskEtcd: ask,
	}
	machines := &workers.Workers{
		Plan: p, Seed: seed, Components: builder, Extensions: objects, Infrastructure: infra,
		AuthorizedKeys: published.AuthorizedKeys, Log: log, Since: in.Shoot.Status.RetryCycleStartTime,
	}
	builder.Machines = machines.Machines
	return &Operation{
		Plan: p, Inputs: in, keyring: keyring, publication: published, infrastructure: infra,
		foundation: &foundation.Foundation{
			Plan: p, Seed: seed, SeedSpec: &in.Seed.Spec, Exceptions: in.EgressExceptions, Credentials: copier,
			Keyring:  keyring,
			Generate: published.GenerateSSHKeypair, APIServer: builder.KubeAPIServer,
		},
		backup: &backup.Backup{Plan: p, Garden: garden, Seed: seed, SeedName: in.Seed.Name},
		controlPlane: &controlplane.ControlPlane{
			Plan: p, Seed: seed, Log: log, Secrets: keyring, Components: builder, Extensions: objects,
			Infrastructure: infra, Restore: &restore.Record{Seed: seed, Namespace: p.Namespace},
		},
		system:      &systemcomponents.System{Plan: p, Seed: seed, Components: builder},
		workers:     machines,
		hibernation: &hibernation.Hibernation{Plan: p, Seed: seed, Extensions: objects},
	}
}
