package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AdminKubeconfigRequest asks for a short-lived kubeconfig with which the caller is admin of a Shoot.
type AdminKubeconfigRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is asked for.
	Spec AdminKubeconfigRequestSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// The answer.
	// +optional
	Status AdminKubeconfigRequestStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// AdminKubeconfigRequestSpec is what is asked for.
type AdminKubeconfigRequestSpec struct {
	// Seconds that the kubeconfig is to be valid, at least 600. The server shortens what it finds too long, at most 24
	// hours by default. Defaults to one hour.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"bytes,1,opt,name=expirationSeconds"`
}

// AdminKubeconfigRequestStatus is the answer.
type AdminKubeconfigRequestStatus struct {
	// The kubeconfig in YAML; base64 in JSON.
	Kubeconfig []byte `json:"kubeconfig" protobuf:"bytes,1,opt,name=kubeconfig"`
	// When the kubeconfig expires.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp" protobuf:"bytes,2,opt,name=expirationTimestamp"`
}
