package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterCustomization teaches a fleet a kind by scripts. What it says goes before webhooks and before what
// is built in, for each operation on its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope=Cluster,shortName=ric,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.target.apiVersion`,name="Target-API-Version",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.target.kind`,name="Target-Kind",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which kind is taught, and how.
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationList is a list of ResourceInterpreterCustomizations.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ResourceInterpreterCustomization `json:"items"`
}

// ResourceInterpreterCustomizationSpec is a kind and its rules.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind. Of several customizations with the same target, the first by name answers an operation.
	Target CustomizationTarget `json:"target"`
	// Customizations are the rules; an operation without a rule is answered as if there were no customization.
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget names a kind in one version.
type CustomizationTarget struct {
	// APIVersion of the kind, for example apps.example.com/v1.
	APIVersion string `json:"apiVersion"`
	// Kind, for example Workflow.
	Kind string `json:"kind"`
}

// CustomizationRules are scripts by operation. Each defines one function, besides what it needs for itself, and may
// load the library kube.
type CustomizationRules struct {
	// Retention keeps in the object that is to be applied what the member decides about.
	// +optional
	Retention *LocalValueRetention `json:"retention,omitempty"`
	// ReplicaResource finds the number of replicas, and what one of them needs.
	// +optional
	ReplicaResource *ReplicaResourceRequirement `json:"replicaResource,omitempty"`
	// ComponentResource finds the parts of an object that has several with replicas. ReplicaResource is not asked then.
	// +optional
	ComponentResource *ComponentResourceRequirement `json:"componentResource,omitempty"`
	// ReplicaRevision writes a member's share of the replicas.
	// +optional
	ReplicaRevision *ReplicaRevision `json:"replicaRevision,omitempty"`
	// StatusReflection takes from an object in a member what is worth knowing.
	// +optional
	StatusReflection *StatusReflection `json:"statusReflection,omitempty"`
	// StatusAggregation adds up the statuses of all members.
	// +optional
	StatusAggregation *StatusAggregation `json:"statusAggregation,omitempty"`
	// HealthInterpretation judges an object in a member.
	// +optional
	HealthInterpretation *HealthInterpretation `json:"healthInterpretation,omitempty"`
	// DependencyInterpretation finds the objects that an object refers to.
	// +optional
	DependencyInterpretation *DependencyInterpretation `json:"dependencyInterpretation,omitempty"`
}

// LocalValueRetention is the script for Retain.
type LocalValueRetention struct {
	// LuaScript defines Retain(desiredObj, observedObj), which returns the object that is applied.
	LuaScript string `json:"luaScript"`
}

// ReplicaResourceRequirement is the script for InterpretReplica.
type ReplicaResourceRequirement struct {
	// LuaScript defines GetReplicas(obj), which returns the number of replicas and what one needs, in the form of a
	// binding's spec.replicaRequirements; the second may be nil.
	LuaScript string `json:"luaScript"`
}

// ComponentResourceRequirement is the script for InterpretComponent.
type ComponentResourceRequirement struct {
	// LuaScript defines GetComponents(obj), which returns a list in the form of a binding's spec.components.
	LuaScript string `json:"luaScript"`
}

// ReplicaRevision is the script for ReviseReplica.
type ReplicaRevision struct {
	// LuaScript defines ReviseReplica(obj, desiredReplica), which returns the changed object.
	LuaScript string `json:"luaScript"`
}

// StatusReflection is the script for InterpretStatus.
type StatusReflection struct {
	// LuaScript defines ReflectStatus(observedObj), which returns the status that the fleet gets.
	LuaScript string `json:"luaScript"`
}

// StatusAggregation is the script for AggregateStatus.
type StatusAggregation struct {
	// LuaScript defines AggregateStatus(desiredObj, statusItems), which returns the object with its new status. Each
	// item has the fields of a binding's status.aggregatedStatus.
	LuaScript string `json:"luaScript"`
}

// HealthInterpretation is the script for InterpretHealth.
type HealthInterpretation struct {
	// LuaScript defines InterpretHealth(observedObj), which returns whether the object is healthy.
	LuaScript string `json:"luaScript"`
}

// DependencyInterpretation is the script for InterpretDependency.
type DependencyInterpretation struct {
	// LuaScript defines GetDependencies(obj), which returns a list of references: apiVersion, kind, namespace, and name
	// or labelSelector.
	LuaScript string `json:"luaScript"`
}
