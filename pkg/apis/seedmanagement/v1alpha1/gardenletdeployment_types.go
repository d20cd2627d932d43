package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// GardenletDeployment says how a gardenlet is deployed.
type GardenletDeployment struct {
	// Number of pods. Defaults to 2.
	// +optional
	ReplicaCount *int32 `json:"replicaCount,omitempty"`
	// Old ReplicaSets that are kept. Defaults to 2.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// ServiceAccount of the pods.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`
	// Image of the container.
	// +optional
	Image *Image `json:"image,omitempty"`
	// Requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Labels of the pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// Annotations of the pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
	// More volumes of the pods.
	// +optional
	AdditionalVolumes []corev1.Volume `json:"additionalVolumes,omitempty"`
	// More mounts of the container.
	// +optional
	AdditionalVolumeMounts []corev1.VolumeMount `json:"additionalVolumeMounts,omitempty"`
	// Environment of the container.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Whether kubelet probes the pods. Defaults to true.
	// +optional
	EnableHealthProbes *bool `json:"enableHealthProbes,omitempty"`
}

// Image names a container image: by ref, or by repository and tag. What is left out is taken from the installing process' own
// image.
type Image struct {
	// Repository of the image.
	// +optional
	Repository *string `json:"repository,omitempty"`
	// Tag of the image.
	// +optional
	Tag *string `json:"tag,omitempty"`
	// When the image is pulled: Always, IfNotPresent or Never. Defaults to Always for tag latest, else IfNotPresent.
	// +optional
	PullPolicy *corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// The whole reference. Excludes repository and tag.
	// +optional
	Ref *string `json:"ref,omitempty"`
}
