// Package controlplane makes what runs for a shoot in the seed: etcd, the API server and its companions, and what
// changes in them while credentials are rotated.
package controlplane

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/credentials"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// gatewayName and gatewayNamespace of the Gateway that TLSRoutes of the seed attach to.
	gatewayName      = "gateway"
	gatewayNamespace = gardencorev1beta1.GardenNamespace
)

// Tasks are those that others wait for.
type Tasks struct {
	// APIServer: the API server answers.
	APIServer flow.TaskID
	// Tunnels: the seed's ends of tunnels are deployed.
	Tunnels []flow.TaskID
	// AuthoritiesReplaced are what those wait for who would otherwise trust, or present, what the API server does not
	// know yet.
	AuthoritiesReplaced []flow.TaskID
	// Controllers: kube-controller-manager, which signs certificates, and others are as they should be.
	Controllers []flow.TaskID
}

// Infrastructure tells what came of it.
type Infrastructure interface {
	// ProviderStatus is what the provider's control plane is told; nil if there is nothing to tell.
	ProviderStatus() *runtime.RawExtension
}

// ControlPlane makes that of one shoot.
type ControlPlane struct {
	Plan *plan.Plan
	Seed client.WithWatch
	Log  logr.Logger
	// Secrets of the control plane, which Components are made with as well.
	Secrets        secrets.Manager
	Components     *components.Builder
	Extensions     *extensions.Objects
	Infrastructure Infrastructure
	// Restore tells what came of restoring a point in time.
	Restore Restore
}

// Restore of a point in time.
type Restore interface {
	// Check fails, once, if it was refused.
	Check(ctx context.Context) error
}

// Add adds etcd, the API server, and what needs no workers. An API server is created together with its etcds, not after
// them: it waits for them by itself, and its start goes on meanwhile. Etcds wait for where they are backed up to:
// one that starts empty looks for its backups first.
func (c *ControlPlane) Add(g *flow.Graph, f foundation.Tasks, infrastructure, backup flow.TaskID) Tasks {
	stores, storesReady := c.AddStage(g, components.Stores, f.Secrets, backup)
	g.Add(flow.Task{
		Name: "Checking the restore of etcd-main", Fn: c.Restore.Check, Dependencies: storesReady,
		SkipIf: c.Plan.Restore.ID == "" || c.Plan.Restore.Settled,
	})
	before := c.Extensions.Add(g, gardencorev1beta1.BeforeKubeAPIServer, f.Secrets, f.References)

	g.Add(flow.Task{
		Name: "Deploying route to kube-apiserver", Fn: tasks.Retried(c.deployRoute),
		Dependencies: []flow.TaskID{f.Namespace},
	})
	if c.Plan.Restore.ID != "" || c.Plan.APIServer().Availability.IsHigh() || c.Plan.Rotation.ReplacesAuthorities {
		// It starts anew when etcd has been restored, not before; and of what there is several times, one loses a
		// replica at a time: API servers stay while an etcd grows or is rolled. With other authorities, etcds have to
		// serve with these before an API server presents a certificate of theirs.
		stores = storesReady
	}
	deployed := g.Add(flow.Task{
		Name: "Deploying kube-apiserver", Dependencies: slices.Concat([]flow.TaskID{f.Secrets}, stores, before),
		Fn: tasks.Retried(c.deployKubeAPIServer),
	})
	t := Tasks{APIServer: g.Add(flow.Task{
		Name: "Waiting until kube-apiserver is ready", Dependencies: append(storesReady, deployed),
		Fn: tasks.Rollout(c.awaitKubeAPIServer),
	})}
	g.Add(flow.Task{
		Name: "Encrypting stored objects anew", Fn: flow.TaskFn(c.changeEncryption).Timeout(encryptionTimeout),
		SkipIf:       !c.Plan.Rotation.Encryption.Moves(),
		Dependencies: []flow.TaskID{t.APIServer},
	})
	g.Add(flow.Task{
		Name:   "Renewing tokens of the control plane",
		Fn:     flow.TaskFn(c.renewTokens).RetryUntilTimeout(tasks.RetryInterval, tasks.RolloutTimeout),
		SkipIf: !c.Plan.Rotation.RenewsTokens, Dependencies: []flow.TaskID{t.APIServer},
	})
	t.Tunnels, _ = c.AddStage(g, components.Tunnels, append(c.ifNodesUnknown(infrastructure), f.Secrets)...)
	if c.Plan.Rotation.ReplacesAuthorities {
		t.AuthoritiesReplaced = []flow.TaskID{t.APIServer}
	}
	_, t.Controllers = c.AddStage(g, components.Controllers, t.APIServer)
	c.addProviderControlPlane(g, f, infrastructure, t.APIServer)
	c.Extensions.AddUnwanted(g, t.APIServer)
	c.Extensions.Add(g, gardencorev1beta1.AfterKubeAPIServer, t.APIServer, f.References)
	return t
}

// awaitKubeAPIServer waits for the API server. When it has come to know other authorities, the seed's processes may
// rely on them.
func (c *ControlPlane) awaitKubeAPIServer(ctx context.Context) error {
	if err := c.Components.KubeAPIServer().Wait(ctx); err != nil || !c.Plan.Rotation.ReplacesAuthorities {
		return err
	}
	values := c.Plan.APIServer()
	values.KeepInternalKubeconfig = false
	return kubeapiserver.New(c.Seed, c.Plan.Namespace, c.Secrets, values).GenerateKubeconfigs(ctx)
}

// ifNodesUnknown returns the dependency on the infrastructure if only that knows the nodes' network.
func (c *ControlPlane) ifNodesUnknown(infrastructure flow.TaskID) []flow.TaskID {
	if len(c.Plan.Networks.Nodes) > 0 {
		return nil
	}
	return []flow.TaskID{infrastructure}
}

// AddStage adds the components of a stage after what they wait for.
func (c *ControlPlane) AddStage(g *flow.Graph, stage components.Stage,
	after ...flow.TaskID) (deployed, ready []flow.TaskID) {
	asleep := stage == components.Autoscalers && c.Plan.Hibernation != plan.Awake
	readyOf := map[string]flow.TaskID{}
	for _, part := range components.Of(stage) {
		if part.Recipe.Build == nil {
			continue
		}
		skip := asleep || !c.Plan.Has(part.Name)
		dependencies := after
		if part.After != "" {
			dependencies = append(slices.Clone(after), readyOf[part.After])
		}
		task := g.Add(flow.Task{
			Name: "Deploying " + part.Name, SkipIf: skip, Dependencies: dependencies,
			Fn: tasks.Retried(func(ctx context.Context) error { return part.Build(c.Components).Deploy(ctx) }),
		})
		deployed = append(deployed, task)
		readyOf[part.Name] = g.Add(flow.Task{
			Name: fmt.Sprintf("Waiting until %s is ready", part.Name), SkipIf: skip,
			Dependencies: []flow.TaskID{task},
			Fn:           tasks.Rollout(func(ctx context.Context) error { return part.Build(c.Components).Wait(ctx) }),
		})
		ready = append(ready, readyOf[part.Name])
	}
	return deployed, ready
}

// addProviderControlPlane adds what the provider deploys into the control plane.
func (c *ControlPlane) addProviderControlPlane(g *flow.Graph, f foundation.Tasks,
	infrastructure, apiServer flow.TaskID) {
	deployed := g.Add(flow.Task{
		Name: "Deploying provider's control plane components", Fn: tasks.Retried(c.deployProviderControlPlane),
		SkipIf:       c.Plan.Workerless,
		Dependencies: []flow.TaskID{f.Credentials, infrastructure, apiServer},
	})
	g.Add(flow.Task{
		Name: "Waiting until provider's control plane components are ready", SkipIf: c.Plan.Workerless,
		Dependencies: []flow.TaskID{deployed},
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, c.Seed,
				&extensionsv1alpha1.ControlPlane{ObjectMeta: c.Plan.Meta(c.Plan.ShootName)}, extension.DefaultTiming)
		},
	})
}

// deployProviderControlPlane writes the ControlPlane.
func (c *ControlPlane) deployProviderControlPlane(ctx context.Context) error {
	object := &extensionsv1alpha1.ControlPlane{ObjectMeta: c.Plan.Meta(c.Plan.ShootName)}
	return extension.Deploy(ctx, c.Seed, object, true, func() {
		object.Spec = extensionsv1alpha1.ControlPlaneSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: c.Plan.ProviderType, ProviderConfig: extensions.Compact(c.Plan.ControlPlaneProvider),
			},
			InfrastructureProviderStatus: c.Infrastructure.ProviderStatus(), Region: c.Plan.Region,
			SecretRef: credentials.CloudProvider(c.Plan.Identity),
		}
	})
}

// deployRoute tells the seed's gateway which names lead to this API server.
func (c *ControlPlane) deployRoute(ctx context.Context) error {
	return component.Apply(ctx, c.Seed, Route(c.Plan.Identity, c.Plan.APIServer().ExternalHostnames...))
}

// Route is the TLSRoute of the API server; without names to delete it.
func Route(shoot plan.Identity, names ...string) *gatewayv1.TLSRoute {
	var hostnames []gatewayv1.Hostname
	for _, name := range names {
		hostnames = append(hostnames, gatewayv1.Hostname(name))
	}
	return &gatewayv1.TLSRoute{
		ObjectMeta: shoot.Meta(kubeapiserver.Name),
		Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Name: gatewayName, Namespace: new(gatewayv1.Namespace(gatewayNamespace)),
			}}},
			Hostnames: hostnames,
			Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Name: kubeapiserver.Name, Port: new(gatewayv1.PortNumber(kubeapiserver.ServicePort)),
				},
			}}}},
		},
	}
}
