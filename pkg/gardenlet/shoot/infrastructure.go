package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
)

// addInfrastructure adds infrastructure and DNS. It returns the task after which the infrastructure is ready.
func (o *Operation) addInfrastructure(g *flow.Graph, f foundation) (ready flow.TaskID) {
	deployed := g.Add(flow.Task{
		Name: "Deploying infrastructure", Fn: retried(o.deployInfrastructure), SkipIf: o.Plan.Workerless,
		Dependencies: []flow.TaskID{f.credentials, f.references},
	})
	ready = g.Add(flow.Task{
		Name: "Waiting until infrastructure is ready", Fn: o.waitForInfrastructure, SkipIf: o.Plan.Workerless, Dependencies: []flow.TaskID{deployed},
	})
	o.addRecord(g, f, "internal", o.Plan.Internal)
	o.addRecord(g, f, "external", o.Plan.External)
	return ready
}

// addRecord adds a DNS record. Shoots that sleep have none.
func (o *Operation) addRecord(g *flow.Graph, f foundation, purpose string, record *RecordPlan) {
	skip := record == nil || o.Plan.Hibernation != Awake
	deployed := g.Add(flow.Task{
		Name: fmt.Sprintf("Deploying %s domain DNS record", purpose), SkipIf: skip,
		Fn:           retried(func(ctx context.Context) error { return o.deployRecord(ctx, record) }),
		Dependencies: []flow.TaskID{f.namespace},
	})
	g.Add(flow.Task{
		Name: fmt.Sprintf("Waiting until %s domain DNS record is ready", purpose), SkipIf: skip,
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, o.Seed, &extensionsv1alpha1.DNSRecord{ObjectMeta: o.meta(record.Name)}, extension.DNSRecordTiming)
		},
		Dependencies: []flow.TaskID{deployed},
	})
}

// credentialsRef refers to the credentials for the infrastructure.
func (o *Operation) credentialsRef() corev1.SecretReference {
	return corev1.SecretReference{Namespace: o.Plan.Namespace, Name: cloudProviderSecret}
}

// deployInfrastructure writes the Infrastructure, with which the namespace of machines comes where they are pods of the seed.
func (o *Operation) deployInfrastructure(ctx context.Context) error {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: o.meta(o.Plan.ShootName)}
	err := extension.Deploy(ctx, o.Seed, object, false, func() {
		object.Spec = extensionsv1alpha1.InfrastructureSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: o.Plan.ProviderType, ProviderConfig: compact(o.Plan.InfrastructureConfig)},
			Region:      o.Plan.Region, SecretRef: o.credentialsRef(),
		}
	})
	if err != nil {
		return err
	}
	return o.isolateMachines(ctx)
}

// isolateMachines keeps machines that are pods of the seed to themselves, and to what any machine reaches.
func (o *Operation) isolateMachines(ctx context.Context) error {
	beside, err := extensionrights.Beside(ctx, o.Seed, o.Plan.Namespace)
	if err != nil {
		return err
	}
	for _, namespace := range beside {
		policies := networkpolicies.Objects(networkpolicies.Machines, namespace.Name, networkpolicies.Values{Networks: o.Inputs.Seed.Spec.Networks})
		if err := networkpolicies.Apply(ctx, o.Seed, namespace.Name, policies); err != nil {
			return err
		}
	}
	return nil
}

// waitForInfrastructure waits, and keeps what others need to know.
func (o *Operation) waitForInfrastructure(ctx context.Context) error {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: o.meta(o.Plan.ShootName)}
	if err := extension.Wait(ctx, o.Seed, object, extension.InfrastructureTiming); err != nil {
		return err
	}
	state := stateOf(object)
	if len(state.nodes) == 0 && len(o.Plan.Networks.Nodes) == 0 {
		return fmt.Errorf("the Infrastructure %s is ready, but neither its status nor spec.networking.nodes of the Shoot says which network the nodes are in", o.key(object.Name))
	}
	o.infrastructure.Store(state)
	return nil
}

// stateOf reads the status of an Infrastructure.
func stateOf(object *extensionsv1alpha1.Infrastructure) *infrastructureState {
	state := &infrastructureState{egress: object.Status.EgressCIDRs}
	if object.Status.ProviderStatus != nil {
		state.providerStatus = object.Status.ProviderStatus.Raw
	}
	switch {
	case object.Status.Networking != nil && len(object.Status.Networking.Nodes) > 0:
		state.nodes = object.Status.Networking.Nodes
	case object.Status.NodesCIDR != nil:
		state.nodes = []string{*object.Status.NodesCIDR}
	}
	return state
}

// infrastructureStatus is what other extensions are told about the infrastructure.
func (o *Operation) infrastructureStatus() *runtime.RawExtension {
	state := o.infrastructure.Load()
	if state == nil || len(state.providerStatus) == 0 {
		return nil
	}
	return &runtime.RawExtension{Raw: state.providerStatus}
}

// deployRecord writes a DNSRecord and its credentials.
func (o *Operation) deployRecord(ctx context.Context, record *RecordPlan) error {
	if err := o.deploy(ctx, credentials{from: record.Credentials, to: record.SecretName}); err != nil {
		return err
	}
	object := &extensionsv1alpha1.DNSRecord{ObjectMeta: o.meta(record.Name)}
	return extension.Deploy(ctx, o.Seed, object, false, func() {
		ttl := extensionsv1alpha1.DefaultDNSRecordTTL
		object.Spec = extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: record.Type},
			SecretRef:   corev1.SecretReference{Namespace: o.Plan.Namespace, Name: record.SecretName},
			Zone:        record.Zone, Name: record.Hostname, RecordType: record.RecordType, Values: []string{record.Value}, TTL: &ttl,
		}
	})
}
