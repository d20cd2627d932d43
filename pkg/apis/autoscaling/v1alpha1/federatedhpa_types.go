package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales an object of the fleet by what its pods use in all members together.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=federatedhpas,scope=Namespaced,shortName=fhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="Reference-Kind",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="Reference-Name",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.minReplicas`,name="MinPods",type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.maxReplicas`,name="MaxPods",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.currentReplicas`,name="Replicas",type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="ScalingActive")].message`,name="Why",type=string,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FederatedHPA struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is scaled, by what, and within which limits.
	Spec FederatedHPASpec `json:"spec"`
	// What was measured and decided, as a HorizontalPodAutoscaler tells it; written by controllers.
	// +optional
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status,omitempty"`
}

// FederatedHPAList is a list of FederatedHPAs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []FederatedHPA `json:"items"`
}

// FederatedHPASpec says what is scaled, by what, and within which limits.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="must not be less than minReplicas",fieldPath=".maxReplicas"
// +kubebuilder:validation:XValidation:rule="size(self.scaleTargetRef.kind) > 0 && size(self.scaleTargetRef.name) > 0",message="needs kind and name",fieldPath=".scaleTargetRef"
type FederatedHPASpec struct {
	// ScaleTargetRef names an object of the fleet that has the subresource scale.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
	// MinReplicas is the least number of replicas that is set. An object that has none, because somebody scaled it to
	// zero, is left alone. Default: 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the largest number of replicas that is set.
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`
	// Metrics that decide, each by itself: the one that asks for most replicas counts. Absent: 80 % of the CPU that
	// pods request.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
	// Behavior says how fast replicas may be added and removed. Absent: at most the double or 4 more in 15 seconds;
	// fewer only after what is measured has asked for it for 300 seconds.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}
