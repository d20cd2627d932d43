// Package vpnseedserver deploys the seed's end of a shoot's tunnel: a userspace WireGuard with an HTTP CONNECT proxy, which
// kube-apiserver reaches the networks of the shoot through.
package vpnseedserver

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

const (
	// Name of Deployment and Service.
	Name = "vpn-seed-server"
	// SeedKeysName and ShootKeysName are the configuration names of the WireGuard keys of both ends.
	SeedKeysName  = "vpn-seed-server-wireguard"
	ShootKeysName = "vpn-shoot-wireguard"

	healthPort int32 = 8080
	mount            = "/etc/vpn"
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

// New returns the component. The authority ca-vpn must have been generated before Deploy.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{client: c, namespace: namespace, secrets: manager, values: values}
}

type deployer struct {
	client    client.Client
	namespace string
	secrets   secrets.Manager
	values    Values
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

// Deploy implements component.Deployer.
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
	server, err := d.secrets.Generate(ctx, serverCertificate(d.namespace))
	if err != nil {
		return err
	}
	ca, err := component.CABundle(d.secrets, component.CAVPN)
	if err != nil {
		return err
	}
	files := []component.SecretFiles{
		{Secret: seed.Name, Files: map[string]string{secrets.DataKeyWireGuardPrivateKey: "private-key"}},
		{Secret: shoot.Name, Files: map[string]string{secrets.DataKeyWireGuardPublicKey: "peer-public-key"}},
		{Secret: server.Name, Files: map[string]string{
			secrets.DataKeyCertificate: "tls/tls.crt", secrets.DataKeyPrivateKey: "tls/tls.key",
		}},
		{Secret: ca.Name, Files: map[string]string{secrets.DataKeyCertificateBundle: "ca/bundle.crt"}},
	}
	publicKey := string(seed.Data[secrets.DataKeyWireGuardPublicKey])
	return component.Apply(ctx, d.client, service(d.namespace, publicKey), deployment(d.namespace, d.values, files))
}

func serverCertificate(namespace string) secrets.CertificateConfig {
	return secrets.CertificateConfig{
		Name: Name, CertType: secrets.ServerCert, SigningCA: component.CAVPN,
		DNSNames: []string{Name, Name + "." + namespace, Name + "." + namespace + ".svc", Name + "." + namespace + ".svc.cluster.local"},
	}
}

// Destroy implements component.Deployer.
func (d *deployer) Destroy(ctx context.Context) error {
	return component.Delete(ctx, d.client, d.deletable()...)
}

func (d *deployer) deletable() []client.Object {
	meta := metav1.ObjectMeta{Namespace: d.namespace, Name: Name}
	return []client.Object{&appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}}
}

// Wait implements component.Waiter. It does not wait for the tunnel, which takes the shoot's end.
func (d *deployer) Wait(ctx context.Context) error {
	return component.WaitUntilHealthy(ctx, d.client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: Name}})
}

// WaitCleanup implements component.Waiter.
func (d *deployer) WaitCleanup(ctx context.Context) error {
	if err := component.WaitUntilGone(ctx, d.client, d.deletable()...); err != nil {
		return err
	}
	return component.WaitUntilNoPods(ctx, d.client, d.namespace, Labels())
}

func service(namespace, publicKey string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name,
			Labels:      component.WithControlPlaneRole(component.Merge(Labels(), map[string]string{vpn.LabelWireGuard: "true"})),
			Annotations: map[string]string{vpn.AnnotationPublicKey: publicKey},
		},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: Labels(),
			Ports: []corev1.ServicePort{
				{Name: "http-connect", Protocol: corev1.ProtocolTCP, Port: vpn.HTTPConnectPort, TargetPort: intstr.FromInt32(vpn.HTTPConnectPort)},
				{Name: "wireguard", Protocol: corev1.ProtocolUDP, Port: vpn.WireGuardPort, TargetPort: intstr.FromInt32(vpn.WireGuardPort)},
			},
		},
	}
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
		fmt.Sprintf("--listen-port=%d", vpn.WireGuardPort),
		fmt.Sprintf("--proxy-address=:%d", vpn.HTTPConnectPort),
		"--tls-cert-file=" + mount + "/tls/tls.crt",
		"--tls-key-file=" + mount + "/tls/tls.key",
		"--client-ca-file=" + mount + "/ca/bundle.crt",
		"--allowed-ips=" + strings.Join(allowed, ","),
		fmt.Sprintf("--health-address=:%d", healthPort),
	}
	if v.ClusterDNS != "" {
		arguments = append(arguments, "--cluster-dns="+v.ClusterDNS)
	}
	return arguments
}

// mostMemory has room for some ten thousand connections of the cluster's kube-apiserver.
const mostMemory = "1Gi"

func deployment(namespace string, v Values, files []component.SecretFiles) *appsv1.Deployment {
	resources := component.LimitMemory(component.Requests("5m", "20Mi"), mostMemory)
	result := component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: namespace,
		Name:      Name,
		Labels:    Labels(),
		Replicas:  v.Replicas,
		Image:     v.Image,
		Args:      Arguments(v),
		Env:       component.GarbageCollection(resources),
		Requests:  resources,
		Secrets:   files,
		MountPath: mount,
		Health:    component.HealthEndpoint{Scheme: corev1.URISchemeHTTP, Port: healthPort, Ready: "/readyz", Live: "/healthz"},
		Ports: []corev1.ContainerPort{
			{Name: "http-connect", ContainerPort: vpn.HTTPConnectPort, Protocol: corev1.ProtocolTCP},
			{Name: "wireguard", ContainerPort: vpn.WireGuardPort, Protocol: corev1.ProtocolUDP},
		},
	})
	// Two pods with one key would take the tunnel from each other.
	result.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	return result
}
