package shoot

import (
	"context"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/component/coredns"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
	"github.com/trellis-garden/trellis/pkg/component/shootsystem"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/component/vpnshoot"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// addSystemComponents adds what runs inside the shoot. Its ManagedResources are written early: resource-manager applies
// them as soon as the API server answers.
func (o *Operation) addSystemComponents(g *flow.Graph, f foundation, c controlPlane) []flow.TaskID {
	var all []flow.TaskID
	after := append([]flow.TaskID{f.secrets}, o.onceAuthoritiesReplaced(c)...)
	for _, c := range systemComponents {
		all = append(all, g.Add(flow.Task{
			Name: "Deploying " + c.name, SkipIf: !o.Plan.Has(c.name), Dependencies: after,
			Fn: retried(func(ctx context.Context) error {
				objects, err := c.objects(o, ctx)
				if err != nil {
					return err
				}
				return o.deployManagedResource(ctx, c.name, onSystemPools(objects, o.Plan.SystemPoolTolerations)...)
			}),
		}))
	}
	g.Add(flow.Task{
		Name: "Removing system components that the shoot does without", Fn: rollout(o.removeSystemComponents),
		Dependencies: []flow.TaskID{c.apiServer},
	})
	return append(all, o.addNetwork(g, f))
}

// removeSystemComponents takes away what the shoot had before its specification changed, as kube-proxy when that is disabled.
func (o *Operation) removeSystemComponents(ctx context.Context) error {
	for _, c := range systemComponents {
		if o.Plan.Has(c.name) {
			continue
		}
		if err := o.removeManagedResource(ctx, c.name); err != nil {
			return err
		}
	}
	return nil
}

// onSystemPools keeps Deployments on the pools that allow system components, whose taints they tolerate. DaemonSets run everywhere.
func onSystemPools(objects []client.Object, tolerations []corev1.Toleration) []client.Object {
	for _, object := range objects {
		deployment, ok := object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		pod := &deployment.Spec.Template.Spec
		pod.NodeSelector = component.Merge(pod.NodeSelector, map[string]string{gardencorev1beta1.LabelWorkerPoolSystemComponents: "true"})
		pod.Tolerations = append(pod.Tolerations, tolerations...)
	}
	return objects
}

// addNetwork adds the network plugin.
func (o *Operation) addNetwork(g *flow.Graph, f foundation) flow.TaskID {
	skip := o.Plan.Workerless || o.Plan.Networks.Type == ""
	deployed := g.Add(flow.Task{
		Name: "Deploying network plugin", Fn: retried(o.deployNetwork), SkipIf: skip, Dependencies: []flow.TaskID{f.secrets, f.references},
	})
	return g.Add(flow.Task{
		Name: "Waiting until network plugin is ready", SkipIf: skip, Dependencies: []flow.TaskID{deployed},
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, o.Seed, &extensionsv1alpha1.Network{ObjectMeta: o.meta(o.Plan.ShootName)}, extension.DefaultTiming)
		},
	})
}

// systemObjects are the rules of access that every shoot starts with.
func (o *Operation) systemObjects(context.Context) ([]client.Object, error) {
	values := shootsystem.Values{IsWorkerless: o.Plan.Workerless}
	for _, pool := range o.Plan.Pools {
		values.NodeAgentSecrets = append(values.NodeAgentSecrets, pool.SecretName)
	}
	return shootsystem.Objects(values), nil
}

// vpnShootObjects are the shoot's end of the tunnel.
func (o *Operation) vpnShootObjects(ctx context.Context) ([]client.Object, error) {
	privateKey, seedPublicKey, err := vpnseedserver.ShootKeys(ctx, o.secrets)
	if err != nil {
		return nil, err
	}
	return vpnshoot.Objects(vpnshoot.Values{
		Image: o.Plan.Images["vpn"], Endpoint: o.gatewayAt(o.Plan.Gateway.WireGuardPort), PrivateKey: privateKey, SeedPublicKey: seedPublicKey,
	}), nil
}

// kubeProxyObjects are kube-proxy.
func (o *Operation) kubeProxyObjects(context.Context) ([]client.Object, error) {
	bundle, err := o.bundle(component.CACluster)
	if err != nil {
		return nil, err
	}
	values := kubeproxy.Values{
		Image: o.Plan.Images["kube-proxy"], PodNetworks: o.Plan.Networks.Pods, Server: "https://" + o.Plan.Hostname(), CABundle: bundle,
	}
	if user := o.Plan.Kubernetes.KubeProxy; user != nil {
		values.Mode, values.FeatureGates = ptr.Deref(user.Mode, ""), user.FeatureGates
	}
	return kubeproxy.Objects(values)
}

// coreDNSObjects are the cluster's DNS.
func (o *Operation) coreDNSObjects(context.Context) ([]client.Object, error) {
	return coredns.Objects(coredns.Values{
		Image: o.Plan.Images["coredns"], ClusterIP: o.Plan.Networks.DNS, ClusterDomain: clusterDomain, CommonSuffixes: o.Plan.CoreDNS.CommonSuffixes,
		Replicas: o.Plan.CoreDNS.Replicas,
	}), nil
}

// metricsServerObjects tell what pods and nodes use.
func (o *Operation) metricsServerObjects(ctx context.Context) ([]client.Object, error) {
	certificate, err := metricsserver.ServerCertificate(ctx, o.secrets)
	if err != nil {
		return nil, err
	}
	bundle, err := o.bundle(component.CAMetricsServer)
	if err != nil {
		return nil, err
	}
	kubeletBundle, err := o.bundle(component.CAKubelet)
	if err != nil {
		return nil, err
	}
	return metricsserver.Objects(metricsserver.Values{
		Image:       o.Plan.Images["metrics-server"],
		Certificate: certificate.Data[secrets.DataKeyCertificate], PrivateKey: certificate.Data[secrets.DataKeyPrivateKey],
		CABundle: bundle, KubeletCABundle: kubeletBundle,
	}), nil
}

// apiServerProxyObjects let pods reach the Service kubernetes.
func (o *Operation) apiServerProxyObjects(context.Context) ([]client.Object, error) {
	return apiserverproxy.Objects(apiserverproxy.Values{
		Image: o.Plan.Images["vpn"], AdvertiseAddress: o.Plan.APIServer.AdvertiseAddress,
		Gateway: o.gatewayAt(o.Plan.Gateway.ProxyPort), Authority: o.Plan.Hostname(),
	}), nil
}

// gatewayAt is host:port of the seed's gateway.
func (o *Operation) gatewayAt(port int) string {
	return net.JoinHostPort(o.Plan.Gateway.Address, strconv.Itoa(port))
}

// bundle returns the certificates to trust of an authority.
func (o *Operation) bundle(name string) ([]byte, error) {
	secret, err := component.CABundle(o.secrets, name)
	if err != nil {
		return nil, err
	}
	return secret.Data[secrets.DataKeyCertificateBundle], nil
}

// deployNetwork writes the Network.
func (o *Operation) deployNetwork(ctx context.Context) error {
	object := &extensionsv1alpha1.Network{ObjectMeta: o.meta(o.Plan.ShootName)}
	return extension.Deploy(ctx, o.Seed, object, true, func() {
		object.Spec = extensionsv1alpha1.NetworkSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: o.Plan.Networks.Type, ProviderConfig: compact(o.Plan.Networks.ProviderConfig)},
			PodCIDR:     o.Plan.Networks.Pods[0], ServiceCIDR: o.Plan.Networks.Services[0], IPFamilies: o.Plan.Networks.IPFamilies,
		}
	})
}
