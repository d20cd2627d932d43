package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Pods,type=string,JSONPath=`.spec.podCIDR`,description="Range of pod addresses"
// +kubebuilder:printcolumn:name=Services,type=string,JSONPath=`.spec.serviceCIDR`,description="Range of service addresses"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// Network is the network plugin of a shoot.
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec NetworkSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status NetworkStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// NetworkList is a list of Network objects.
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Network `json:"items"`
}

// NetworkSpec is what network is wanted.
type NetworkSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// Range of pod addresses. Immutable.
	PodCIDR string `json:"podCIDR"`
	// Range of service addresses. Immutable.
	ServiceCIDR string `json:"serviceCIDR"`
	// IP families in order of preference.
	// +optional
	IPFamilies []gardencorev1beta1.IPFamily `json:"ipFamilies,omitempty"`
}

// NetworkStatus is what was last observed of a network.
type NetworkStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
	// IP families in order of preference.
	// +optional
	IPFamilies []gardencorev1beta1.IPFamily `json:"ipFamilies,omitempty"`
}
