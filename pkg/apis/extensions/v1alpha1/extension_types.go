package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ext,scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// Extension is anything else that is done for a cluster.
type Extension struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec ExtensionSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status ExtensionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ExtensionList is a list of Extension objects.
type ExtensionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Extension `json:"items"`
}

// ExtensionSpec is what is wanted.
type ExtensionSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
}

// ExtensionStatus is what was last observed of it.
type ExtensionStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
}
