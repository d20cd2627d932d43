package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ExtensionClass is which cluster an extension object belongs to.
type ExtensionClass string

const (
	// ExtensionClassGarden is the garden.
	ExtensionClassGarden ExtensionClass = "garden"
	// ExtensionClassSeed is the seed itself.
	ExtensionClassSeed ExtensionClass = "seed"
	// ExtensionClassShoot is a shoot; the default.
	ExtensionClassShoot ExtensionClass = "shoot"
)

// DefaultSpec holds the fields that the specifications of all extension kinds share.
type DefaultSpec struct {
	// Type of the extension, such as local. Immutable.
	Type string `json:"type"`
	// Cluster that the object belongs to. Defaults to shoot.
	// +optional
	Class *ExtensionClass `json:"class,omitempty"`
	// Settings that the extension, not Trellis, understands.
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DefaultStatus holds the fields that the status of all extension kinds share.
type DefaultStatus struct {
	// State that the extension, not Trellis, understands; offered to other extensions.
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// Health as the extension sees it, one entry per type. It is for people: gardenlet looks at Deployments and
	// ManagedResources itself.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Error of the last operation.
	// +optional
	LastError *gardencorev1beta1.LastError `json:"lastError,omitempty"`
	// What was done last, or is being done.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// What the extension needs to go on in another seed.
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	State *runtime.RawExtension `json:"state,omitempty"`
	// Objects that the state refers to.
	// +optional
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty"`
}

// Object is what all extension kinds have in common.
type Object interface {
	metav1.Object
	runtime.Object

	// GetExtensionSpec returns the part of the specification that all kinds share.
	GetExtensionSpec() *DefaultSpec
	// GetExtensionStatus returns the part of the status that all kinds share.
	GetExtensionStatus() *DefaultStatus
}

// GetExtensionSpec implements Object.
func (o *Infrastructure) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *Infrastructure) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *ControlPlane) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *ControlPlane) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *Worker) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *Worker) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *OperatingSystemConfig) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *OperatingSystemConfig) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *Network) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *Network) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *DNSRecord) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *DNSRecord) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *BackupBucket) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *BackupBucket) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *BackupEntry) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *BackupEntry) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *ContainerRuntime) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *ContainerRuntime) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *Extension) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *Extension) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// GetExtensionSpec implements Object.
func (o *Bastion) GetExtensionSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetExtensionStatus implements Object.
func (o *Bastion) GetExtensionStatus() *DefaultStatus { return &o.Status.DefaultStatus }
