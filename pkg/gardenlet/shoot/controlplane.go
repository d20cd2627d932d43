package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

const (
	// gatewayName and gatewayNamespace of the Gateway that TLSRoutes of the seed attach to.
	gatewayName      = "gateway"
	gatewayNamespace = gardencorev1beta1.GardenNamespace
)

// controlPlane are the tasks that others wait for.
type controlPlane struct {
	// apiServer: the API server answers. vpn: the seed's side of the tunnel is deployed. all: everything runs.
	apiServer, vpn flow.TaskID
	all            []flow.TaskID
}

// addControlPlane adds etcd, the API server and its companions. The API server is deployed together with its etcds, not
// after them: it waits for them by itself, and its start goes on meanwhile.
func (o *Operation) addControlPlane(g *flow.Graph, f foundation, infrastructure flow.TaskID) controlPlane {
	main, mainReady := o.addEtcd(g, f, etcd.Main)
	events, eventsReady := o.addEtcd(g, f, etcd.Events)
	before := o.addExtensions(g, gardencorev1beta1.BeforeKubeAPIServer, f.secrets, f.references)

	g.Add(flow.Task{Name: "Deploying route to kube-apiserver", Fn: retried(o.deployRoute), Dependencies: []flow.TaskID{f.namespace}})
	deployed := g.Add(flow.Task{
		Name: "Deploying kube-apiserver", Dependencies: append([]flow.TaskID{f.secrets, main, events}, before...),
		Fn: retried(o.deployKubeAPIServer),
	})
	c := controlPlane{apiServer: g.Add(flow.Task{
		Name: "Waiting until kube-apiserver is ready", Dependencies: []flow.TaskID{deployed, mainReady, eventsReady},
		Fn: rollout(o.awaitKubeAPIServer),
	})}
	g.Add(flow.Task{
		Name: "Encrypting stored objects anew", Fn: flow.TaskFn(o.changeEncryption).Timeout(encryptionTimeout), SkipIf: !o.Plan.Rotation.Encryption.moves(),
		Dependencies: []flow.TaskID{c.apiServer},
	})
	g.Add(flow.Task{
		Name: "Renewing tokens of the control plane", Fn: flow.TaskFn(o.renewTokens).RetryUntilTimeout(applyInterval, rolloutTimeout),
		SkipIf: !o.Plan.Rotation.RenewsTokens, Dependencies: []flow.TaskID{c.apiServer},
	})
	// Certificates for the VPN and the networks it reaches: without a network of its own the shoot gets the infrastructure's.
	c.vpn = g.Add(flow.Task{
		Name: "Deploying vpn-seed-server", SkipIf: !o.Plan.Has(vpnseedserver.Name), Dependencies: append([]flow.TaskID{f.secrets}, o.ifNodesUnknown(infrastructure)...),
		Fn: retried(o.deployVPNSeedServer),
	})
	c.all = append(c.all, c.apiServer)
	for _, companion := range controlPlaneComponents {
		if companion.companion {
			c.all = append(c.all, o.addComponent(g, companion, c.apiServer))
		}
	}
	c.all = append(c.all, o.addProviderControlPlane(g, f, infrastructure, c.apiServer))
	c.all = append(c.all, o.addUnwantedExtensions(g, c.apiServer))
	c.all = append(c.all, o.addExtensions(g, gardencorev1beta1.AfterKubeAPIServer, c.apiServer, f.references)...)
	return c
}

// awaitKubeAPIServer waits for the API server. When it has come to know other authorities, the seed's processes may rely on them.
func (o *Operation) awaitKubeAPIServer(ctx context.Context) error {
	if err := o.kubeAPIServer().Wait(ctx); err != nil || !o.Plan.Rotation.ReplacesAuthorities {
		return err
	}
	values := o.Plan.APIServer.Values
	values.KeepInternalKubeconfig = false
	return kubeapiserver.New(o.Seed, o.Plan.Namespace, o.secrets, values).GenerateKubeconfigs(ctx)
}

// ifNodesUnknown returns the dependency on the infrastructure if only that knows the nodes' network.
func (o *Operation) ifNodesUnknown(infrastructure flow.TaskID) []flow.TaskID {
	if len(o.Plan.Networks.Nodes) > 0 {
		return nil
	}
	return []flow.TaskID{infrastructure}
}

// addEtcd adds one etcd.
func (o *Operation) addEtcd(g *flow.Graph, f foundation, role etcd.Role) (deployed, ready flow.TaskID) {
	deployed = g.Add(flow.Task{
		Name: fmt.Sprintf("Deploying %s etcd", role), Dependencies: []flow.TaskID{f.secrets},
		Fn: retried(func(ctx context.Context) error { return o.etcd(role).Deploy(ctx) }),
	})
	ready = g.Add(flow.Task{
		Name: fmt.Sprintf("Waiting until %s etcd is ready", role), Dependencies: []flow.TaskID{deployed},
		Fn: rollout(func(ctx context.Context) error { return o.etcd(role).Wait(ctx) }),
	})
	return deployed, ready
}

// addComponent adds a component of the control plane, and the wait for it.
func (o *Operation) addComponent(g *flow.Graph, c shootComponent, after flow.TaskID) flow.TaskID {
	skip := !o.Plan.Has(c.name)
	deployed := g.Add(flow.Task{
		Name: "Deploying " + c.name, SkipIf: skip, Dependencies: []flow.TaskID{after},
		Fn: retried(func(ctx context.Context) error { return c.build(o).Deploy(ctx) }),
	})
	return g.Add(flow.Task{
		Name: fmt.Sprintf("Waiting until %s is ready", c.name), SkipIf: skip, Dependencies: []flow.TaskID{deployed},
		Fn: rollout(func(ctx context.Context) error { return c.build(o).Wait(ctx) }),
	})
}

// addProviderControlPlane adds what the provider deploys into the control plane.
func (o *Operation) addProviderControlPlane(g *flow.Graph, f foundation, infrastructure, apiServer flow.TaskID) flow.TaskID {
	deployed := g.Add(flow.Task{
		Name: "Deploying provider's control plane components", Fn: retried(o.deployProviderControlPlane), SkipIf: o.Plan.Workerless,
		Dependencies: []flow.TaskID{f.credentials, infrastructure, apiServer},
	})
	return g.Add(flow.Task{
		Name: "Waiting until provider's control plane components are ready", SkipIf: o.Plan.Workerless, Dependencies: []flow.TaskID{deployed},
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, o.Seed, &extensionsv1alpha1.ControlPlane{ObjectMeta: o.meta(o.Plan.ShootName)}, extension.DefaultTiming)
		},
	})
}

// deployProviderControlPlane writes the ControlPlane.
func (o *Operation) deployProviderControlPlane(ctx context.Context) error {
	object := &extensionsv1alpha1.ControlPlane{ObjectMeta: o.meta(o.Plan.ShootName)}
	return extension.Deploy(ctx, o.Seed, object, true, func() {
		object.Spec = extensionsv1alpha1.ControlPlaneSpec{
			DefaultSpec:                  extensionsv1alpha1.DefaultSpec{Type: o.Plan.ProviderType, ProviderConfig: compact(o.Plan.ControlPlaneProvider)},
			InfrastructureProviderStatus: o.infrastructureStatus(), Region: o.Plan.Region, SecretRef: o.credentialsRef(),
		}
	})
}

// etcd is the component of one etcd.
func (o *Operation) etcd(role etcd.Role) component.Component {
	values := o.Plan.ControlPlane.ETCDMain
	if role == etcd.Events {
		values = o.Plan.ControlPlane.ETCDEvents
	}
	values.Role = role
	return etcd.New(o.Seed, o.Plan.Namespace, o.secrets, values)
}

// deployVPNSeedServer deploys the seed's end of the tunnel, whose key the gateway takes from the Namespace.
func (o *Operation) deployVPNSeedServer(ctx context.Context) error {
	_, key, err := vpnseedserver.ShootKeys(ctx, o.secrets)
	if err != nil {
		return err
	}
	if err := giveKey(ctx, o.Seed, o.Plan.Namespace, string(key)); err != nil {
		return err
	}
	return o.vpnSeedServer().Deploy(ctx)
}

// giveKey notes at a namespace which WireGuard key its Service may have. It is a patch of its own, so that applying the Namespace, before
// there is a key, does not take it away.
func giveKey(ctx context.Context, seed client.Client, name, key string) error {
	namespace := &corev1.Namespace{}
	if err := seed.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	if namespace.Annotations[vpn.AnnotationPublicKey] == key {
		return nil
	}
	patch := client.MergeFrom(namespace.DeepCopy())
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, vpn.AnnotationPublicKey, key)
	if err := seed.Patch(ctx, namespace, patch); err != nil {
		return fmt.Errorf("giving Namespace %s its WireGuard key: %w", name, err)
	}
	return nil
}

// vpnSeedServer is the seed's end of the tunnel.
func (o *Operation) vpnSeedServer() component.Component {
	values := o.Plan.ControlPlane.VPNSeedServer
	values.NodeNetworks = o.nodeNetworks()
	return vpnseedserver.New(o.Seed, o.Plan.Namespace, o.secrets, values)
}

// kubeControllerManager is the component.
func (o *Operation) kubeControllerManager() component.Component {
	return kubecontrollermanager.New(o.Seed, o.Plan.Namespace, o.secrets, o.Plan.ControlPlane.KubeControllerManager)
}

// kubeScheduler is the component.
func (o *Operation) kubeScheduler() component.Component {
	return kubescheduler.New(o.Seed, o.Plan.Namespace, o.secrets, o.Plan.ControlPlane.KubeScheduler)
}

// deployRoute tells the seed's gateway which names lead to this API server.
func (o *Operation) deployRoute(ctx context.Context) error {
	return o.apply(ctx, o.route())
}

// route is the TLSRoute of the API server.
func (o *Operation) route() *gatewayv1.TLSRoute {
	var hostnames []gatewayv1.Hostname
	for _, name := range o.Plan.APIServer.ExternalHostnames {
		hostnames = append(hostnames, gatewayv1.Hostname(name))
	}
	return &gatewayv1.TLSRoute{
		ObjectMeta: o.meta(kubeapiserver.Name),
		Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Name: gatewayName, Namespace: ptr.To(gatewayv1.Namespace(gatewayNamespace)),
			}}},
			Hostnames: hostnames,
			Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Name: kubeapiserver.Name, Port: ptr.To(gatewayv1.PortNumber(kubeapiserver.ServicePort)),
				},
			}}}},
		},
	}
}
