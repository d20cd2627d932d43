package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsBinding gives infrastructure credentials to the shoots of a namespace.
type CredentialsBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Provider of the credentials. Immutable.
	Provider CredentialsBindingProvider `json:"provider" protobuf:"bytes,2,opt,name=provider"`
	// Secret, WorkloadIdentity or InternalSecret. Immutable.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef" protobuf:"bytes,3,opt,name=credentialsRef"`
	// Quotas that shoots with these credentials are held to. Immutable.
	// +optional
	Quotas []corev1.ObjectReference `json:"quotas,omitempty" protobuf:"bytes,4,opt,name=quotas"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsBindingList is a list of CredentialsBinding objects.
type CredentialsBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []CredentialsBinding `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// CredentialsBindingProvider names the provider of credentials.
type CredentialsBindingProvider struct {
	// Type of the provider.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
}
