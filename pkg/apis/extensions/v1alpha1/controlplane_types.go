package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cp,scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Region,type=string,JSONPath=`.spec.region`,description="Region in the infrastructure"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// ControlPlane is what an infrastructure adds to a control plane: cloud controllers, CSI drivers.
type ControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec ControlPlaneSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status ControlPlaneStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ControlPlaneList is a list of ControlPlane objects.
type ControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ControlPlane `json:"items"`
}

// ControlPlaneSpec is what is to be added to a control plane.
type ControlPlaneSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// providerStatus of the Infrastructure.
	// +optional
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`
	// Region of the infrastructure.
	Region string `json:"region"`
	// Secret with the credentials.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// ControlPlaneStatus is what was last observed of it.
type ControlPlaneStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
}
