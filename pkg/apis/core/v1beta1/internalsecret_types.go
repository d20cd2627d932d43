package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// InternalSecret is a Secret that members of a project cannot read.
type InternalSecret struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whether the data can be changed. Defaults to nil.
	// +optional
	Immutable *bool `json:"immutable,omitempty"`
	// Data; base64 in JSON.
	// +optional
	Data map[string][]byte `json:"data,omitempty"`
	// Data in clear text; write only, merged into data.
	// +optional
	StringData map[string]string `json:"stringData,omitempty"`
	// Type of the data, as of a Secret.
	// +optional
	Type corev1.SecretType `json:"type,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// InternalSecretList is a list of InternalSecret objects.
type InternalSecretList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []InternalSecret `json:"items"`
}
