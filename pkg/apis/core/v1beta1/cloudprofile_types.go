package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CloudProfile says what can be ordered in an infrastructure: versions, machine types, images, regions.
type CloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec CloudProfileSpec `json:"spec,omitempty"`
	// What was observed; written by controllers.
	// +optional
	Status CloudProfileStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CloudProfileList is a list of CloudProfile objects.
type CloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []CloudProfile `json:"items"`
}

// CloudProfileSpec is what can be ordered.
type CloudProfileSpec struct {
	// PEM certificates that machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Kubernetes versions that are offered.
	Kubernetes KubernetesSettings `json:"kubernetes"`
	// Machine images that are offered.
	MachineImages []MachineImage `json:"machineImages"`
	// Machine types that are offered.
	MachineTypes []MachineType `json:"machineTypes"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Regions with their zones.
	Regions []Region `json:"regions"`
	// Seeds that may host shoots of this profile.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Type of the infrastructure.
	Type string `json:"type"`
	// Volume types that are offered.
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty"`
	// Machine of bastions.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty"`
	// Limits for shoots of this profile.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
	// Names and values of capabilities that machine types and images may have.
	// +optional
	MachineCapabilities []CapabilityDefinition `json:"machineCapabilities,omitempty"`
	// Settings for control planes.
	// +optional
	ControlPlane *CloudProfileControlPlane `json:"controlPlane,omitempty"`
}

// KubernetesSettings lists Kubernetes versions.
type KubernetesSettings struct {
	// Versions that are offered.
	// +optional
	Versions []ExpirableVersion `json:"versions,omitempty"`
}

// ExpirableVersion is a version with its life cycle.
type ExpirableVersion struct {
	// Full semantic version.
	Version string `json:"version"`
	// When the version expires; until then it may be used.
	//
	// Deprecated: use lifecycle.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty"`
	// Where the version is in its life.
	//
	// Deprecated: use lifecycle.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty"`
	// Stages of the version's life, each with its start.
	// +optional
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty"`
}

// VersionClassification is where a version is in its life.
type VersionClassification string

const (
	// ClassificationUnavailable is not offered yet.
	ClassificationUnavailable VersionClassification = "unavailable"
	// ClassificationPreview is offered for trying it out; never chosen by default.
	ClassificationPreview VersionClassification = "preview"
	// ClassificationSupported is what should be used.
	ClassificationSupported VersionClassification = "supported"
	// ClassificationDeprecated is still offered, but a newer version should be used.
	ClassificationDeprecated VersionClassification = "deprecated"
	// ClassificationExpired is offered no longer.
	ClassificationExpired VersionClassification = "expired"
)

// LifecycleStage is a stage of a version's life.
type LifecycleStage struct {
	// Name of the stage.
	Classification VersionClassification `json:"classification"`
	// When it starts; at once when left out.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
}

// MachineImage is a machine image with its versions.
type MachineImage struct {
	// Name of the image.
	Name string `json:"name"`
	// Versions of the image.
	Versions []MachineImageVersion `json:"versions"`
	// How far automatic updates go. Defaults to major.
	// +optional
	UpdateStrategy *MachineImageUpdateStrategy `json:"updateStrategy,omitempty"`
}

// MachineImageUpdateStrategy is how far automatic updates of a machine image go.
type MachineImageUpdateStrategy string

const (
	// UpdateStrategyPatch stays in the minor version.
	UpdateStrategyPatch MachineImageUpdateStrategy = "patch"
	// UpdateStrategyMinor stays in the major version.
	UpdateStrategyMinor MachineImageUpdateStrategy = "minor"
	// UpdateStrategyMajor goes to the newest version.
	UpdateStrategyMajor MachineImageUpdateStrategy = "major"
)

// MachineImageVersion is a version of a machine image.
type MachineImageVersion struct {
	// Full semantic version.
	Version string `json:"version"`
	// When the version expires; until then it may be used.
	//
	// Deprecated: use lifecycle.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty"`
	// Where the version is in its life.
	//
	// Deprecated: use lifecycle.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty"`
	// Stages of the version's life, each with its start.
	// +optional
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty"`
	// Container runtimes of the image. Defaults to containerd.
	// +optional
	CRI []CRI `json:"cri,omitempty"`
	// CPU architectures of the image. Defaults to amd64.
	// +optional
	Architectures []string `json:"architectures,omitempty"`
	// Kubelet versions that run on the image, such as ">= 1.34".
	// +optional
	KubeletVersionConstraint *string `json:"kubeletVersionConstraint,omitempty"`
	// Whether machines can be updated in place to this version.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
	// Combinations of capabilities in which this version exists.
	// +optional
	CapabilityFlavors []MachineImageFlavor `json:"capabilityFlavors,omitempty"`
}

// InPlaceUpdates says whether machines can be updated in place.
type InPlaceUpdates struct {
	// Whether they can.
	Supported bool `json:"supported"`
	// Least version from which they can.
	// +optional
	MinVersionForUpdate *string `json:"minVersionForUpdate,omitempty"`
}

// MachineType is a machine type that is offered.
type MachineType struct {
	// Number of CPUs.
	CPU resource.Quantity `json:"cpu"`
	// Number of GPUs.
	GPU resource.Quantity `json:"gpu"`
	// Size of the memory.
	Memory resource.Quantity `json:"memory"`
	// Name of the type in the infrastructure.
	Name string `json:"name"`
	// Root volume that comes with the type.
	// +optional
	Storage *MachineTypeStorage `json:"storage,omitempty"`
	// Whether new pools may use it. Defaults to true.
	// +optional
	Usable *bool `json:"usable,omitempty"`
	// CPU architecture, amd64 or arm64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
	// Capabilities of the type.
	// +optional
	Capabilities Capabilities `json:"capabilities,omitempty"`
	// Settings of the machine-controller-manager for this pool.
	// +optional
	MachineControllerManager *CloudProfileMachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
}

// MachineTypeStorage is the root volume that comes with a machine type.
type MachineTypeStorage struct {
	// Class of the storage: standard or premium.
	Class string `json:"class"`
	// Size; conflicts with minSize.
	// +optional
	StorageSize *resource.Quantity `json:"size,omitempty"`
	// Type of the storage.
	Type string `json:"type"`
	// Least size that can be asked for.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

// CloudProfileMachineControllerManagerSettings configures the machine-controller-manager for a machine type.
type CloudProfileMachineControllerManagerSettings struct {
	// How long a machine may take to become a node.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
}

// Region is a region of the infrastructure.
type Region struct {
	// Name of the region.
	Name string `json:"name"`
	// Zones of the region.
	// +optional
	Zones []AvailabilityZone `json:"zones,omitempty"`
	// Labels, such as the distance to seeds.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Access restrictions that the region honours.
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty"`
}

// AvailabilityZone is a zone of a region.
type AvailabilityZone struct {
	// Name of the zone.
	Name string `json:"name"`
	// Machine types that the zone lacks.
	// +optional
	UnavailableMachineTypes []string `json:"unavailableMachineTypes,omitempty"`
	// Volume types that the zone lacks.
	// +optional
	UnavailableVolumeTypes []string `json:"unavailableVolumeTypes,omitempty"`
}

// VolumeType is a volume type that is offered.
type VolumeType struct {
	// Class of the storage: standard or premium.
	Class string `json:"class"`
	// Name of the type in the infrastructure.
	Name string `json:"name"`
	// Whether new pools may use it. Defaults to true.
	// +optional
	Usable *bool `json:"usable,omitempty"`
	// Least size that can be asked for.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

// Bastion is the machine of bastions.
type Bastion struct {
	// Its image.
	// +optional
	MachineImage *BastionMachineImage `json:"machineImage,omitempty"`
	// Its type.
	// +optional
	MachineType *BastionMachineType `json:"machineType,omitempty"`
}

// BastionMachineImage names the image of bastions.
type BastionMachineImage struct {
	// Name of an image of the profile.
	Name string `json:"name"`
	// Version of the image. Defaults to the newest one.
	// +optional
	Version *string `json:"version,omitempty"`
}

// BastionMachineType names the machine type of bastions.
type BastionMachineType struct {
	// Name of a machine type of the profile.
	Name string `json:"name"`
}

// Limits limits the shoots of a profile.
type Limits struct {
	// Most nodes of a shoot.
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty"`
}

// CapabilityDefinition is a capability with its possible values.
type CapabilityDefinition struct {
	// Name of the capability.
	Name string `json:"name"`
	// Possible values, the most wanted first.
	Values CapabilityValues `json:"values"`
}

// CloudProfileControlPlane configures control planes of shoots of a profile.
type CloudProfileControlPlane struct {
	// Whether shoots may choose the zones of their control plane.
	// +optional
	AllowZonePinning *bool `json:"allowZonePinning,omitempty"`
}

// CloudProfileStatus is the state of a profile's versions.
type CloudProfileStatus struct {
	// State of the Kubernetes versions.
	// +optional
	Kubernetes *KubernetesStatus `json:"kubernetes,omitempty"`
	// State of the machine images.
	// +optional
	MachineImages []MachineImageStatus `json:"machineImages,omitempty"`
}

// KubernetesStatus is the state of Kubernetes versions.
type KubernetesStatus struct {
	// State per version.
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty"`
}

// ExpirableVersionStatus is the state of a version.
type ExpirableVersionStatus struct {
	// Version.
	Version string `json:"version"`
	// Where the version is in its life.
	Classification VersionClassification `json:"classification"`
}

// MachineImageStatus is the state of a machine image.
type MachineImageStatus struct {
	// Name of the image.
	Name string `json:"name"`
	// State per version.
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty"`
}

// CapabilityValues are the values of a capability.
type CapabilityValues []string

// Capabilities maps names of capabilities to their values.
type Capabilities map[string]CapabilityValues

// MachineImageFlavor is a combination of capabilities in which a version of a machine image exists.
type MachineImageFlavor map[string]CapabilityValues
