package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ShootState holds what is needed to restore a control plane in another seed.
type ShootState struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec ShootStateSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ShootStateList is a list of ShootState objects.
type ShootStateList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []ShootState `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ShootStateSpec is that state.
type ShootStateSpec struct {
	// State of Trellis itself, such as certificates.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	Gardener []GardenerResourceData `json:"gardener,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,1,opt,name=gardener"`
	// State of extensions.
	// +optional
	Extensions []ExtensionResourceState `json:"extensions,omitempty" protobuf:"bytes,2,opt,name=extensions"`
	// Objects that they refer to.
	// +optional
	Resources []ResourceData `json:"resources,omitempty" protobuf:"bytes,3,opt,name=resources"`
}

// GardenerResourceData is a part of Trellis' own state.
type GardenerResourceData struct {
	// Name of the part.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Type: secret or machine-state.
	Type string `json:"type" protobuf:"bytes,2,opt,name=type"`
	// The state.
	Data runtime.RawExtension `json:"data" protobuf:"bytes,3,opt,name=data"`
	// Labels of the object it comes from.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,4,opt,name=labels"`
}

// ExtensionResourceState is the state of an extension object.
type ExtensionResourceState struct {
	// Kind of the object.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Name of the object.
	// +optional
	Name *string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`
	// Purpose of the object.
	// +optional
	Purpose *string `json:"purpose,omitempty" protobuf:"bytes,3,opt,name=purpose"`
	// The state.
	// +optional
	State *runtime.RawExtension `json:"state,omitempty" protobuf:"bytes,4,opt,name=state"`
	// Objects that the state refers to.
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" protobuf:"bytes,5,opt,name=resources"`
}

// ResourceData is a copy of an object.
type ResourceData struct {
	autoscalingv1.CrossVersionObjectReference `json:",inline" protobuf:"bytes,1,opt,name=ref"`
	// The object.
	Data runtime.RawExtension `json:"data" protobuf:"bytes,2,opt,name=data"`
}
