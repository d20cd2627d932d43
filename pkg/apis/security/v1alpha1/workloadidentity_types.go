package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:noStatus
// +genclient:method=CreateToken,verb=create,subresource=token,input=TokenRequest,result=TokenRequest
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadIdentity is an identity for which the garden issues tokens that an infrastructure trusts.
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	Spec WorkloadIdentitySpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status WorkloadIdentityStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadIdentityList is a list of WorkloadIdentity objects.
type WorkloadIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []WorkloadIdentity `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// WorkloadIdentitySpec is for whom tokens are issued.
type WorkloadIdentitySpec struct {
	// Audiences of the tokens.
	Audiences []string `json:"audiences" protobuf:"bytes,1,opt,name=audiences"`
	// System that trusts the tokens.
	TargetSystem TargetSystem `json:"targetSystem" protobuf:"bytes,2,opt,name=targetSystem"`
}

// TargetSystem is a system that trusts tokens.
type TargetSystem struct {
	// Type of the system. Immutable.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// WorkloadIdentityStatus tells the identity.
type WorkloadIdentityStatus struct {
	// Subject of the tokens. Immutable.
	Sub string `json:"sub" protobuf:"bytes,1,opt,name=sub"`
}
