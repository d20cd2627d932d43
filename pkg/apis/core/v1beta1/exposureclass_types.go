package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExposureClass is a way to expose control planes.
type ExposureClass struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Name of the way, as the gardenlet's configuration knows it. Immutable.
	Handler string `json:"handler" protobuf:"bytes,2,opt,name=handler"`
	// Which seeds have it. Immutable.
	// +optional
	Scheduling *ExposureClassScheduling `json:"scheduling,omitempty" protobuf:"bytes,3,opt,name=scheduling"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExposureClassList is a list of ExposureClass objects.
type ExposureClassList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []ExposureClass `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ExposureClassScheduling says which seeds have an exposure class.
type ExposureClassScheduling struct {
	// Selects seeds.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty" protobuf:"bytes,1,opt,name=seedSelector"`
	// Taints of seeds that are accepted.
	// +optional
	// +patchMergeKey=key
	// +patchStrategy=merge
	Tolerations []Toleration `json:"tolerations,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,2,opt,name=tolerations"`
}
