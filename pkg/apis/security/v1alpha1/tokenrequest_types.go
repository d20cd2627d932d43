package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TokenRequest asks for a token of a WorkloadIdentity.
type TokenRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is asked for.
	Spec TokenRequestSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// The answer.
	// +optional
	Status TokenRequestStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// TokenRequestSpec is what is asked for.
type TokenRequestSpec struct {
	// Object for whose sake the token is wanted; the token names it. Only gardenlets may say so, others are not heard.
	// +optional
	ContextObject *ContextObject `json:"contextObject,omitempty" protobuf:"bytes,1,opt,name=contextObject"`
	// Seconds that the token is to be valid, at least 600. The server keeps it within limits of its own. Defaults to
	// one hour.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"bytes,2,opt,name=expirationSeconds"`
}

// ContextObject is the object for whose sake a token is wanted: a Shoot, Seed, BackupBucket or BackupEntry.
type ContextObject struct {
	// Kind of the object.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// API version of the object.
	APIVersion string `json:"apiVersion" protobuf:"bytes,2,opt,name=apiVersion"`
	// Name of the object.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`
	// Namespace of the object, unless it is of the garden.
	// +optional
	Namespace *string `json:"namespace,omitempty" protobuf:"bytes,4,opt,name=namespace"`
	// UID of the object.
	UID types.UID `json:"uid" protobuf:"bytes,5,opt,name=uid"`
}

// TokenRequestStatus is the answer.
type TokenRequestStatus struct {
	// The token, a signed JWT.
	Token string `json:"token" protobuf:"bytes,1,opt,name=token"`
	// When the token expires.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp" protobuf:"bytes,2,opt,name=expirationTimestamp"`
}
