package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=IP,type=string,JSONPath=`.status.ingress.ip`,description="Public address"
// +kubebuilder:printcolumn:name=Hostname,type=string,JSONPath=`.status.ingress.hostname`,description="Public host name"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// Bastion is a machine through which others are reached by SSH.
type Bastion struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec BastionSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status BastionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// BastionList is a list of Bastion objects.
type BastionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Bastion `json:"items"`
}

// BastionSpec is what machine is wanted.
type BastionSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// User data of the machine. Immutable.
	UserData []byte `json:"userData"`
	// Who may reach it.
	Ingress []BastionIngressPolicy `json:"ingress"`
}

// BastionIngressPolicy lets a range in.
type BastionIngressPolicy struct {
	// The range.
	IPBlock networkingv1.IPBlock `json:"ipBlock"`
}

// BastionStatus is what was last observed of it.
type BastionStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
	// Public address.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
