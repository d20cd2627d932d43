package v1beta1

import (
	"encoding/json"

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
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec CloudProfileSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status CloudProfileStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CloudProfileList is a list of CloudProfile objects.
type CloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []CloudProfile `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// CloudProfileSpec is what can be ordered.
type CloudProfileSpec struct {
	// PEM certificates that machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,1,opt,name=caBundle"`
	// Kubernetes versions that are offered.
	Kubernetes KubernetesSettings `json:"kubernetes" protobuf:"bytes,2,opt,name=kubernetes"`
	// Machine images that are offered.
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineImages []MachineImage `json:"machineImages" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,opt,name=machineImages"`
	// Machine types that are offered.
	// +patchMergeKey=name
	// +patchStrategy=merge
	MachineTypes []MachineType `json:"machineTypes" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,opt,name=machineTypes"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,5,opt,name=providerConfig"`
	// Regions with their zones.
	// +patchMergeKey=name
	// +patchStrategy=merge
	Regions []Region `json:"regions" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,6,opt,name=regions"`
	// Seeds that may host shoots of this profile.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty" protobuf:"bytes,7,opt,name=seedSelector"`
	// Type of the infrastructure.
	Type string `json:"type" protobuf:"bytes,8,opt,name=type"`
	// Volume types that are offered.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,9,opt,name=volumeTypes"`
	// Machine of bastions.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty" protobuf:"bytes,10,opt,name=bastion"`
	// Limits for shoots of this profile.
	// +optional
	Limits *Limits `json:"limits,omitempty" protobuf:"bytes,11,opt,name=limits"`
	// Names and values of capabilities that machine types and images may have.
	// +optional
	MachineCapabilities []CapabilityDefinition `json:"machineCapabilities,omitempty" protobuf:"bytes,12,opt,name=machineCapabilities"`
	// Settings for control planes.
	// +optional
	ControlPlane *CloudProfileControlPlane `json:"controlPlane,omitempty" protobuf:"bytes,13,opt,name=controlPlane"`
}

// KubernetesSettings lists Kubernetes versions.
type KubernetesSettings struct {
	// Versions that are offered.
	// +optional
	// +patchMergeKey=version
	// +patchStrategy=merge
	Versions []ExpirableVersion `json:"versions,omitempty" patchStrategy:"merge" patchMergeKey:"version" protobuf:"bytes,1,opt,name=versions"`
}

// ExpirableVersion is a version with its life cycle.
type ExpirableVersion struct {
	// Full semantic version.
	Version string `json:"version" protobuf:"bytes,1,opt,name=version"`
	// When the version expires; until then it may be used.
	//
	// Deprecated: use lifecycle.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty" protobuf:"bytes,2,opt,name=expirationDate"`
	// Where the version is in its life.
	//
	// Deprecated: use lifecycle.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty" protobuf:"bytes,3,opt,name=classification"`
	// Stages of the version's life, each with its start.
	// +optional
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty" protobuf:"bytes,4,opt,name=lifecycle"`
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
	Classification VersionClassification `json:"classification" protobuf:"bytes,1,opt,name=classification"`
	// When it starts; at once when left out.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,2,opt,name=startTime"`
}

// MachineImage is a machine image with its versions.
type MachineImage struct {
	// Name of the image.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Versions of the image.
	// +patchMergeKey=version
	// +patchStrategy=merge
	Versions []MachineImageVersion `json:"versions" patchStrategy:"merge" patchMergeKey:"version" protobuf:"bytes,2,opt,name=versions"`
	// How far automatic updates go. Defaults to major.
	// +optional
	UpdateStrategy *MachineImageUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,3,opt,name=updateStrategy"`
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
	// When the version may be used.
	ExpirableVersion `json:",inline" protobuf:"bytes,1,opt,name=expirableVersion"`
	// Container runtimes of the image. Defaults to containerd.
	// +optional
	CRI []CRI `json:"cri,omitempty" protobuf:"bytes,2,opt,name=cri"`
	// CPU architectures of the image. Defaults to amd64.
	// +optional
	Architectures []string `json:"architectures,omitempty" protobuf:"bytes,3,opt,name=architectures"`
	// Kubelet versions that run on the image, such as ">= 1.34".
	// +optional
	KubeletVersionConstraint *string `json:"kubeletVersionConstraint,omitempty" protobuf:"bytes,4,opt,name=kubeletVersionConstraint"`
	// Whether machines can be updated in place to this version.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty" protobuf:"bytes,5,opt,name=inPlaceUpdates"`
	// Combinations of capabilities in which this version exists.
	// +optional
	CapabilityFlavors []MachineImageFlavor `json:"capabilityFlavors,omitempty" protobuf:"bytes,6,opt,name=capabilityFlavors"`
}

// InPlaceUpdates says whether machines can be updated in place.
type InPlaceUpdates struct {
	// Whether they can.
	Supported bool `json:"supported" protobuf:"bytes,1,opt,name=supported"`
	// Least version from which they can.
	// +optional
	MinVersionForUpdate *string `json:"minVersionForUpdate,omitempty" protobuf:"bytes,2,opt,name=minVersionForUpdate"`
}

// MachineType is a machine type that is offered.
type MachineType struct {
	// Number of CPUs.
	CPU resource.Quantity `json:"cpu" protobuf:"bytes,1,opt,name=cpu"`
	// Number of GPUs.
	GPU resource.Quantity `json:"gpu" protobuf:"bytes,2,opt,name=gpu"`
	// Size of the memory.
	Memory resource.Quantity `json:"memory" protobuf:"bytes,3,opt,name=memory"`
	// Name of the type in the infrastructure.
	Name string `json:"name" protobuf:"bytes,4,opt,name=name"`
	// Root volume that comes with the type.
	// +optional
	Storage *MachineTypeStorage `json:"storage,omitempty" protobuf:"bytes,5,opt,name=storage"`
	// Whether new pools may use it. Defaults to true.
	// +optional
	Usable *bool `json:"usable,omitempty" protobuf:"bytes,6,opt,name=usable"`
	// CPU architecture, amd64 or arm64.
	// +optional
	Architecture *string `json:"architecture,omitempty" protobuf:"bytes,7,opt,name=architecture"`
	// Capabilities of the type.
	// +optional
	Capabilities Capabilities `json:"capabilities,omitempty" protobuf:"bytes,8,opt,name=capabilities"`
	// Settings of the machine-controller-manager for this pool.
	// +optional
	MachineControllerManager *CloudProfileMachineControllerManagerSettings `json:"machineControllerManager,omitempty" protobuf:"bytes,9,opt,name=machineControllerManager"`
}

// MachineTypeStorage is the root volume that comes with a machine type.
type MachineTypeStorage struct {
	// Class of the storage: standard or premium.
	Class string `json:"class" protobuf:"bytes,1,opt,name=class"`
	// Size; conflicts with minSize.
	// +optional
	StorageSize *resource.Quantity `json:"size,omitempty" protobuf:"bytes,2,opt,name=size"`
	// Type of the storage.
	Type string `json:"type" protobuf:"bytes,3,opt,name=type"`
	// Least size that can be asked for.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty" protobuf:"bytes,4,opt,name=minSize"`
}

// CloudProfileMachineControllerManagerSettings configures the machine-controller-manager for a machine type.
type CloudProfileMachineControllerManagerSettings struct {
	// How long a machine may take to become a node.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty" protobuf:"bytes,1,opt,name=machineCreationTimeout"`
}

// Region is a region of the infrastructure.
type Region struct {
	// Name of the region.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Zones of the region.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	Zones []AvailabilityZone `json:"zones,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,opt,name=zones"`
	// Labels, such as the distance to seeds.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,3,opt,name=labels"`
	// Access restrictions that the region honours.
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty" protobuf:"bytes,4,opt,name=accessRestrictions"`
}

// AvailabilityZone is a zone of a region.
type AvailabilityZone struct {
	// Name of the zone.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Machine types that the zone lacks.
	// +optional
	UnavailableMachineTypes []string `json:"unavailableMachineTypes,omitempty" protobuf:"bytes,2,opt,name=unavailableMachineTypes"`
	// Volume types that the zone lacks.
	// +optional
	UnavailableVolumeTypes []string `json:"unavailableVolumeTypes,omitempty" protobuf:"bytes,3,opt,name=unavailableVolumeTypes"`
}

// VolumeType is a volume type that is offered.
type VolumeType struct {
	// Class of the storage: standard or premium.
	Class string `json:"class" protobuf:"bytes,1,opt,name=class"`
	// Name of the type in the infrastructure.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
	// Whether new pools may use it. Defaults to true.
	// +optional
	Usable *bool `json:"usable,omitempty" protobuf:"bytes,3,opt,name=usable"`
	// Least size that can be asked for.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty" protobuf:"bytes,4,opt,name=minSize"`
}

// Bastion is the machine of bastions.
type Bastion struct {
	// Its image.
	// +optional
	MachineImage *BastionMachineImage `json:"machineImage,omitempty" protobuf:"bytes,1,opt,name=machineImage"`
	// Its type.
	// +optional
	MachineType *BastionMachineType `json:"machineType,omitempty" protobuf:"bytes,2,opt,name=machineType"`
}

// BastionMachineImage names the image of bastions.
type BastionMachineImage struct {
	// Name of an image of the profile.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Version of the image. Defaults to the newest one.
	// +optional
	Version *string `json:"version,omitempty" protobuf:"bytes,2,opt,name=version"`
}

// BastionMachineType names the machine type of bastions.
type BastionMachineType struct {
	// Name of a machine type of the profile.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// Limits limits the shoots of a profile.
type Limits struct {
	// Most nodes of a shoot.
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty" protobuf:"bytes,1,opt,name=maxNodesTotal"`
}

// CapabilityDefinition is a capability with its possible values.
type CapabilityDefinition struct {
	// Name of the capability.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Possible values, the most wanted first.
	Values CapabilityValues `json:"values" protobuf:"bytes,2,opt,name=values"`
}

// CloudProfileControlPlane configures control planes of shoots of a profile.
type CloudProfileControlPlane struct {
	// Whether shoots may choose the zones of their control plane.
	// +optional
	AllowZonePinning *bool `json:"allowZonePinning,omitempty" protobuf:"bytes,1,opt,name=allowZonePinning"`
}

// CloudProfileStatus is the state of a profile's versions.
type CloudProfileStatus struct {
	// State of the Kubernetes versions.
	// +optional
	Kubernetes *KubernetesStatus `json:"kubernetes,omitempty" protobuf:"bytes,1,opt,name=kubernetes"`
	// State of the machine images.
	// +optional
	MachineImages []MachineImageStatus `json:"machineImages,omitempty" protobuf:"bytes,2,opt,name=machineImages"`
}

// KubernetesStatus is the state of Kubernetes versions.
type KubernetesStatus struct {
	// State per version.
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty" protobuf:"bytes,1,opt,name=versions"`
}

// ExpirableVersionStatus is the state of a version.
type ExpirableVersionStatus struct {
	// Version.
	Version string `json:"version" protobuf:"bytes,1,opt,name=version"`
	// Where the version is in its life.
	Classification VersionClassification `json:"classification" protobuf:"bytes,2,opt,name=classification"`
}

// MachineImageStatus is the state of a machine image.
type MachineImageStatus struct {
	// Name of the image.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// State per version.
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty" protobuf:"bytes,2,opt,name=versions"`
}

// CapabilityValues are the values of a capability.
// +protobuf.nullable=true
// +protobuf.options.(gogoproto.goproto_stringer)=false
type CapabilityValues []string

// Capabilities maps names of capabilities to their values.
// +protobuf.options.(gogoproto.goproto_stringer)=false
type Capabilities map[string]CapabilityValues

// MachineImageFlavor is a combination of capabilities in which a version of a machine image exists. In JSON it is the
// capabilities themselves.
type MachineImageFlavor struct {
	// The capabilities with their values.
	Capabilities Capabilities `json:"-" protobuf:"bytes,1,rep,name=capabilities,casttype=Capabilities"`
}

// MarshalJSON implements json.Marshaler.
func (f MachineImageFlavor) MarshalJSON() ([]byte, error) { return json.Marshal(f.Capabilities) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *MachineImageFlavor) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &f.Capabilities)
}

// OpenAPISchemaType tells the generator of OpenAPI definitions what a flavor is in JSON.
func (MachineImageFlavor) OpenAPISchemaType() []string { return []string{"object"} }

// OpenAPISchemaFormat belongs to OpenAPISchemaType.
func (MachineImageFlavor) OpenAPISchemaFormat() string { return "" }
