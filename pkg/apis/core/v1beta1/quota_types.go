package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Quota limits the resources of shoots.
type Quota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec QuotaSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QuotaList is a list of Quota objects.
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []Quota `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// QuotaSpec is what a Quota limits.
type QuotaSpec struct {
	// Days after which shoots are deleted.
	// +optional
	ClusterLifetimeDays *int32 `json:"clusterLifetimeDays,omitempty" protobuf:"bytes,1,opt,name=clusterLifetimeDays"`
	// Limits: cpu, gpu, memory, storage.standard, storage.premium, loadbalancer.
	Metrics corev1.ResourceList `json:"metrics" protobuf:"bytes,2,opt,name=metrics"`
	// Kind over which usage is summed: Project, Secret or WorkloadIdentity. Immutable.
	Scope corev1.ObjectReference `json:"scope" protobuf:"bytes,3,opt,name=scope"`
}
