// Package infrastructure makes the infrastructure of a shoot and its DNS records, and tells others what came of it.
package infrastructure

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/credentials"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// state is what the control plane and the nodes need to know of the infrastructure.
type state struct {
	providerStatus []byte
	// nodes are the networks of the nodes, egress those that traffic leaves from.
	nodes, egress []string
}

// Infrastructure makes that of one shoot.
type Infrastructure struct {
	Plan *plan.Plan
	Seed client.WithWatch
	// SeedNetworks are those of the seed.
	SeedNetworks gardencorev1beta1.SeedNetworks
	// Credentials copies those of DNS providers.
	Credentials *credentials.Copier

	// state is set when the infrastructure is ready.
	state atomic.Pointer[state]
}

// Add adds infrastructure and DNS. It returns the task after which the infrastructure is ready.
func (i *Infrastructure) Add(g *flow.Graph, f foundation.Tasks) (ready flow.TaskID) {
	deployed := g.Add(flow.Task{
		Name: "Deploying infrastructure", Fn: tasks.Retried(i.deployInfrastructure), SkipIf: i.Plan.Workerless,
		Dependencies: []flow.TaskID{f.Credentials, f.References},
	})
	ready = g.Add(flow.Task{
		Name: "Waiting until infrastructure is ready", Fn: i.waitForInfrastructure, SkipIf: i.Plan.Workerless,
		Dependencies: []flow.TaskID{deployed},
	})
	i.addRecord(g, f, "internal", i.Plan.Internal)
	i.addRecord(g, f, "external", i.Plan.External)
	return ready
}

// addRecord adds a DNS record. Shoots that sleep have none.
func (i *Infrastructure) addRecord(g *flow.Graph, f foundation.Tasks, purpose string, record *plan.Record) {
	skip := record == nil || i.Plan.Hibernation != plan.Awake
	deployed := g.Add(flow.Task{
		Name: fmt.Sprintf("Deploying %s domain DNS record", purpose), SkipIf: skip,
		Fn:           tasks.Retried(func(ctx context.Context) error { return i.deployRecord(ctx, record) }),
		Dependencies: []flow.TaskID{f.Namespace},
	})
	g.Add(flow.Task{
		Name: fmt.Sprintf("Waiting until %s domain DNS record is ready", purpose), SkipIf: skip,
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, i.Seed, &extensionsv1alpha1.DNSRecord{ObjectMeta: i.Plan.Meta(record.Name)},
				extension.DNSRecordTiming)
		},
		Dependencies: []flow.TaskID{deployed},
	})
}

// deployInfrastructure writes the Infrastructure, with which the namespace of machines comes where they are pods of
// the seed.
func (i *Infrastructure) deployInfrastructure(ctx context.Context) error {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: i.Plan.Meta(i.Plan.ShootName)}
	err := extension.Deploy(ctx, i.Seed, object, false, func() {
		object.Spec = extensionsv1alpha1.InfrastructureSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: i.Plan.ProviderType, ProviderConfig: extensions.Compact(i.Plan.InfrastructureConfig),
			},
			Region: i.Plan.Region, SecretRef: credentials.CloudProvider(i.Plan.Identity),
		}
	})
	if err != nil {
		return err
	}
	return i.IsolateMachines(ctx)
}

// IsolateMachines keeps machines that are pods of the seed to themselves, and to what any machine reaches.
func (i *Infrastructure) IsolateMachines(ctx context.Context) error {
	beside, err := extensionrights.Beside(ctx, i.Seed, i.Plan.Namespace)
	if err != nil {
		return err
	}
	for _, namespace := range beside {
		policies := networkpolicies.Objects(networkpolicies.Machines, namespace.Name,
			networkpolicies.Values{Networks: i.SeedNetworks})
		if err := networkpolicies.Apply(ctx, i.Seed, namespace.Name, policies); err != nil {
			return err
		}
	}
	return nil
}

// waitForInfrastructure waits, and keeps what others need to know.
func (i *Infrastructure) waitForInfrastructure(ctx context.Context) error {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: i.Plan.Meta(i.Plan.ShootName)}
	if err := extension.Wait(ctx, i.Seed, object, extension.InfrastructureTiming); err != nil {
		return err
	}
	found := stateOf(object)
	if len(found.nodes) == 0 && len(i.Plan.Networks.Nodes) == 0 {
		return fmt.Errorf("the Infrastructure %s is ready, but neither its status nor spec.networking.nodes of the "+
			"Shoot says which network the nodes are in", i.Plan.Key(object.Name))
	}
	i.state.Store(found)
	return nil
}

// stateOf reads the status of an Infrastructure.
func stateOf(object *extensionsv1alpha1.Infrastructure) *state {
	found := &state{egress: object.Status.EgressCIDRs}
	if object.Status.ProviderStatus != nil {
		found.providerStatus = object.Status.ProviderStatus.Raw
	}
	switch {
	case object.Status.Networking != nil && len(object.Status.Networking.Nodes) > 0:
		found.nodes = object.Status.Networking.Nodes
	case object.Status.NodesCIDR != nil:
		found.nodes = []string{*object.Status.NodesCIDR}
	}
	return found
}

// ProviderStatus is what other extensions are told about the infrastructure.
func (i *Infrastructure) ProviderStatus() *runtime.RawExtension {
	state := i.state.Load()
	if state == nil || len(state.providerStatus) == 0 {
		return nil
	}
	return &runtime.RawExtension{Raw: state.providerStatus}
}

// deployRecord writes a DNSRecord and its credentials.
func (i *Infrastructure) deployRecord(ctx context.Context, record *plan.Record) error {
	if err := i.Credentials.Deploy(ctx,
		credentials.Secret{From: record.Credentials, To: record.SecretName}); err != nil {
		return err
	}
	object := &extensionsv1alpha1.DNSRecord{ObjectMeta: i.Plan.Meta(record.Name)}
	return extension.Deploy(ctx, i.Seed, object, false, func() {
		ttl := extensionsv1alpha1.DefaultDNSRecordTTL
		object.Spec = extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: record.Type},
			SecretRef:   corev1.SecretReference{Namespace: i.Plan.Namespace, Name: record.SecretName},
			Zone:        record.Zone, Name: record.Hostname, RecordType: record.RecordType,
			Values: []string{record.Value}, TTL: &ttl,
		}
	})
}

// Reported is what the status tells of the infrastructure; nil if the flow had none.
func (i *Infrastructure) Reported() *status.Infrastructure {
	state := i.state.Load()
	if state == nil {
		return nil
	}
	return &status.Infrastructure{Nodes: state.nodes, Egress: state.egress}
}

// NodeNetworks returns the networks of the nodes: what the infrastructure reported, else what the shoot asks for.
func (i *Infrastructure) NodeNetworks() []string {
	if state := i.state.Load(); state != nil && len(state.nodes) > 0 {
		return state.nodes
	}
	return i.Plan.Networks.Nodes
}
