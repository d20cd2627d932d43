// Package egress deploys the proxy by which what acts for tenants leaves a seed, with the authority for both sides of
// it.
package egress

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/connectproxy"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Namespace of the proxy.
	Namespace = "garden"
	// Host is the name of its Service for clients in other namespaces of the seed.
	Host = egress.Name + "." + Namespace + ".svc"

	mount = "/etc/egress"
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

// Authority returns the one that signs the certificates of the proxy and of its clients, after making it when it is
// missing.
func Authority(ctx context.Context, c client.Client) (*corev1.Secret, error) {
	manager, err := newManager(ctx, c)
	if err != nil {
		return nil, err
	}
	return manager.Generate(ctx, authority)
}

var authority = secrets.CertificateConfig{Name: component.CAEgress, CommonName: "egress", CertType: secrets.CACert}

// ClientCertificate is by what extensions that run something for the control plane of a namespace leave the seed. Its
// Secret holds the authority of the proxy too. The manager of the secrets has to know that authority.
func ClientCertificate(namespace string) secrets.CertificateConfig {
	return secrets.CertificateConfig{
		Name: "egress-client", CommonName: namespace, Organization: []string{egress.Extensions},
		CertType: secrets.ClientCert, SigningCA: component.CAEgress,
	}
}

func newManager(ctx context.Context, c client.Client) (secrets.Manager, error) {
	return secrets.New(ctx, c, Namespace, secrets.Options{Identity: egress.Name})
}

// New returns the component.
func New(c client.Client, values Values) component.Component {
	return &deployer{Proxy: newProxy(c), values: values}
}

// deployer destroys and waits as every proxy does. The authority stays for control planes that are still there.
type deployer struct {
	connectproxy.Proxy
	values Values
}

func newProxy(c client.Client) connectproxy.Proxy {
	return connectproxy.Proxy{
		Client: c, Namespace: Namespace, Name: egress.Name, Labels: Labels(), Authority: component.CAEgress,
		MountPath: mount,
		Ports: []corev1.ContainerPort{
			{Name: "cluster", ContainerPort: egress.ClusterPort, Protocol: corev1.ProtocolTCP},
			{Name: "outside", ContainerPort: egress.OutsidePort, Protocol: corev1.ProtocolTCP},
		},
	}
}

// Deploy implements component.Deployer.
func (d *deployer) Deploy(ctx context.Context) error {
	manager, err := newManager(ctx, d.Client)
	if err != nil {
		return err
	}
	if _, err := manager.Generate(ctx, authority); err != nil {
		return err
	}
	files, err := d.Files(ctx, manager)
	if err != nil {
		return err
	}
	if err := component.Apply(ctx, d.Client, d.Service(), deployment(d.values, files)); err != nil {
		return err
	}
	return manager.Cleanup(ctx)
}

// Arguments returns the arguments of the container.
func Arguments(v Values) []string {
	arguments := []string{
		"egress",
		fmt.Sprintf("--cluster-address=:%d", egress.ClusterPort),
		fmt.Sprintf("--outside-address=:%d", egress.OutsidePort),
	}
	arguments = append(arguments, newProxy(nil).TLSArguments()...)
	arguments = append(arguments, newProxy(nil).HealthArgument())
	if len(v.DeniedNetworks) > 0 {
		arguments = append(arguments, "--denied-networks="+strings.Join(v.DeniedNetworks, ","))
	}
	if len(v.AllowedNetworks) > 0 {
		arguments = append(arguments, "--allowed-networks="+strings.Join(v.AllowedNetworks, ","))
	}
	return arguments
}

// mostMemory is above what all connections of both ports can take: those of one control plane are bounded, those of
// very many are not few.
const mostMemory = "3Gi"

func deployment(v Values, files []component.SecretFiles) *appsv1.Deployment {
	result := newProxy(nil).Deployment(connectproxy.Pod{
		Image: v.Image, Replicas: 1, Args: Arguments(v), MostMemory: mostMemory, Files: files,
		PriorityClass: component.PrioritySeedSystem900,
	})
	// It belongs to no control plane, and two of them do no harm.
	result.Labels, result.Spec.Template.Labels = Labels(), Labels()
	result.Spec.Strategy = component.SurgeStrategy()
	return result
}
