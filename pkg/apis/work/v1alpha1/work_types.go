package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// Finalizer keeps a Work until its objects are gone from the member.
	Finalizer = "karmada.io/execution-controller"

	// ManagedLabel (value "true") marks objects in members that a fleet manages.
	ManagedLabel = "karmada.io/managed"
	// PermanentIDLabel holds the UID of the Work.
	PermanentIDLabel = "work.karmada.io/permanent-id"
	// NamespaceAnnotation, on an object in a member, holds the namespace of its Work.
	NamespaceAnnotation = "work.karmada.io/namespace"
	// NameAnnotation, on an object in a member, holds the name of its Work.
	NameAnnotation = "work.karmada.io/name"
	// ConflictResolutionAnnotation is overwrite or abort.
	ConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	// ConflictOverwrite lets a Work take over objects that exist already.
	ConflictOverwrite = "overwrite"
	// ConflictAbort leaves objects alone that exist already.
	ConflictAbort = "abort"

	// TemplateGenerationAnnotation, on an object in a member, holds the generation of the template it was made from.
	TemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"
	// TemplateUIDAnnotation, on an object in a member, holds the UID of the template it was made from.
	TemplateUIDAnnotation = "resourcetemplate.karmada.io/uid"
	// TemplateManagedLabelsAnnotation lists the label keys that come from the template.
	TemplateManagedLabelsAnnotation = "resourcetemplate.karmada.io/managed-labels"
	// TemplateManagedAnnotationsAnnotation lists the annotation keys that come from the template.
	TemplateManagedAnnotationsAnnotation = "resourcetemplate.karmada.io/managed-annotations"
	// ContentHashAnnotation, on an object in a member, is a hash of what was applied last.
	ContentHashAnnotation = "federation.trellis.garden/content-hash"

	// ConfirmDeletionAnnotation, on a Work that is being deleted, lets it go although many others go too:
	// ConfirmDeletionYes removes its objects from the member, ConfirmDeletionKeep leaves them there,
	// ConfirmDeletionEvicted says that they are replaced elsewhere. On Works of members with an agent the fleet writes
	// ConfirmDeletionWithinBudget itself; the agent removes nothing without the annotation.
	ConfirmDeletionAnnotation = "federation.trellis.garden/confirm-deletion"
	// ConfirmDeletionYes removes the objects from the member.
	ConfirmDeletionYes = "yes"
	// ConfirmDeletionKeep leaves the objects in the member as they are. A Work of the same name takes them over.
	ConfirmDeletionKeep = "keep"
	// ConfirmDeletionEvicted marks Works that go away because of an eviction.
	ConfirmDeletionEvicted = "evicted"
	// ConfirmDeletionWithinBudget marks Works that an agent may remove without anybody having to confirm it.
	ConfirmDeletionWithinBudget = "within-budget"
	// PreservedLabelsAnnotation holds, as JSON, the labels that a Work's object got from the copy that it replaced.
	PreservedLabelsAnnotation = "federation.trellis.garden/preserved-labels"

	// ConditionDeletionHeld is True while the deletion of a Work waits for a confirmation.
	ConditionDeletionHeld = "DeletionHeld"
	// ConditionApplied says whether the member has the objects as the Work wants them.
	ConditionApplied = "Applied"
	// ReasonNotInterpreted is the reason of Applied=True when the member has the objects, but it is not understood what
	// became of them.
	ReasonNotInterpreted = "NotInterpreted"
	// ConditionDispatching is False while the Work is suspended.
	ConditionDispatching = "Dispatching"
)

// Work holds the manifests that one member has to run. Its namespace tells the member.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=works,scope=Namespaced,shortName=wk,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].kind`,name="Workload-Kind",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].metadata.name`,name="Workload-Name",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Applied")].status`,name="Applied",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Work struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec WorkSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Work `json:"items"`
}

// WorkSpec is what the member has to run.
type WorkSpec struct {
	// Workload holds the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`
	// SuspendDispatching keeps changes from the member.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`
	// PreserveResourcesOnDeletion leaves the objects in the member when the Work goes away.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate holds manifests.
type WorkloadTemplate struct {
	// Manifests are whole objects.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is a whole object.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:EmbeddedResource
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is what the member made of the manifests.
type WorkStatus struct {
	// Conditions: Applied, Progressing, Available, Degraded, Dispatching.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ManifestStatuses are in the order of the manifests.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// ResourceHealth is Healthy, Unhealthy or Unknown.
type ResourceHealth string

// Values of ResourceHealth.
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)

// ManifestStatus is the state of one object in the member.
type ManifestStatus struct {
	// Identifier tells the object.
	Identifier ResourceIdentifier `json:"identifier"`
	// Status of the object, as far as it is collected.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`
	// Health of the object.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier tells one of the manifests.
type ResourceIdentifier struct {
	// Ordinal is the index in the manifests.
	Ordinal int `json:"ordinal"`
	// Group of the API.
	// +optional
	Group string `json:"group,omitempty"`
	// Version of the API.
	Version string `json:"version"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Resource is the plural.
	Resource string `json:"resource"`
	// Namespace of the object, empty if it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
}

// DeletionHeld tells whether the deletion of the Work waits for a confirmation.
func (w *Work) DeletionHeld() bool {
	return w.DeletionTimestamp != nil && w.Annotations[ConfirmDeletionAnnotation] == "" &&
		meta.IsStatusConditionTrue(w.Status.Conditions, ConditionDeletionHeld)
}
