package fleet

import (
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
	egressDir  = "/var/run/secrets/trellis.garden/egress"
	healthPort = 8081
)

// fillDeployment sets what this package cares about; labels and defaults that others add stay.
func fillDeployment(deployment *appsv1.Deployment, kubeconfig, egressClient, image string, config apis.FleetConfig) {
	selector := map[string]string{"app": "kubernetes", "role": Name}
	deployment.Labels = component.Merge(deployment.Labels, component.WithControlPlaneRole(selector))
	spec := &deployment.Spec
	spec.Replicas = new(int32(1))
	spec.RevisionHistoryLimit = new(int32(1))
	// Two of them would do no harm, but each other's work.
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	}
	spec.Template.Labels = map[string]string{
		"app": "kubernetes", "role": Name, gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleControlPlane,
		gardencorev1beta1.LabelNetworkPolicyToDNS:            gardencorev1beta1.LabelNetworkPolicyAllowed,
		gardencorev1beta1.LabelNetworkPolicyToShootAPIServer: gardencorev1beta1.LabelNetworkPolicyAllowed,
		gardencorev1beta1.LabelNetworkPolicyToEgress:         gardencorev1beta1.LabelNetworkPolicyAllowed,
	}
	pod := &spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(5))
	pod.Containers = []corev1.Container{container(image, config)}
	pod.Volumes = []corev1.Volume{egressVolume(egressClient)}
	*pod = shootaccess.Pod(*pod, kubeconfig, Name)
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
		VolumeMounts: []corev1.VolumeMount{{Name: "egress", MountPath: egressDir, ReadOnly: true}},
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

// fillService leads the seed's egress proxy to the process. It does so as soon as the process listens, which is before
// it is ready.
func fillService(service *corev1.Service) {
	service.Labels = component.Merge(service.Labels, map[string]string{"app": "kubernetes", "role": Name})
	service.Spec.Selector = map[string]string{"app": "kubernetes", "role": Name}
	service.Spec.PublishNotReadyAddresses = true
	service.Spec.Ports = []corev1.ServicePort{{
		Name: "https", Protocol: corev1.ProtocolTCP, Port: egress.ServedAPIsPort,
		TargetPort: intstr.FromInt32(egress.ServedAPIsPort),
	}}
}

// FillNetworkPolicy lets the seed's egress proxy, through which the fleet's kube-apiserver comes, and nothing else, ask
// for the API of members.
func FillNetworkPolicy(policy *networkingv1.NetworkPolicy) {
	policy.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "kubernetes", "role": Name}},
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

func egressVolume(secret string) corev1.Volume {
	return corev1.Volume{Name: "egress", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(int32(0o440)),
	}}}
}
