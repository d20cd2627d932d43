package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SecretBinding gives a Secret with infrastructure credentials to the shoots of a namespace.
type SecretBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Secret with the credentials. Immutable.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Quotas that shoots with these credentials are held to. Immutable.
	// +optional
	Quotas []corev1.ObjectReference `json:"quotas,omitempty"`
	// Provider of the credentials. Immutable.
	// +optional
	Provider *SecretBindingProvider `json:"provider,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SecretBindingList is a list of SecretBinding objects.
type SecretBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []SecretBinding `json:"items"`
}

// SecretBindingProvider names the provider of credentials.
type SecretBindingProvider struct {
	// Type of the provider; several are separated by commas.
	Type string `json:"type"`
}
