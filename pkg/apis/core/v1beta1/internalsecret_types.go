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
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Whether the data can be changed. Defaults to nil.
	// +optional
	Immutable *bool `json:"immutable,omitempty" protobuf:"bytes,5,opt,name=immutable"`
	// Data; base64 in JSON.
	// +optional
	Data map[string][]byte `json:"data,omitempty" protobuf:"bytes,2,opt,name=data"`
	// Data in clear text; write only, merged into data.
	// +optional
	StringData map[string]string `json:"stringData,omitempty" protobuf:"bytes,4,opt,name=stringData"`
	// Type of the data, as of a Secret.
	// +optional
	Type corev1.SecretType `json:"type,omitempty" protobuf:"bytes,3,opt,name=type"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// InternalSecretList is a list of InternalSecret objects.
type InternalSecretList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []InternalSecret `json:"items" protobuf:"bytes,2,opt,name=items"`
}
