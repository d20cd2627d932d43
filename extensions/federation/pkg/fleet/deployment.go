package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/pkg/shootaccess"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/egress"
)

const (
	// Name of the Deployment, of its service account in the fleet, and of all that belongs to it.
	Name = "federation"

	// egressDir has what the process shows the egress proxy of the seed.
	egressDir    = "/var/run/secrets/trellis.garden/egress"
	egressVolume = "egress"
	// memberAPIDir has the certificate with which replicas serve the API of members.
	memberAPIDir    = "/var/run/secrets/trellis.garden/member-api"
	memberAPIVolume = "member-api"
	healthPort      = 8081
)

// deploymentValues are what the Deployment is made of.
type deploymentValues struct {
	// kubeconfig and egressClient are names of Secrets.
	kubeconfig, egressClient string
	image                    string
	config                   apis.FleetConfig
	// availability of the control plane. In a highly available one, replicas elect a leader.
	availability component.Availability
	// serves says that the fleet's kube-apiserver reaches the API of members in the pods.
	serves bool
	// certificate is that of the API of members, if replicas share one.
	certificate *corev1.Secret
}

func labels() map[string]string { return component.Labels("kubernetes", Name) }

// fillDeployment sets what this package cares about; labels and defaults that others add stay.
func fillDeployment(deployment *appsv1.Deployment, v deploymentValues) {
	deployment.Labels = component.Merge(deployment.Labels, component.WithControlPlaneRole(labels()))
	spec := &deployment.Spec
	spec.Replicas = new(v.availability.Replicas(component.Pair))
	spec.RevisionHistoryLimit = new(int32(1))
	// Two that elect no leader would do no harm, but each other's work.
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if v.availability.IsHigh() {
		spec.Strategy = component.SurgeStrategy()
	}
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{MatchLabels: labels()}
	}
	spec.Template.Labels = component.Merge(component.WithControlPlaneRole(labels()), map[string]string{
		gardencorev1beta1.LabelNetworkPolicyToDNS:            gardencorev1beta1.LabelNetworkPolicyAllowed,
		gardencorev1beta1.LabelNetworkPolicyToShootAPIServer: gardencorev1beta1.LabelNetworkPolicyAllowed,
		gardencorev1beta1.LabelNetworkPolicyToEgress:         gardencorev1beta1.LabelNetworkPolicyAllowed,
	})
	pod := &spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(5))
	pod.TopologySpreadConstraints = v.availability.Spread(labels(), true)
	pod.Containers = []corev1.Container{container(v.image, v.config)}
	pod.Volumes = []corev1.Volume{secretVolume(egressVolume, v.egressClient)}
	if v.availability.IsHigh() {
		pod.Containers[0].Args = append(pod.Containers[0].Args, "--leader-elect")
	}
	if v.serves {
		serveMembers(&pod.Containers[0])
	}
	if v.certificate != nil {
		shareCertificate(&spec.Template, v.certificate, *spec.Replicas)
	}
	*pod = shootaccess.Pod(*pod, v.kubeconfig, Name)
}

func container(image string, config apis.FleetConfig) corev1.Container {
	return corev1.Container{
		Name:            Name,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args: slices.Concat(
			[]string{"--kubeconfig=" + shootaccess.KubeconfigFile}, EgressArguments(), Arguments(config),
		),
		Env:          []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(memoryTarget(config), 10)}},
		VolumeMounts: []corev1.VolumeMount{{Name: egressVolume, MountPath: egressDir, ReadOnly: true}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memoryRequest(config),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: memoryLimit(config)},
		},
		StartupProbe:   component.Healthz(healthPort).Startup(),
		ReadinessProbe: component.Healthz(healthPort).Readiness(2),
		LivenessProbe:  component.Healthz(healthPort).Liveness(),
	}
}

// EgressArguments have the process leave the seed through its egress proxy.
func EgressArguments() []string {
	return []string{
		fmt.Sprintf("--egress-proxy=%s:%d", egresscomponent.Host, egress.OutsidePort),
		"--egress-cert-file=" + egressDir + "/tls.crt", "--egress-key-file=" + egressDir + "/tls.key",
		"--egress-ca-file=" + egressDir + "/ca.crt",
	}
}

// serveMembers has the process serve the API of members where the fleet's kube-apiserver finds what is served for its
// cluster.
func serveMembers(container *corev1.Container) {
	container.Args = append(container.Args, fmt.Sprintf("--member-api-address=:%d", egress.ServedAPIsPort),
		"--member-api-ip="+egress.ServedAPIsAddress.String())
	container.Ports = []corev1.ContainerPort{
		{Name: "member-api", ContainerPort: egress.ServedAPIsPort, Protocol: corev1.ProtocolTCP},
	}
}

const (
	// routesSettle is how long connections may still come to a pod that ends, until those who lead them there know; the
	// pod has graceWithRoutes for that and its end.
	routesSettle    = 3
	graceWithRoutes = 10
)

// shareCertificate has replicas serve the API of members with one certificate; another one rolls them. A replica ends
// when nobody is led to it any more.
func shareCertificate(template *corev1.PodTemplateSpec, certificate *corev1.Secret, replicas int32) {
	checksum := sha256.Sum256(certificate.Data[corev1.TLSCertKey])
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, "checksum/"+certificate.Name, hex.EncodeToString(checksum[:4]))
	pod := &template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(graceWithRoutes))
	pod.Volumes = append(pod.Volumes, secretVolume(memberAPIVolume, certificate.Name))
	container := &pod.Containers[0]
	container.Args = append(container.Args, "--member-api-cert-file="+memberAPIDir+"/"+corev1.TLSCertKey,
		"--member-api-key-file="+memberAPIDir+"/"+corev1.TLSPrivateKeyKey,
		fmt.Sprintf("--member-api-replicas=%d", replicas))
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: memberAPIVolume, MountPath: memberAPIDir, ReadOnly: true})
	container.Lifecycle = &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: routesSettle}},
	}
}

// fillService leads the seed's egress proxy to the process. It does so as soon as the process listens, which is before
// it is ready; but of several replicas only to those that are ready, as one that does not listen would be asked too.
func fillService(service *corev1.Service, availability component.Availability) {
	service.Labels = component.Merge(service.Labels, labels())
	service.Spec.Selector = labels()
	service.Spec.PublishNotReadyAddresses = !availability.IsHigh()
	service.Spec.Ports = []corev1.ServicePort{{
		Name: "https", Protocol: corev1.ProtocolTCP, Port: egress.ServedAPIsPort,
		TargetPort: intstr.FromInt32(egress.ServedAPIsPort),
	}}
}

// FillNetworkPolicy lets the seed's egress proxy, through which the fleet's kube-apiserver comes, and nothing else, ask
// for the API of members.
func FillNetworkPolicy(policy *networkingv1.NetworkPolicy) {
	policy.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: labels()},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{{
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: egresscomponent.Namespace},
				},
				PodSelector: &metav1.LabelSelector{MatchLabels: egresscomponent.Labels()},
			}},
			Ports: []networkingv1.NetworkPolicyPort{{
				Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(egress.ServedAPIsPort)),
			}},
		}},
	}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(int32(0o440)),
	}}}
}
