package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=infra,scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Region,type=string,JSONPath=`.spec.region`,description="Region in the infrastructure"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// Infrastructure is the infrastructure of a shoot: networks, routers, roles.
type Infrastructure struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec InfrastructureSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status InfrastructureStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// InfrastructureList is a list of Infrastructure objects.
type InfrastructureList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Infrastructure `json:"items"`
}

// InfrastructureSpec is what infrastructure is wanted.
type InfrastructureSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// Region of the infrastructure.
	Region string `json:"region"`
	// Secret with the credentials.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Public key for SSH to machines.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
}

// InfrastructureStatus is what was last observed of an infrastructure.
type InfrastructureStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
	// Range of node addresses that the extension chose.
	// +optional
	NodesCIDR *string `json:"nodesCIDR,omitempty"`
	// Ranges from which traffic leaves the cluster.
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
	// Ranges that the extension chose.
	// +optional
	Networking *InfrastructureStatusNetworking `json:"networking,omitempty"`
}

// InfrastructureStatusNetworking holds ranges in CIDR notation.
type InfrastructureStatusNetworking struct {
	// Ranges of pod addresses.
	// +optional
	Pods []string `json:"pods,omitempty"`
	// Ranges of node addresses.
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Ranges of service addresses.
	// +optional
	Services []string `json:"services,omitempty"`
}
