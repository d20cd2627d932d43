package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// GardenletDeployment says how a gardenlet is deployed.
type GardenletDeployment struct {
	// Number of pods. One of them works, the others take over when it ends. Defaults to 2.
	// +optional
	ReplicaCount *int32 `json:"replicaCount,omitempty" protobuf:"bytes,1,opt,name=replicaCount"`
	// Old ReplicaSets that are kept. Defaults to 2.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"bytes,2,opt,name=revisionHistoryLimit"`
	// Name of the ServiceAccount of the pods, which is made for them. Defaults to gardenlet.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty" protobuf:"bytes,3,opt,name=serviceAccountName"`
	// Image of the container.
	// +optional
	Image *Image `json:"image,omitempty" protobuf:"bytes,4,opt,name=image"`
	// Requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty" protobuf:"bytes,5,opt,name=resources"`
	// Labels of the pods, besides app and role.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty" protobuf:"bytes,6,opt,name=podLabels"`
	// Annotations of the pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty" protobuf:"bytes,7,opt,name=podAnnotations"`
	// More volumes of the pods, besides config and tmp.
	// +optional
	AdditionalVolumes []corev1.Volume `json:"additionalVolumes,omitempty" protobuf:"bytes,8,opt,name=additionalVolumes"`
	// More mounts of the container.
	// +optional
	AdditionalVolumeMounts []corev1.VolumeMount `json:"additionalVolumeMounts,omitempty" protobuf:"bytes,9,opt,name=additionalVolumeMounts"`
	// Environment of the container, besides GOGC, HOME and IMAGE_VECTOR_OVERWRITE.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty" protobuf:"bytes,10,opt,name=env"`
	// Tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty" protobuf:"bytes,11,opt,name=tolerations"`
	// Whether kubelet probes the pods. Defaults to true.
	// +optional
	EnableHealthProbes *bool `json:"enableHealthProbes,omitempty" protobuf:"bytes,12,opt,name=enableHealthProbes"`
}

// Image names a container image: by ref, or by repository and tag. What is left out is taken from the installing
// process' own image.
type Image struct {
	// Repository of the image.
	// +optional
	Repository *string `json:"repository,omitempty" protobuf:"bytes,1,opt,name=repository"`
	// Tag of the image.
	// +optional
	Tag *string `json:"tag,omitempty" protobuf:"bytes,2,opt,name=tag"`
	// When the image is pulled: Always, IfNotPresent or Never. Defaults to Always for tag latest, else IfNotPresent.
	// +optional
	PullPolicy *corev1.PullPolicy `json:"pullPolicy,omitempty" protobuf:"bytes,3,opt,name=pullPolicy"`
	// The whole reference. Excludes repository and tag.
	// +optional
	Ref *string `json:"ref,omitempty" protobuf:"bytes,4,opt,name=ref"`
}
