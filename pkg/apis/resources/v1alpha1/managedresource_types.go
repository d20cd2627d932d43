package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mr,scope=Namespaced
// +kubebuilder:printcolumn:name=Class,type=string,JSONPath=`.spec.class`,description="Who applies the resources"
// +kubebuilder:printcolumn:name=Applied,type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].status`,description="Whether all resources are applied"
// +kubebuilder:printcolumn:name=Healthy,type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesHealthy")].status`,description="Whether all resources are healthy"
// +kubebuilder:printcolumn:name=Progressing,type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesProgressing")].status`,description="Whether a rollout is under way"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// ManagedResource is a set of objects to be kept in a cluster.
type ManagedResource struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec ManagedResourceSpec `json:"spec,omitempty"`
	// What was observed; written by controllers.
	// +optional
	Status ManagedResourceStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ManagedResourceList is a list of ManagedResource objects.
type ManagedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ManagedResource `json:"items"`
}

// ManagedResourceSpec is what objects are wanted, and how they are kept.
type ManagedResourceSpec struct {
	// Who applies them: empty for the shoot of the namespace, "seed" for the seed.
	// +optional
	Class *string `json:"class,omitempty"`
	// Secrets with manifests under any key, or compressed with brotli under data.yaml.br.
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs"`
	// Labels that every object gets.
	// +optional
	InjectLabels map[string]string `json:"injectLabels,omitempty"`
	// Whether labels that others set are removed, except where Kubernetes keeps its state. Defaults to false.
	// +optional
	ForceOverwriteLabels *bool `json:"forceOverwriteLabels,omitempty"`
	// Whether annotations that others set are removed, except where Kubernetes keeps its state. Defaults to false.
	// +optional
	ForceOverwriteAnnotations *bool `json:"forceOverwriteAnnotations,omitempty"`
	// Whether objects stay when the ManagedResource is deleted. Defaults to false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`
	// Sets of kinds whose objects of the same name are the same.
	// +optional
	Equivalences [][]metav1.GroupKind `json:"equivalences,omitempty"`
	// Whether the claims of a StatefulSet go when resource-manager deletes it. Defaults to false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
}

// ManagedResourceStatus is what was last observed of the objects.
type ManagedResourceStatus struct {
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects that are kept.
	// +optional
	Resources []ObjectReference `json:"resources,omitempty"`
	// Checksum of the Secrets' data that was last applied.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
}

// ObjectReference refers to an object with the labels and annotations it was applied with.
type ObjectReference struct {
	corev1.ObjectReference `json:",inline"`
	// Labels that were applied.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations that were applied.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
