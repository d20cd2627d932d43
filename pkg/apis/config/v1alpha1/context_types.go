package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// ResourceInterpreterContext is the question to a webhook, and its answer. It is never stored.
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`
	// Request is the question.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`
	// Response is the answer.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest is a question about one object.
type ResourceInterpreterRequest struct {
	// UID of the question.
	UID types.UID `json:"uid"`
	// Kind of the object.
	Kind metav1.GroupVersionKind `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Namespace of the object, empty if it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Operation is what is asked.
	Operation InterpreterOperation `json:"operation"`
	// Object that is asked about.
	// +optional
	Object runtime.RawExtension `json:"object,omitempty"`
	// ObservedObject is the one in the member; for Retain only.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`
	// DesiredReplicas to write; for ReviseReplica only.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`
	// AggregatedStatus has an item per member; for AggregateStatus only.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the answer to one question.
type ResourceInterpreterResponse struct {
	// UID of the question.
	UID types.UID `json:"uid"`
	// Successful tells whether the question could be answered.
	Successful bool `json:"successful"`
	// Status says why not.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`
	// Patch of the object; for ReviseReplica, Retain, AggregateStatus and Prune.
	// +optional
	Patch []byte `json:"patch,omitempty"`
	// PatchType of the patch, JSONPatch.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`
	// ReplicaRequirements is what one replica needs; for InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`
	// Replicas of the object; for InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Components of the object; for InterpretComponent.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`
	// Dependencies of the object; for InterpretDependency.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`
	// RawStatus is the status that the fleet gets; for InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`
	// Healthy judges the object; for InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus says why a question could not be answered.
type RequestStatus struct {
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
	// Code in the sense of HTTP.
	// +optional
	Code int32 `json:"code,omitempty"`
}

// PatchType is the form of a patch.
type PatchType string

// PatchTypeJSONPatch is RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"

// DependentObjectReference tells one object, or those with certain labels.
type DependentObjectReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object, empty if it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// LabelSelector selects objects by labels; Name goes before it.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
