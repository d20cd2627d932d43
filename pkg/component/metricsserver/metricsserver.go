// Package metricsserver tells what pods and nodes of a shoot use: metrics-server asks the kubelets and serves
// metrics.k8s.io, an aggregated API that kube-apiserver reaches through the VPN.
package metricsserver

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of Deployment, Service and ServiceAccount in kube-system.
	Name = "metrics-server"
	// APIServiceName is the name of the registration of its API.
	APIServiceName = version + "." + group

	group, version       = "metrics.k8s.io", "v1beta1"
	mount                = "/etc/metrics-server"
	servicePort    int32 = 443
	// Authority signs its certificate, and is its own.
	Authority = "ca-metrics-server"

	port           int32 = 8443
	fileKubeletCA        = "kubelet-ca.crt"
	readRole             = "system:" + Name
	aggregatedRole       = "system:aggregated-metrics-reader"
)

// Values of metrics-server.
type Values struct {
	// Image of metrics-server.
	Image string
	// Certificate and PrivateKey are what it serves with, PEM; ServerCertificate generates them.
	Certificate, PrivateKey []byte
	// CABundle is what kube-apiserver verifies the certificate with, KubeletCABundle what those of kubelets are
	// verified with; PEM.
	CABundle, KubeletCABundle []byte
}

// ServerCertificate returns the Secret with the certificate that metrics-server serves with. The aggregator connects to
// an address and expects the name of the Service.
func ServerCertificate(ctx context.Context, manager secrets.Manager) (*corev1.Secret, error) {
	host := Name + "." + metav1.NamespaceSystem + ".svc"
	return manager.Generate(ctx, secrets.CertificateConfig{
		Name: Name, CommonName: Name, CertType: secrets.ServerCert, SigningCA: Authority,
		DNSNames: []string{Name, Name + "." + metav1.NamespaceSystem, host, host + ".cluster.local"},
	})
}

// Decide makes the values of a cluster's metrics-server, without keys.
func Decide(f component.Facts) Values { return Values{Image: f.Images[Name]} }

// WithKeys adds the certificates that are known when the cluster has its secrets.
func (v Values) WithKeys(ctx context.Context, manager secrets.Manager) (Values, error) {
	certificate, err := ServerCertificate(ctx, manager)
	if err != nil {
		return v, err
	}
	v.Certificate, v.PrivateKey = certificate.Data[secrets.DataKeyCertificate],
		certificate.Data[secrets.DataKeyPrivateKey]
	if v.CABundle, err = component.CABundleData(manager, Authority); err != nil {
		return v, err
	}
	v.KubeletCABundle, err = component.CABundleData(manager, component.CAKubelet)
	return v, err
}

// Objects returns the objects in the shoot.
func Objects(v Values) []client.Object {
	files := component.UniqueSecret(Name, Name, map[string][]byte{
		secrets.DataKeyCertificate: v.Certificate, secrets.DataKeyPrivateKey: v.PrivateKey,
		fileKubeletCA: v.KubeletCABundle,
	})
	meta := component.SystemMeta(Name, Name)
	objects := []client.Object{
		files, &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)},
	}
	return append(append(objects, access()...), service(), deployment(v, files.Name), registration(v.CABundle))
}

// access lets metrics-server read nodes, pods and what kubelets measure, and lets it ask kube-apiserver who its clients
// are and what they may do. Whoever may read a namespace may read what its pods use.
func access() []client.Object {
	labels := component.SystemMeta(Name, Name).Labels
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: metav1.NamespaceSystem}}
	read := []string{"get", "list", "watch"}
	bind := func(name, role string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
	}
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: aggregatedRole, Labels: component.Merge(labels, map[string]string{
				"rbac.authorization.k8s.io/aggregate-to-view":  "true",
				"rbac.authorization.k8s.io/aggregate-to-edit":  "true",
				"rbac.authorization.k8s.io/aggregate-to-admin": "true",
			})},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"pods", "nodes"}, Verbs: read}},
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: readRole, Labels: labels}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes/metrics"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: read},
		}},
		bind(readRole, readRole),
		bind(Name+":system:auth-delegator", "system:auth-delegator"),
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: Name + "-auth-reader", Labels: labels,
			}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader",
			},
		},
	}
}

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: component.SystemMeta(Name, Name),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: component.SystemLabels(Name),
			Ports: []corev1.ServicePort{
				{Name: "https", Protocol: corev1.ProtocolTCP, Port: servicePort, TargetPort: intstr.FromInt32(port)},
			},
		},
	}
}

func registration(bundle []byte) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: APIServiceName, Labels: component.SystemMeta(Name, Name).Labels},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: group, Version: version, GroupPriorityMinimum: 100, VersionPriority: 100, CABundle: bundle,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: metav1.NamespaceSystem, Name: Name, Port: new(servicePort),
			},
		},
	}
}

func deployment(v Values, files string) *appsv1.Deployment {
	meta := component.SystemMeta(Name, Name)
	spec := component.HardenedPod(component.PriorityClusterCritical, corev1.PodSpec{
		ServiceAccountName: Name,
		Tolerations:        []corev1.Toleration{{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists}},
		Volumes: []corev1.Volume{component.ProjectedSecrets("files",
			component.SecretFiles{Secret: files, Files: map[string]string{
				secrets.DataKeyCertificate: secrets.DataKeyCertificate,
				secrets.DataKeyPrivateKey:  secrets.DataKeyPrivateKey, fileKubeletCA: fileKubeletCA,
			}})},
		Containers: []corev1.Container{{
			Name:            Name,
			Image:           v.Image,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Args: []string{
				"--secure-port=" + strconv.Itoa(int(port)),
				"--tls-cert-file=" + mount + "/" + secrets.DataKeyCertificate,
				"--tls-private-key-file=" + mount + "/" + secrets.DataKeyPrivateKey,
				"--kubelet-certificate-authority=" + mount + "/" + fileKubeletCA,
				"--kubelet-preferred-address-types=InternalIP,Hostname,ExternalIP",
				"--kubelet-use-node-status-port",
				// Autoscalers look every 15 seconds.
				"--metric-resolution=15s",
			},
			Ports:           []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Resources:       component.Requests("10m", "40Mi"),
			SecurityContext: component.HardenedContainer(),
			// It is ready once it has measured twice.
			StartupProbe:             health().Startup(),
			ReadinessProbe:           health().Readiness(2),
			LivenessProbe:            health().Liveness(),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts:             []corev1.VolumeMount{{Name: "files", MountPath: mount, ReadOnly: true}},
		}},
	})
	spec.AutomountServiceAccountToken = new(true)
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(int32(1)),
			RevisionHistoryLimit: new(int32(1)),
			Strategy:             component.SurgeStrategy(),
			Selector:             &metav1.LabelSelector{MatchLabels: component.SystemLabels(Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: spec,
			},
		},
	}
}

func health() component.HealthEndpoint {
	return component.HealthEndpoint{Scheme: corev1.URISchemeHTTPS, Port: port, Ready: "/readyz", Live: "/livez"}
}
