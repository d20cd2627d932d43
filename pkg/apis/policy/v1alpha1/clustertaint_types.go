package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTaintPolicy taints clusters by their conditions.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertaintpolicies,scope=Cluster,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterTaintPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which clusters get which taints, and when.
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// ClusterTaintPolicyList is a list of ClusterTaintPolicies.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec says which clusters get which taints, and when. A cluster that matches neither the conditions
// for adding nor those for removing keeps what it has.
type ClusterTaintPolicySpec struct {
	// TargetClusters restricts the clusters. Absent: all clusters.
	// +optional
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`
	// AddOnConditions must all hold for the taints to be added. Without any, the taints are never added.
	// +optional
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`
	// RemoveOnConditions must all hold for the taints to be removed. Without any, the taints are never removed.
	// +optional
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`
	// Taints that are added and removed.
	// +kubebuilder:validation:MinItems=1
	Taints []Taint `json:"taints"`
}

// MatchConditionOperator is In or NotIn.
type MatchConditionOperator string

// Values of MatchConditionOperator.
const (
	MatchConditionIn    MatchConditionOperator = "In"
	MatchConditionNotIn MatchConditionOperator = "NotIn"
)

// MatchCondition compares the status of one of a cluster's conditions. It doesn't hold when the cluster has no such
// condition.
type MatchCondition struct {
	// ConditionType names the condition, for example Ready.
	ConditionType string `json:"conditionType"`
	// Operator In wants the condition's status among the values, NotIn wants it not to be there.
	// +kubebuilder:validation:Enum=In;NotIn
	Operator MatchConditionOperator `json:"operator"`
	// StatusValues to compare with: True, False, Unknown.
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// Taint that a policy gives to clusters.
type Taint struct {
	// Key of the taint. Key and effect together tell a taint from others.
	Key string `json:"key"`
	// Effect of the taint. NoExecute moves objects away that don't tolerate it.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
	// Value of the taint.
	// +optional
	Value string `json:"value,omitempty"`
}
