package component

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ControlPlaneDeploymentValues describe a Deployment with one hardened container that mounts Secrets.
type ControlPlaneDeploymentValues struct {
	// Namespace and Name of the Deployment; the container has its name.
	Namespace, Name string
	// Labels select the pods.
	Labels   map[string]string
	Replicas int32
	Image    string
	Command  []string
	Args     []string
	Env      []corev1.EnvVar
	Requests corev1.ResourceRequirements
	// Secrets appear as files below MountPath.
	Secrets   []SecretFiles
	MountPath string
	// Health is what the probes ask.
	Health HealthEndpoint
	// Ports are further ports of the container, for people to read.
	Ports []corev1.ContainerPort
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane, which says how replicas keep away from each other.
	Availability Availability
	// ConnectsTo are labels by which the pods ask for connections of theirs (LabelNetworkPolicyToDNS and others).
	ConnectsTo []string
}

// ControlPlaneDeployment returns the Deployment of a simple part of a control plane.
func ControlPlaneDeployment(v ControlPlaneDeploymentValues) *appsv1.Deployment {
	labels := WithControlPlaneRole(v.Labels)
	strategy := SurgeStrategy()
	if v.Replicas <= 1 {
		// A single replica elects no leader, so two must never run at a time.
		strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	podLabels := Merge(labels)
	for _, label := range v.ConnectsTo {
		podLabels[label] = gardencorev1beta1.LabelNetworkPolicyAllowed
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(v.Replicas),
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: v.Labels},
			Strategy:             strategy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec: HardenedPod(v.PriorityClass, corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(10)),
					TopologySpreadConstraints:     v.Availability.Spread(v.Labels, true),
					Volumes:                       []corev1.Volume{ProjectedSecrets("secrets", v.Secrets...)},
					Containers: []corev1.Container{{
						Name:                     v.Name,
						Image:                    v.Image,
						ImagePullPolicy:          corev1.PullIfNotPresent,
						Command:                  v.Command,
						Args:                     v.Args,
						Env:                      v.Env,
						Ports:                    v.Ports,
						StartupProbe:             v.Health.Startup(),
						ReadinessProbe:           v.Health.Readiness(2),
						LivenessProbe:            v.Health.Liveness(),
						Resources:                v.Requests,
						SecurityContext:          HardenedContainer(),
						TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
						VolumeMounts: []corev1.VolumeMount{
							{Name: "secrets", MountPath: v.MountPath, ReadOnly: true},
						},
					}},
				}),
			},
		},
	}
}
