package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadRebalancer has the placements of some objects decided anew, once, as if they had none yet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadrebalancers,scope=Cluster,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.status.finishTime`,name="Finished",type=date
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type WorkloadRebalancer struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is decided anew.
	Spec WorkloadRebalancerSpec `json:"spec"`
	// What was done; written by controllers.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerList is a list of WorkloadRebalancers.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type WorkloadRebalancerList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []WorkloadRebalancer `json:"items"`
}

// WorkloadRebalancerSpec lists objects.
type WorkloadRebalancerSpec struct {
	// Workloads are the objects whose placement is decided anew. An object that is added later is handled then; one
	// that was handled is not handled again.
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`
	// TTLSecondsAfterFinished is how long the WorkloadRebalancer stays once all workloads were handled. Absent: for
	// ever.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference tells an object.
type ObjectReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Namespace of the object, empty if it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus tells what was done.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads has an entry per workload. Entries of workloads that were taken out of the spec stay if they
	// were handled.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// FinishTime is when the last workload was handled.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// ObservedWorkload tells what was done about one workload.
type ObservedWorkload struct {
	// Workload is the object.
	Workload ObjectReference `json:"workload"`
	// Result: Successful means that the scheduler was asked. Absent until then.
	// +kubebuilder:validation:Enum=Successful;Failed
	// +optional
	Result RebalanceResult `json:"result,omitempty"`
	// Reason of a failure.
	// +kubebuilder:validation:Enum=ReferencedBindingNotFound
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// RebalanceResult is Successful or Failed.
type RebalanceResult string

// Values of RebalanceResult.
const (
	RebalanceSuccessful RebalanceResult = "Successful"
	RebalanceFailed     RebalanceResult = "Failed"
)

// RebalanceFailedReason says why a workload could not be handled.
type RebalanceFailedReason string

// RebalanceObjectNotFound: no policy propagates the object, or there is none.
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"
