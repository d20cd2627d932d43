package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindFederatedHPA is the kind of FederatedHPAs.
const KindFederatedHPA = "FederatedHPA"

// FederatedHPA scales an object of the fleet by the metrics of its pods in all members.
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
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FederatedHPA struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is scaled, and by what.
	Spec FederatedHPASpec `json:"spec"`
	// What was observed; written by controllers. It is that of a HorizontalPodAutoscaler of autoscaling/v2.
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

// FederatedHPASpec says what is scaled, and by what. Fields mean what they mean in autoscaling/v2.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="must not be smaller than minReplicas",fieldPath=".maxReplicas"
type FederatedHPASpec struct {
	// ScaleTargetRef names the object, which must have the subresource scale.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
	// MinReplicas is the least number, in all members together.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the largest number, in all members together.
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`
	// Metrics to go by; the one that asks for most replicas counts. Absent: 80 % of the CPU requests.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
	// Behavior bounds how fast it is scaled up and down.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}
