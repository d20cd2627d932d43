// Package vpnseedserver deploys the seed's ends of a shoot's tunnels: each a userspace WireGuard with an HTTP CONNECT
// proxy, which kube-apiserver reaches the networks of the shoot through.
package vpnseedserver

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/connectproxy"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

const (
	// Name of Deployment and Service of the first path.
	Name = "vpn-seed-server"

	mount = "/etc/vpn"
	// minReadySeconds is how long the shoot's end takes at most to find a server that was replaced. The other path is
	// not replaced before.
	minReadySeconds = 15
)

// Path is one of the ways into a shoot: a server in the seed with a tunnel of its own, whose keys no other end has.
type Path int

// Every shoot with workers has the First; highly available control planes have the Second as well.
const (
	First Path = iota
	Second
)

// Named returns a name as that of the path's own part.
func (p Path) Named(name string) string {
	if p == First {
		return name
	}
	return fmt.Sprintf("%s-%d", name, p)
}

// Labels are those of the path's pods in the seed.
func (p Path) Labels() map[string]string { return component.Labels(Name, p.Named("vpn")) }

// everyLabel is what the pods of all paths have.
func everyLabel() map[string]string { return map[string]string{component.LabelApp: Name} }

// Paths are those of a control plane.
func Paths(availability component.Availability) []Path {
	if availability.IsHigh() {
		return []Path{First, Second}
	}
	return []Path{First}
}

// Proxies are host:port of the proxies of all paths of a control plane, for clients in its namespace.
func Proxies(availability component.Availability) []string {
	var proxies []string
	for _, path := range Paths(availability) {
		proxies = append(proxies, fmt.Sprintf("%s:%d", path.Named(Name), vpn.HTTPConnectPort))
	}
	return proxies
}

// Values of a vpn-seed-server.
type Values struct {
	// Path that it is the server of.
	Path Path `json:",omitzero"`
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane.
	Availability component.Availability `json:",omitzero"`
	// Image of vpn.
	Image string
	// Replicas; 0 for a hibernated control plane.
	Replicas int32
	// NodeNetworks, PodNetworks and ServiceNetworks are the CIDRs of the shoot that may be reached.
	NodeNetworks, PodNetworks, ServiceNetworks []string
	// ClusterDNS is the address of the shoot's DNS server; empty if names need not be resolved.
	ClusterDNS string
}

// Decide makes the values of a cluster's vpn-seed-server of a path, but NodeNetworks: the infrastructure may choose
// them.
func Decide(path Path) func(component.Facts) Values {
	return func(f component.Facts) Values {
		return Values{
			Path: path, PriorityClass: f.PriorityClass, Availability: f.Availability,
			Image: f.Images["vpn"], Replicas: 1, ClusterDNS: f.DNS, PodNetworks: f.PodNetworks,
			ServiceNetworks: f.ServiceNetworks,
		}
	}
}

// New returns the component. The authority ca-vpn and the Namespace must be there before Deploy. To wait for it and to
// delete it, its Path is needed.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{Proxy: newProxy(c, namespace, values.Path), secrets: manager, values: values}
}

// deployer destroys and waits as every proxy does. It does not wait for the tunnel, which takes the shoot's end.
type deployer struct {
	connectproxy.Proxy
	secrets secrets.Manager
	values  Values
}

func newProxy(c client.Client, namespace string, path Path) connectproxy.Proxy {
	var others []client.Object
	if path == First {
		others = append(others, budget(namespace))
	}
	return connectproxy.Proxy{
		Client: c, Namespace: namespace, Name: path.Named(Name), Labels: path.Labels(), Authority: component.CAVPN,
		MountPath: mount, Others: others,
		Ports: []corev1.ContainerPort{
			{Name: "http-connect", ContainerPort: vpn.HTTPConnectPort, Protocol: corev1.ProtocolTCP},
			{Name: "wireguard", ContainerPort: vpn.TunnelPort, Protocol: corev1.ProtocolUDP},
		},
	}
}

// budget has drains take the servers of one path at a time. It goes with that of the first.
func budget(namespace string) *policyv1.PodDisruptionBudget {
	return component.DisruptionBudget(namespace, Name, everyLabel())
}

// seedKeys and shootKeys are the WireGuard keys of both ends of a path.
func seedKeys(path Path) secrets.WireGuardKeyPairConfig {
	return secrets.WireGuardKeyPairConfig{Name: path.Named(Name) + "-wireguard"}
}

func shootKeys(path Path) secrets.WireGuardKeyPairConfig {
	return secrets.WireGuardKeyPairConfig{Name: path.Named("vpn-shoot") + "-wireguard"}
}

// ShootKeys returns what the shoot's end of a path needs: its private key and the seed's public key. They are made when
// they are missing.
func ShootKeys(ctx context.Context, manager secrets.Manager, path Path) (privateKey, seedPublicKey []byte, err error) {
	seed, err := manager.Generate(ctx, seedKeys(path))
	if err != nil {
		return nil, nil, err
	}
	shoot, err := manager.Generate(ctx, shootKeys(path))
	if err != nil {
		return nil, nil, err
	}
	return shoot.Data[secrets.DataKeyWireGuardPrivateKey], seed.Data[secrets.DataKeyWireGuardPublicKey], nil
}

// Deploy implements component.Deployer. The gateway takes the keys of the seed's ends from the Namespace.
func (d *deployer) Deploy(ctx context.Context) error {
	if len(d.values.PodNetworks) == 0 || len(d.values.ServiceNetworks) == 0 {
		return fmt.Errorf("%s: the pod and service networks must be given", Name)
	}
	seed, err := d.secrets.Generate(ctx, seedKeys(d.values.Path))
	if err != nil {
		return err
	}
	shoot, err := d.secrets.Generate(ctx, shootKeys(d.values.Path))
	if err != nil {
		return err
	}
	files, err := d.Files(ctx, d.secrets)
	if err != nil {
		return err
	}
	if err := d.giveKeys(ctx); err != nil {
		return err
	}
	files = append([]component.SecretFiles{
		{Secret: seed.Name, Files: map[string]string{secrets.DataKeyWireGuardPrivateKey: "private-key"}},
		{Secret: shoot.Name, Files: map[string]string{secrets.DataKeyWireGuardPublicKey: "peer-public-key"}},
	}, files...)
	objects := []client.Object{
		service(d.Namespace, d.values.Path, string(seed.Data[secrets.DataKeyWireGuardPublicKey])),
		deployment(d.Namespace, d.values, files),
	}
	if d.values.Path == First && d.values.Availability.IsHigh() {
		objects = append(objects, budget(d.Namespace))
	}
	return component.Apply(ctx, d.Client, objects...)
}

// giveKeys notes at the namespace which WireGuard keys its Services may have: those of all paths, whichever is deployed
// first.
func (d *deployer) giveKeys(ctx context.Context) error {
	var keys []string
	for _, path := range Paths(d.values.Availability) {
		seed, err := d.secrets.Generate(ctx, seedKeys(path))
		if err != nil {
			return err
		}
		keys = append(keys, string(seed.Data[secrets.DataKeyWireGuardPublicKey]))
	}
	return note(ctx, d.Client, d.Namespace, strings.Join(keys, ","))
}

// note is a patch of its own, so that applying the Namespace, before there is a key, does not take it away.
func note(ctx context.Context, seed client.Client, name, key string) error {
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
		return fmt.Errorf("giving Namespace %s its WireGuard keys: %w", name, err)
	}
	return nil
}

func service(namespace string, path Path, publicKey string) *corev1.Service {
	service := newProxy(nil, namespace, path).Service()
	labels := component.Merge(path.Labels(), map[string]string{vpnv1alpha1.LabelTunnel: "true"})
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
	p := newProxy(nil, "", v.Path)
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
	result := newProxy(nil, namespace, v.Path).Deployment(connectproxy.Pod{
		Image: v.Image, Replicas: v.Replicas, Args: Arguments(v), MostMemory: mostMemory, Files: files,
		PriorityClass: v.PriorityClass,
	})
	// Two pods with one key would take the tunnel from each other.
	result.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if v.Availability.IsHigh() {
		result.Spec.MinReadySeconds = minReadySeconds
	}
	if v.Path == Second {
		// The first says nothing of it, and so stays as it is when a second one comes.
		result.Spec.Template.Spec.Affinity = v.Availability.KeepAway(First.Labels())
	}
	return result
}
