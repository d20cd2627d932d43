// Package vpnseedserver deploys the seed's end of a shoot's tunnel: a userspace WireGuard with an HTTP CONNECT proxy,
// which kube-apiserver reaches the networks of the shoot through.
package vpnseedserver

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/connectproxy"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

const (
	// Name of Deployment and Service.
	Name = "vpn-seed-server"
	// SeedKeysName and ShootKeysName are the configuration names of the WireGuard keys of both ends.
	SeedKeysName  = "vpn-seed-server-wireguard"
	ShootKeysName = "vpn-shoot-wireguard"

	mount = "/etc/vpn"
)

// Values of a vpn-seed-server.
type Values struct {
	// Image of vpn.
	Image string
	// Replicas; 0 for a hibernated control plane.
	Replicas int32
	// NodeNetworks, PodNetworks and ServiceNetworks are the CIDRs of the shoot that may be reached.
	NodeNetworks, PodNetworks, ServiceNetworks []string
	// ClusterDNS is the address of the shoot's DNS server; empty if names need not be resolved.
	ClusterDNS string
}

// Labels are those of the pods.
func Labels() map[string]string { return component.Labels("vpn-seed-server", "vpn") }

// Decide makes the values of a cluster's vpn-seed-server, but NodeNetworks: the infrastructure may choose them.
func Decide(f component.Facts) Values {
	return Values{
		Image: f.Images["vpn"], Replicas: 1, ClusterDNS: f.DNS, PodNetworks: f.PodNetworks,
		ServiceNetworks: f.ServiceNetworks,
	}
}

// New returns the component. The authority ca-vpn and the Namespace must be there before Deploy.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{Proxy: newProxy(c, namespace), secrets: manager, values: values}
}

// deployer destroys and waits as every proxy does. It does not wait for the tunnel, which takes the shoot's end.
type deployer struct {
	connectproxy.Proxy
	secrets secrets.Manager
	values  Values
}

func newProxy(c client.Client, namespace string) connectproxy.Proxy {
	return connectproxy.Proxy{
		Client: c, Namespace: namespace, Name: Name, Labels: Labels(), Authority: component.CAVPN, MountPath: mount,
		Ports: []corev1.ContainerPort{
			{Name: "http-connect", ContainerPort: vpn.HTTPConnectPort, Protocol: corev1.ProtocolTCP},
			{Name: "wireguard", ContainerPort: vpn.TunnelPort, Protocol: corev1.ProtocolUDP},
		},
	}
}

// ShootKeys returns what the shoot's end needs: its private key and the seed's public key. They are made when they are
// missing.
func ShootKeys(ctx context.Context, manager secrets.Manager) (privateKey, seedPublicKey []byte, err error) {
	seed, err := manager.Generate(ctx, secrets.WireGuardKeyPairConfig{Name: SeedKeysName})
	if err != nil {
		return nil, nil, err
	}
	shoot, err := manager.Generate(ctx, secrets.WireGuardKeyPairConfig{Name: ShootKeysName})
	if err != nil {
		return nil, nil, err
	}
	return shoot.Data[secrets.DataKeyWireGuardPrivateKey], seed.Data[secrets.DataKeyWireGuardPublicKey], nil
}

// Deploy implements component.Deployer. The gateway takes the key of the seed's end from the Namespace.
func (d *deployer) Deploy(ctx context.Context) error {
	if len(d.values.PodNetworks) == 0 || len(d.values.ServiceNetworks) == 0 {
		return fmt.Errorf("%s: the pod and service networks must be given", Name)
	}
	seed, err := d.secrets.Generate(ctx, secrets.WireGuardKeyPairConfig{Name: SeedKeysName})
	if err != nil {
		return err
	}
	shoot, err := d.secrets.Generate(ctx, secrets.WireGuardKeyPairConfig{Name: ShootKeysName})
	if err != nil {
		return err
	}
	files, err := d.Files(ctx, d.secrets)
	if err != nil {
		return err
	}
	files = append([]component.SecretFiles{
		{Secret: seed.Name, Files: map[string]string{secrets.DataKeyWireGuardPrivateKey: "private-key"}},
		{Secret: shoot.Name, Files: map[string]string{secrets.DataKeyWireGuardPublicKey: "peer-public-key"}},
	}, files...)
	publicKey := string(seed.Data[secrets.DataKeyWireGuardPublicKey])
	if err := giveKey(ctx, d.Client, d.Namespace, publicKey); err != nil {
		return err
	}
	return component.Apply(ctx, d.Client, service(d.Namespace, publicKey), deployment(d.Namespace, d.values, files))
}

// giveKey notes at a namespace which WireGuard key its Service may have. It is a patch of its own, so that applying
// the Namespace, before there is a key, does not take it away.
func giveKey(ctx context.Context, seed client.Client, name, key string) error {
	namespace := &corev1.Namespace{}
	if err := seed.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	if namespace.Annotations[vpnv1alpha1.AnnotationPublicKey] == key {
		return nil
	}
	patch := client.MergeFrom(namespace.DeepCopy())
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, vpnv1alpha1.AnnotationPublicKey, key)
	if err := seed.Patch(ctx, namespace, patch); err != nil {
		return fmt.Errorf("giving Namespace %s its WireGuard key: %w", name, err)
	}
	return nil
}

func service(namespace, publicKey string) *corev1.Service {
	service := newProxy(nil, namespace).Service()
	labels := component.Merge(Labels(), map[string]string{vpnv1alpha1.LabelTunnel: "true"})
	service.Labels = component.WithControlPlaneRole(labels)
	service.Annotations = map[string]string{vpnv1alpha1.AnnotationPublicKey: publicKey}
	return service
}

// Arguments returns the arguments of the container.
func Arguments(v Values) []string {
	var allowed []string
	for _, networks := range [][]string{v.NodeNetworks, v.PodNetworks, v.ServiceNetworks} {
		allowed = append(allowed, networks...)
	}
	arguments := []string{
		"seed-server",
		"--private-key-file=" + mount + "/private-key",
		"--peer-public-key-file=" + mount + "/peer-public-key",
		fmt.Sprintf("--listen-port=%d", vpn.TunnelPort),
		fmt.Sprintf("--proxy-address=:%d", vpn.HTTPConnectPort),
	}
	p := newProxy(nil, "")
	arguments = append(arguments, p.TLSArguments()...)
	arguments = append(arguments, "--allowed-ips="+strings.Join(allowed, ","), p.HealthArgument())
	if v.ClusterDNS != "" {
		arguments = append(arguments, "--cluster-dns="+v.ClusterDNS)
	}
	return arguments
}

// mostMemory has room for some ten thousand connections of the cluster's kube-apiserver.
const mostMemory = "1Gi"

func deployment(namespace string, v Values, files []component.SecretFiles) *appsv1.Deployment {
	result := newProxy(nil, namespace).Deployment(connectproxy.Pod{
		Image: v.Image, Replicas: v.Replicas, Args: Arguments(v), MostMemory: mostMemory, Files: files,
	})
	// Two pods with one key would take the tunnel from each other.
	result.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	return result
}
