package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cr,scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// ContainerRuntime is a container runtime on the machines of a pool.
type ContainerRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec ContainerRuntimeSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status ContainerRuntimeStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ContainerRuntimeList is a list of ContainerRuntime objects.
type ContainerRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ContainerRuntime `json:"items"`
}

// ContainerRuntimeSpec is what runtime is wanted.
type ContainerRuntimeSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// Directory on the machine for the runtime's programs.
	BinaryPath string `json:"binaryPath"`
	// Pool that gets it.
	WorkerPool ContainerRuntimeWorkerPool `json:"workerPool"`
}

// ContainerRuntimeWorkerPool names a pool. Its name is immutable.
type ContainerRuntimeWorkerPool struct {
	// Name of the pool.
	Name string `json:"name"`
	// Selects the nodes of the pool.
	Selector metav1.LabelSelector `json:"selector"`
}

// ContainerRuntimeStatus is what was last observed of it.
type ContainerRuntimeStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
}
