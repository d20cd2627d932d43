package components

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/component/coredns"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
	"github.com/trellis-garden/trellis/pkg/component/shootsystem"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/component/vpnshoot"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// ControlPlaneValues are the values of components of the control plane; those of kube-apiserver stand by themselves.
type ControlPlaneValues struct {
	ETCDMain, ETCDEvents  etcdcomponent.Values
	KubeControllerManager kubecontrollermanager.Values
	KubeScheduler         kubescheduler.Values
	// VPNSeedServer has no NodeNetworks: the infrastructure may choose them.
	VPNSeedServer vpnseedserver.Values
}

// SystemValues are the values of what runs in kube-system of the shoot, without keys and certificates.
type SystemValues struct {
	System         shootsystem.Values
	VPNShoot       vpnshoot.Values
	KubeProxy      kubeproxy.Values
	CoreDNS        coredns.Values
	MetricsServer  metricsserver.Values
	APIServerProxy apiserverproxy.Values
}

// Builder makes the components of one shoot. To wait for a component or to delete it no values are needed.
type Builder struct {
	Seed client.Client
	// Namespace of the control plane.
	Namespace string
	// Secrets of the control plane; what deploys needs them, and what they are signed with.
	Secrets secrets.Manager

	APIServer    kubeapiserver.Values
	ControlPlane ControlPlaneValues
	System       SystemValues
	// NodeNetworks are known when the infrastructure is; nil if nothing is deployed.
	NodeNetworks func() []string
}

// KubeAPIServer is the component.
func (b *Builder) KubeAPIServer() kubeapiserver.Interface {
	return kubeapiserver.New(b.Seed, b.Namespace, b.Secrets, b.APIServer)
}

// ETCD is the component of one etcd.
func (b *Builder) ETCD(role etcdcomponent.Role) component.Component {
	values := b.ControlPlane.ETCDMain
	if role == etcdcomponent.Events {
		values = b.ControlPlane.ETCDEvents
	}
	values.Role = role
	return etcdcomponent.New(b.Seed, b.Namespace, b.Secrets, values)
}

// VPNSeedServer is the seed's end of the tunnel.
func (b *Builder) VPNSeedServer() component.Component {
	values := b.ControlPlane.VPNSeedServer
	if b.NodeNetworks != nil {
		values.NodeNetworks = b.NodeNetworks()
	}
	return vpnseedserver.New(b.Seed, b.Namespace, b.Secrets, values)
}

// ClusterAutoscaler is the component, as far as it is known before there is a Worker: enough to wait for it and to
// delete it.
func (b *Builder) ClusterAutoscaler() component.Component {
	return clusterautoscaler.New(b.Seed, b.Namespace, clusterautoscaler.Values{})
}

// Bundle returns the certificates to trust of an authority, in PEM.
func (b *Builder) Bundle(name string) ([]byte, error) {
	secret, err := component.CABundle(b.Secrets, name)
	if err != nil {
		return nil, err
	}
	return secret.Data[secrets.DataKeyCertificateBundle], nil
}

func (b *Builder) kubeControllerManager() component.Component {
	return kubecontrollermanager.New(b.Seed, b.Namespace, b.Secrets, b.ControlPlane.KubeControllerManager)
}

func (b *Builder) kubeScheduler() component.Component {
	return kubescheduler.New(b.Seed, b.Namespace, b.Secrets, b.ControlPlane.KubeScheduler)
}

// systemObjects are the rules of access that every shoot starts with.
func (b *Builder) systemObjects(context.Context) ([]client.Object, error) {
	return shootsystem.Objects(b.System.System), nil
}

// vpnShootObjects are the shoot's end of the tunnel.
func (b *Builder) vpnShootObjects(ctx context.Context) ([]client.Object, error) {
	values := b.System.VPNShoot
	var err error
	if values.PrivateKey, values.SeedPublicKey, err = vpnseedserver.ShootKeys(ctx, b.Secrets); err != nil {
		return nil, err
	}
	return vpnshoot.Objects(values), nil
}

// kubeProxyObjects are kube-proxy.
func (b *Builder) kubeProxyObjects(context.Context) ([]client.Object, error) {
	values := b.System.KubeProxy
	var err error
	if values.CABundle, err = b.Bundle(component.CACluster); err != nil {
		return nil, err
	}
	return kubeproxy.Objects(values)
}

// coreDNSObjects are the cluster's DNS.
func (b *Builder) coreDNSObjects(context.Context) ([]client.Object, error) {
	return coredns.Objects(b.System.CoreDNS), nil
}

// metricsServerObjects tell what pods and nodes use.
func (b *Builder) metricsServerObjects(ctx context.Context) ([]client.Object, error) {
	values := b.System.MetricsServer
	certificate, err := metricsserver.ServerCertificate(ctx, b.Secrets)
	if err != nil {
		return nil, err
	}
	values.Certificate, values.PrivateKey = certificate.Data[secrets.DataKeyCertificate],
		certificate.Data[secrets.DataKeyPrivateKey]
	if values.CABundle, err = b.Bundle(component.CAMetricsServer); err != nil {
		return nil, err
	}
	if values.KubeletCABundle, err = b.Bundle(component.CAKubelet); err != nil {
		return nil, err
	}
	return metricsserver.Objects(values), nil
}

// apiServerProxyObjects let pods reach the Service kubernetes.
func (b *Builder) apiServerProxyObjects(context.Context) ([]client.Object, error) {
	return apiserverproxy.Objects(b.System.APIServerProxy), nil
}
