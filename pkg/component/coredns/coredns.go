// Package coredns is the DNS server of a shoot.
package coredns

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
)

const (
	// Name of Deployment and ServiceAccount in kube-system.
	Name = "coredns"
	// ServiceName is what clusters call their DNS Service.
	ServiceName = "kube-dns"

	app                 = "kube-dns"
	configMount         = "/etc/coredns"
	dnsPort       int32 = 8053
	metricsPort   int32 = 9153
	healthPort    int32 = 8080
	readinessPort int32 = 8181
)

// Values of coredns.
type Values struct {
	// Image of coredns.
	Image string
	// ClusterIP is the address of the DNS Service: the tenth of the services' network.
	ClusterIP string
	// ClusterDomain defaults to "cluster.local".
	ClusterDomain string
	// Replicas defaults to 1.
	Replicas int32
	// CommonSuffixes of names that are looked up as they are, whatever the search path of pods.
	CommonSuffixes []string
}

// Decide makes the values of a cluster's DNS.
func Decide(f component.Facts) Values {
	values := Values{
		Image: f.Images[Name], ClusterIP: f.DNS, ClusterDomain: f.ClusterDomain, Replicas: replicas(f.Most),
	}
	if user := f.SystemComponents; user != nil && user.CoreDNS != nil && user.CoreDNS.Rewriting != nil {
		values.CommonSuffixes = user.CoreDNS.Rewriting.CommonSuffixes
	}
	return values
}

// What a replica serves.
const (
	nodesPerReplica int64 = 16
	coresPerReplica int64 = 256
)

// replicas are in proportion to the nodes and cores that the pools may have, and two at least where these do not lie
// on one node. More than the nodes that they may run on would help nobody.
func replicas(most component.PoolSizes) int32 {
	wanted := max(2, roundedUp(most.Nodes, nodesPerReplica), roundedUp(most.Cores, coresPerReplica))
	return int32(max(1, min(wanted, most.SystemNodes)))
}

func roundedUp(amount, per int64) int64 { return (amount + per - 1) / per }

// Objects returns the objects in the shoot.
func Objects(v Values) []client.Object {
	if v.ClusterDomain == "" {
		v.ClusterDomain = "cluster.local"
	}
	if v.Replicas == 0 {
		v.Replicas = 1
	}
	config := component.UniqueConfigMap(Name, app, map[string]string{"Corefile": corefile(v)})
	meta := component.SystemMeta(Name, app)
	global := metav1.ObjectMeta{Name: "system:coredns", Labels: meta.Labels}
	return []client.Object{
		config,
		&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)},
		&rbacv1.ClusterRole{ObjectMeta: global, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{"endpoints", "services", "pods", "namespaces"},
				Verbs: []string{"list", "watch"},
			},
			{
				APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"},
				Verbs: []string{"list", "watch"},
			},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: global,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: global.Name},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: metav1.NamespaceSystem},
			},
		},
		service(v),
		deployment(v, config.Name),
	}
}

func service(v Values) *corev1.Service {
	meta := component.SystemMeta(ServiceName, app)
	meta.Labels["kubernetes.io/cluster-service"] = "true"
	meta.Labels["kubernetes.io/name"] = "CoreDNS"
	return &corev1.Service{
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: v.ClusterIP,
			Selector:  component.SystemLabels(app),
			Ports: []corev1.ServicePort{
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(dnsPort)},
				{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: 53, TargetPort: intstr.FromInt32(dnsPort)},
				{
					Name: "metrics", Protocol: corev1.ProtocolTCP, Port: metricsPort,
					TargetPort: intstr.FromInt32(metricsPort),
				},
			},
		},
	}
}

func deployment(v Values, config string) *appsv1.Deployment {
	meta := component.SystemMeta(Name, app)
	spec := component.HardenedPod(component.PriorityClusterCritical, corev1.PodSpec{
		ServiceAccountName: Name,
		Tolerations:        []corev1.Toleration{{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: component.SystemLabels(app)},
		}},
		// It asks the node's servers itself; its own Service would be a loop.
		DNSPolicy: corev1.DNSDefault,
		Volumes: []corev1.Volume{{Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: config},
			}}}},
		Containers: []corev1.Container{{
			Name:            Name,
			Image:           v.Image,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Args:            []string{"-conf", configMount + "/Corefile"},
			Ports: []corev1.ContainerPort{
				{Name: "dns-udp", ContainerPort: dnsPort, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", ContainerPort: dnsPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			},
			Resources:                component.Requests("5m", "20Mi"),
			SecurityContext:          component.HardenedContainer(),
			StartupProbe:             health(healthPort).Startup(),
			ReadinessProbe:           health(readinessPort).Readiness(2),
			LivenessProbe:            health(healthPort).Liveness(),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts:             []corev1.VolumeMount{{Name: "config", MountPath: configMount, ReadOnly: true}},
		}},
	})
	spec.AutomountServiceAccountToken = new(true)
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(v.Replicas),
			RevisionHistoryLimit: new(int32(1)),
			Strategy:             component.SurgeStrategy(),
			Selector:             &metav1.LabelSelector{MatchLabels: component.SystemLabels(app)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: spec,
			},
		},
	}
}

// health is served by two plugins, at a port each.
func health(port int32) component.HealthEndpoint {
	return component.HealthEndpoint{Scheme: corev1.URISchemeHTTP, Port: port, Ready: "/ready", Live: "/health"}
}
