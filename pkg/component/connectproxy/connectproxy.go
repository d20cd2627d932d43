// Package connectproxy is what the components have in common that deploy an HTTP CONNECT proxy with mutual TLS:
// vpnseedserver, which leads into a shoot, and egress, which leads out of a seed.
package connectproxy

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const healthPort int32 = 8080

// Proxy is a Deployment and the Service in front of it.
type Proxy struct {
	Client client.Client
	// Namespace and Name of both; the certificate has it, too.
	Namespace, Name string
	// Labels select the pods.
	Labels map[string]string
	// Authority is the name of the one that signs the certificates of the proxy and of its clients.
	Authority string
	// MountPath is where the container sees its files.
	MountPath string
	// Ports of the Service, and of the container.
	Ports []corev1.ContainerPort
	// Others are deleted with Deployment and Service; names are enough.
	Others []client.Object
}

// DNSNames are those of the Service.
func (p Proxy) DNSNames() []string {
	inNamespace := p.Name + "." + p.Namespace
	return []string{p.Name, inNamespace, inNamespace + ".svc", inNamespace + ".svc.cluster.local"}
}

// Files generates the certificate of the proxy, and returns it with the authority that certificates of clients are
// checked by.
func (p Proxy) Files(ctx context.Context, manager secrets.Manager) ([]component.SecretFiles, error) {
	server, err := manager.Generate(ctx, secrets.CertificateConfig{
		Name: p.Name, CertType: secrets.ServerCert, SigningCA: p.Authority, DNSNames: p.DNSNames(),
	})
	if err != nil {
		return nil, err
	}
	bundle, err := component.CABundle(manager, p.Authority)
	if err != nil {
		return nil, err
	}
	return []component.SecretFiles{
		{Secret: server.Name, Files: map[string]string{
			secrets.DataKeyCertificate: "tls/tls.crt", secrets.DataKeyPrivateKey: "tls/tls.key",
		}},
		{Secret: bundle.Name, Files: map[string]string{secrets.DataKeyCertificateBundle: "ca/bundle.crt"}},
	}, nil
}

// TLSArguments are the flags that name the files.
func (p Proxy) TLSArguments() []string {
	return []string{
		"--tls-cert-file=" + p.MountPath + "/tls/tls.crt",
		"--tls-key-file=" + p.MountPath + "/tls/tls.key",
		"--client-ca-file=" + p.MountPath + "/ca/bundle.crt",
	}
}

// HealthArgument is the flag that says where the proxy tells about its health.
func (Proxy) HealthArgument() string { return fmt.Sprintf("--health-address=:%d", healthPort) }

// Service returns the Service.
func (p Proxy) Service() *corev1.Service {
	ports := make([]corev1.ServicePort, 0, len(p.Ports))
	for _, port := range p.Ports {
		ports = append(ports, corev1.ServicePort{
			Name: port.Name, Protocol: port.Protocol, Port: port.ContainerPort,
			TargetPort: intstr.FromInt32(port.ContainerPort),
		})
	}
	return &corev1.Service{
		ObjectMeta: p.meta(),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: p.Labels, Ports: ports},
	}
}

// Pod describes the pods of a proxy.
type Pod struct {
	Image    string
	Replicas int32
	Args     []string
	// MostMemory is the limit, before which garbage is collected.
	MostMemory string
	Files      []component.SecretFiles
	// PriorityClass of the pods.
	PriorityClass string
}

// Deployment returns the Deployment as part of a control plane.
func (p Proxy) Deployment(pod Pod) *appsv1.Deployment {
	resources := component.LimitMemory(component.Requests("5m", "20Mi"), pod.MostMemory)
	return component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: p.Namespace,
		Name:      p.Name,
		Labels:    p.Labels,
		Replicas:  pod.Replicas,
		Image:     pod.Image,
		Args:      pod.Args,
		Env:       component.GarbageCollection(resources),
		Requests:  resources,
		Secrets:   pod.Files,
		MountPath: p.MountPath,
		Health:    component.Healthz(healthPort),
		Ports:     p.Ports,

		PriorityClass: pod.PriorityClass,
	})
}

// Destroy implements component.Deployer.
func (p Proxy) Destroy(ctx context.Context) error { return p.part().Destroy(ctx) }

// Wait implements component.Waiter.
func (p Proxy) Wait(ctx context.Context) error { return p.part().Wait(ctx) }

// WaitCleanup implements component.Waiter.
func (p Proxy) WaitCleanup(ctx context.Context) error { return p.part().WaitCleanup(ctx) }

func (p Proxy) part() *component.Part {
	return &component.Part{
		Client: p.Client, Namespace: p.Namespace, Name: p.Name, Labels: p.Labels,
		Others: append([]client.Object{&corev1.Service{ObjectMeta: p.meta()}}, p.Others...),
	}
}

func (p Proxy) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels}
}
