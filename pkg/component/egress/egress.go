// Package egress deploys the proxy by which what acts for tenants leaves a seed, with the authority for both sides of it.
package egress

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
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Namespace of the proxy.
	Namespace = "garden"
	// Host is the name of its Service for clients in other namespaces of the seed.
	Host = egress.Name + "." + Namespace + ".svc"

	healthPort int32 = 8080
	mount            = "/etc/egress"
)

// Values of the proxy.
type Values struct {
	// Image of vpn.
	Image string
	// DeniedNetworks are those of the seed and the garden.
	DeniedNetworks []string
	// AllowedNetworks are exceptions, as egress.ParseAllowance reads them.
	AllowedNetworks []string
}

// Labels are those of the pods.
func Labels() map[string]string { return component.Labels(egress.Name, "proxy") }

// Authority returns the one that signs the certificates of the proxy and of its clients, after making it when it is missing.
func Authority(ctx context.Context, c client.Client) (*corev1.Secret, error) {
	manager, err := newManager(ctx, c)
	if err != nil {
		return nil, err
	}
	return manager.Generate(ctx, authority)
}

var authority = secrets.CertificateConfig{Name: component.CAEgress, CommonName: "egress", CertType: secrets.CACert}

// ClientCertificate is by what extensions that run something for the control plane of a namespace leave the seed. Its Secret holds the
// authority of the proxy too. The manager of the secrets has to know that authority.
func ClientCertificate(namespace string) secrets.CertificateConfig {
	return secrets.CertificateConfig{
		Name: "egress-client", CommonName: namespace, Organization: []string{egress.Extensions}, CertType: secrets.ClientCert, SigningCA: component.CAEgress,
	}
}

func newManager(ctx context.Context, c client.Client) (secrets.Manager, error) {
	return secrets.New(ctx, c, Namespace, secrets.Options{Identity: egress.Name})
}

// New returns the component.
func New(c client.Client, values Values) component.Component {
	return &deployer{client: c, values: values}
}

type deployer struct {
	client client.Client
	values Values
}

// Deploy implements component.Deployer.
func (d *deployer) Deploy(ctx context.Context) error {
	manager, err := newManager(ctx, d.client)
	if err != nil {
		return err
	}
	if _, err := manager.Generate(ctx, authority); err != nil {
		return err
	}
	server, err := manager.Generate(ctx, secrets.CertificateConfig{
		Name: egress.Name, CertType: secrets.ServerCert, SigningCA: component.CAEgress,
		DNSNames: []string{egress.Name, egress.Name + "." + Namespace, Host, Host + ".cluster.local"},
	})
	if err != nil {
		return err
	}
	bundle, err := component.CABundle(manager, component.CAEgress)
	if err != nil {
		return err
	}
	files := []component.SecretFiles{
		{Secret: server.Name, Files: map[string]string{secrets.DataKeyCertificate: "tls/tls.crt", secrets.DataKeyPrivateKey: "tls/tls.key"}},
		{Secret: bundle.Name, Files: map[string]string{secrets.DataKeyCertificateBundle: "ca/bundle.crt"}},
	}
	if err := component.Apply(ctx, d.client, service(), deployment(d.values, files)); err != nil {
		return err
	}
	return manager.Cleanup(ctx)
}

// Destroy implements component.Deployer. The authority stays for control planes that are still there.
func (d *deployer) Destroy(ctx context.Context) error {
	return component.Delete(ctx, d.client, deletable()...)
}

func deletable() []client.Object {
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: egress.Name}
	return []client.Object{&appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}}
}

// Wait implements component.Waiter.
func (d *deployer) Wait(ctx context.Context) error {
	return component.WaitUntilHealthy(ctx, d.client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: egress.Name}})
}

// WaitCleanup implements component.Waiter.
func (d *deployer) WaitCleanup(ctx context.Context) error {
	return component.WaitUntilGone(ctx, d.client, deletable()...)
}

func service() *corev1.Service {
	port := func(name string, port int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: egress.Name, Labels: Labels()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: Labels(),
			Ports: []corev1.ServicePort{port("cluster", egress.ClusterPort), port("outside", egress.OutsidePort)},
		},
	}
}

// Arguments returns the arguments of the container.
func Arguments(v Values) []string {
	arguments := []string{
		"egress",
		fmt.Sprintf("--cluster-address=:%d", egress.ClusterPort),
		fmt.Sprintf("--outside-address=:%d", egress.OutsidePort),
		"--tls-cert-file=" + mount + "/tls/tls.crt",
		"--tls-key-file=" + mount + "/tls/tls.key",
		"--client-ca-file=" + mount + "/ca/bundle.crt",
		fmt.Sprintf("--health-address=:%d", healthPort),
	}
	if len(v.DeniedNetworks) > 0 {
		arguments = append(arguments, "--denied-networks="+strings.Join(v.DeniedNetworks, ","))
	}
	if len(v.AllowedNetworks) > 0 {
		arguments = append(arguments, "--allowed-networks="+strings.Join(v.AllowedNetworks, ","))
	}
	return arguments
}

// mostMemory is above what all connections of both ports can take: those of one control plane are bounded, those of very many are not few.
const mostMemory = "3Gi"

func deployment(v Values, files []component.SecretFiles) *appsv1.Deployment {
	result := component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: Namespace,
		Name:      egress.Name,
		Labels:    Labels(),
		Replicas:  1,
		Image:     v.Image,
		Args:      Arguments(v),
		Requests:  component.Requests("5m", "20Mi"),
		Secrets:   files,
		MountPath: mount,
		Health:    component.HealthEndpoint{Scheme: corev1.URISchemeHTTP, Port: healthPort, Ready: "/readyz", Live: "/healthz"},
		Ports: []corev1.ContainerPort{
			{Name: "cluster", ContainerPort: egress.ClusterPort, Protocol: corev1.ProtocolTCP},
			{Name: "outside", ContainerPort: egress.OutsidePort, Protocol: corev1.ProtocolTCP},
		},
	})
	// It belongs to no control plane, and two of them do no harm.
	result.Labels, result.Spec.Template.Labels = Labels(), Labels()
	result.Spec.Strategy = component.SurgeStrategy()
	container := &result.Spec.Template.Spec.Containers[0]
	container.Resources = component.LimitMemory(container.Resources, mostMemory)
	container.Env = append(container.Env, component.GarbageCollection(container.Resources)...)
	return result
}
