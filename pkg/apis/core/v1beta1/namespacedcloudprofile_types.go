package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacedCloudProfile extends a CloudProfile for the shoots of one project.
type NamespacedCloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec NamespacedCloudProfileSpec `json:"spec,omitempty"`
	// What was observed; written by controllers.
	// +optional
	Status NamespacedCloudProfileStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacedCloudProfileList is a list of NamespacedCloudProfile objects.
type NamespacedCloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []NamespacedCloudProfile `json:"items"`
}

// NamespacedCloudProfileSpec is what differs from the parent.
type NamespacedCloudProfileSpec struct {
	// PEM certificates that machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Versions with a later expiration.
	// +optional
	Kubernetes *KubernetesSettings `json:"kubernetes,omitempty"`
	// Further machine images, or versions with a later expiration.
	// +optional
	MachineImages []MachineImage `json:"machineImages,omitempty"`
	// Further machine types.
	// +optional
	MachineTypes []MachineType `json:"machineTypes,omitempty"`
	// Further volume types.
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty"`
	// The CloudProfile that is extended. Immutable.
	Parent CloudProfileReference `json:"parent"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Limits for shoots of this profile.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// NamespacedCloudProfileStatus holds the outcome.
type NamespacedCloudProfileStatus struct {
	// Parent and extension merged.
	// +optional
	CloudProfileSpec *CloudProfileSpec `json:"cloudProfileSpec,omitempty"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
