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
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec NamespacedCloudProfileSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status NamespacedCloudProfileStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacedCloudProfileList is a list of NamespacedCloudProfile objects.
type NamespacedCloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []NamespacedCloudProfile `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// NamespacedCloudProfileSpec is what differs from the parent.
type NamespacedCloudProfileSpec struct {
	// PEM certificates that machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,1,opt,name=caBundle"`
	// Versions with a later expiration.
	// +optional
	Kubernetes *KubernetesSettings `json:"kubernetes,omitempty" protobuf:"bytes,2,opt,name=kubernetes"`
	// Further machine images, or versions with a later expiration.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineImages []MachineImage `json:"machineImages,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,opt,name=machineImages"`
	// Further machine types.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineTypes []MachineType `json:"machineTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,opt,name=machineTypes"`
	// Further volume types.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,6,opt,name=volumeTypes"`
	// The CloudProfile that is extended. Immutable.
	Parent CloudProfileReference `json:"parent" protobuf:"bytes,7,opt,name=parent"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,8,opt,name=providerConfig"`
	// Limits for shoots of this profile.
	// +optional
	Limits *Limits `json:"limits,omitempty" protobuf:"bytes,9,opt,name=limits"`
}

// NamespacedCloudProfileStatus holds the outcome.
type NamespacedCloudProfileStatus struct {
	// Parent and extension merged.
	// +optional
	CloudProfileSpec *CloudProfileSpec `json:"cloudProfileSpec,omitempty" protobuf:"bytes,1,opt,name=cloudProfileSpec"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,2,opt,name=observedGeneration"`
}
