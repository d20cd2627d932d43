package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverridePolicy changes objects of its namespace for some clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=overridepolicies,scope=Namespaced,shortName=op,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OverridePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which objects are changed, and how.
	Spec OverrideSpec `json:"spec"`
}

// OverridePolicyList is a list of OverridePolicies.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy changes objects of any namespace, and objects without one, for some clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteroverridepolicies,scope=Cluster,shortName=cop,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterOverridePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which objects are changed, and how.
	Spec OverrideSpec `json:"spec"`
}

// ClusterOverridePolicyList is a list of ClusterOverridePolicies.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec says what is changed for which clusters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.overrideRules) || !has(self.targetCluster)",message="belongs to the older form; with overrideRules put it into a rule",fieldPath=".targetCluster"
// +kubebuilder:validation:XValidation:rule="!has(self.overrideRules) || !has(self.overriders) || !(has(self.overriders.plaintext) || has(self.overriders.imageOverrider) || has(self.overriders.commandOverrider) || has(self.overriders.argsOverrider) || has(self.overriders.labelsOverrider) || has(self.overriders.annotationsOverrider) || has(self.overriders.fieldOverrider))",message="belongs to the older form; with overrideRules put them into a rule",fieldPath=".overriders"
type OverrideSpec struct {
	// ResourceSelectors name the objects; absent means every object of the policy's scope.
	// +optional
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`
	// OverrideRules are applied in order.
	// +optional
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`
	// TargetCluster is the older form of overrideRules[].targetCluster.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	// Overriders is the older form of overrideRules[].overriders.
	// +optional
	Overriders Overriders `json:"overriders"`
}

// RuleWithCluster changes objects for the clusters that match.
type RuleWithCluster struct {
	// TargetCluster matches clusters; absent means all.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	// Overriders are the changes.
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes, applied in the order image, command, args, labels, annotations, field, plaintext.
type Overriders struct {
	// Plaintext entries form one JSON patch.
	// +optional
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`
	// ImageOverrider changes parts of image names.
	// +optional
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`
	// CommandOverrider changes commands of containers.
	// +optional
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`
	// ArgsOverrider changes arguments of containers.
	// +optional
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`
	// LabelsOverrider changes labels.
	// +optional
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`
	// AnnotationsOverrider changes annotations.
	// +optional
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`
	// FieldOverrider changes a JSON or YAML document that is held in a string field.
	// +optional
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`
}

// OverriderOperator is add, remove or replace.
type OverriderOperator string

// Values of OverriderOperator.
const (
	OverriderOpAdd     OverriderOperator = "add"
	OverriderOpRemove  OverriderOperator = "remove"
	OverriderOpReplace OverriderOperator = "replace"
)

// PlaintextOverrider is one operation of a JSON patch.
type PlaintextOverrider struct {
	// Path is a JSON pointer (RFC 6901).
	Path string `json:"path"`
	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`
	// Value is any JSON; ignored by remove.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// ImageComponent is a part of an image name.
type ImageComponent string

// Values of ImageComponent.
const (
	ImageRegistry   ImageComponent = "Registry"
	ImageRepository ImageComponent = "Repository"
	ImageTag        ImageComponent = "Tag"
)

// ImageOverrider changes a part of image names.
type ImageOverrider struct {
	// Predicate points at the field that holds the image. Absent: the containers of the kinds that are known to have
	// some.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`
	// Component is the part that is changed; Tag means tag or digest.
	// +kubebuilder:validation:Enum=Registry;Repository;Tag
	Component ImageComponent `json:"component"`
	// Operator: add appends to the part, replace substitutes it, remove empties it.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`
	// Value is the text; ignored by remove.
	// +optional
	Value string `json:"value,omitempty"`
}

// ImagePredicate points at a field.
type ImagePredicate struct {
	// Path is a JSON pointer (RFC 6901).
	Path string `json:"path"`
}

// CommandArgsOverrider changes command or arguments of one container.
type CommandArgsOverrider struct {
	// ContainerName names the container; one that doesn't exist changes nothing.
	ContainerName string `json:"containerName"`
	// Operator: add appends, remove takes out equal strings.
	// +kubebuilder:validation:Enum=add;remove
	Operator OverriderOperator `json:"operator"`
	// Value are the strings.
	// +optional
	Value []string `json:"value,omitempty"`
}

// LabelAnnotationOverrider changes labels or annotations; replace and remove skip keys that are absent.
type LabelAnnotationOverrider struct {
	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`
	// Value holds the keys and, except for remove, their values.
	// +optional
	Value map[string]string `json:"value,omitempty"`
}

// FieldOverrider changes a document inside a string field.
//
// +kubebuilder:validation:XValidation:rule="has(self.json) != has(self.yaml)",message="give exactly one of json and yaml"
type FieldOverrider struct {
	// FieldPath is a JSON pointer (RFC 6901) to the string.
	FieldPath string `json:"fieldPath"`
	// JSON changes a JSON document.
	// +optional
	JSON []JSONPatchOperation `json:"json,omitempty"`
	// YAML changes a YAML document.
	// +optional
	YAML []YAMLPatchOperation `json:"yaml,omitempty"`
}

// JSONPatchOperation changes a place of a JSON document.
type JSONPatchOperation struct {
	// SubPath is a JSON pointer (RFC 6901) into the document.
	SubPath string `json:"subPath"`
	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`
	// Value is any JSON.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// YAMLPatchOperation changes a place of a YAML document.
type YAMLPatchOperation struct {
	// SubPath is a JSON pointer (RFC 6901) into the document.
	SubPath string `json:"subPath"`
	// Operator is add, remove or replace.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`
	// Value is any JSON.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}
