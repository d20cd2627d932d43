package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations by which a binding tells the policy that claimed its object.
const (
	// PropagationPolicyPermanentIDLabel holds the UID of the claiming PropagationPolicy.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// PropagationPolicyNamespaceAnnotation holds the namespace of the claiming PropagationPolicy.
	PropagationPolicyNamespaceAnnotation = "propagationpolicy.karmada.io/namespace"
	// PropagationPolicyNameAnnotation holds the name of the claiming PropagationPolicy.
	PropagationPolicyNameAnnotation = "propagationpolicy.karmada.io/name"
	// ClusterPropagationPolicyPermanentIDLabel holds the UID of the claiming ClusterPropagationPolicy.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"
	// ClusterPropagationPolicyNameAnnotation holds the name of the claiming ClusterPropagationPolicy.
	ClusterPropagationPolicyNameAnnotation = "clusterpropagationpolicy.karmada.io/name"
	// AppliedPlacementAnnotation holds, as JSON, the placement that the binding's clusters were chosen for.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverridesAnnotation lists, as JSON, the OverridePolicies that shaped a Work.
	AppliedOverridesAnnotation = "policy.karmada.io/applied-overrides"
	// AppliedClusterOverridesAnnotation lists, as JSON, the ClusterOverridePolicies that shaped a Work.
	AppliedClusterOverridesAnnotation = "policy.karmada.io/applied-cluster-overrides"
)

// PropagationPolicy spreads objects of its own namespace over member clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=propagationpolicies,scope=Namespaced,shortName=pp,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="Conflict-Resolution",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="Priority",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PropagationPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which objects are propagated, and where to.
	Spec PropagationSpec `json:"spec"`
}

// PropagationPolicyList is a list of PropagationPolicies.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy spreads objects of any namespace, and objects without one, over member clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpropagationpolicies,scope=Cluster,shortName=cpp,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="Conflict-Resolution",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="Priority",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterPropagationPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which objects are propagated, and where to.
	Spec PropagationSpec `json:"spec"`
}

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicies.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ClusterPropagationPolicy `json:"items"`
}

// PropagationSpec says which objects go where, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || !has(self.failover.application) || (has(self.propagateDeps) && self.propagateDeps)",message="application failover needs propagateDeps: true, so that what the application depends on moves with it",fieldPath=".failover"
// +kubebuilder:validation:XValidation:rule="!has(self.preemption) || self.preemption != 'Always' || self.resourceSelectors.all(s, has(s.name) && size(s.name) > 0)",message="preemption Always needs a name in every resource selector",fieldPath=".preemption"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.schedulerName) || (has(self.schedulerName) && self.schedulerName == oldSelf.schedulerName)",message="cannot be changed",fieldPath=".schedulerName"
type PropagationSpec struct {
	// ResourceSelectors name the objects to spread; an object is taken when any one matches.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Association is the old name of propagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`
	// PropagateDeps takes along what the objects refer to (ConfigMaps, Secrets, ServiceAccounts, …). Default: false.
	// +kubebuilder:default=false
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`
	// Placement chooses clusters and divides replicas. Absent: every cluster, all replicas in each.
	// +optional
	Placement Placement `json:"placement,omitempty"`
	// Priority decides between several policies of the same scope that match an object: the larger wins. Default: 0.
	// +kubebuilder:default=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// Preemption Always lets this policy take over objects that another one, of lower priority, has claimed; every
	// resource selector needs a name then. Default: Never.
	// +kubebuilder:validation:Enum=Always;Never
	// +kubebuilder:default=Never
	// +optional
	Preemption PreemptionBehavior `json:"preemption,omitempty"`
	// DependentOverrides names override policies that must exist before anything is propagated: OverridePolicies of the
	// namespace for a PropagationPolicy, ClusterOverridePolicies for a ClusterPropagationPolicy.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`
	// SchedulerName has no effect: a fleet has one scheduler, which places all objects. It cannot be changed. Default:
	// default-scheduler.
	// +kubebuilder:default="default-scheduler"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
	// Failover says how objects leave clusters that fail.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`
	// ConflictResolution says what to do with an object that a member has already, and not from the fleet: Overwrite
	// takes it over, Abort leaves it alone and says so in the binding. Default: Abort.
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +kubebuilder:default=Abort
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`
	// ActivationPreference Lazy makes policy changes effective only when the object itself changes.
	// +kubebuilder:validation:Enum=Lazy
	// +optional
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`
	// Suspension stops propagation to all or some clusters: they keep what they have.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`
	// PreserveResourcesOnDeletion leaves the objects in the members when policy, object or cluster leave the fleet.
	// Default: false.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
	// SchedulePriority orders the scheduler's queue: objects with a larger priority are placed first. Absent: priority
	// 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
	// Rollout brings changes of the objects to their clusters wave by wave. Absent: to all clusters at once. An
	// extension: Karmada has no such field.
	// +optional
	Rollout *RolloutStrategy `json:"rollout,omitempty"`
}

// PreemptionBehavior is Always or Never.
type PreemptionBehavior string

// Values of PreemptionBehavior.
const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ConflictResolution is Abort or Overwrite.
type ConflictResolution string

// Values of ConflictResolution.
const (
	ConflictAbort     ConflictResolution = "Abort"
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// ActivationPreference is empty or Lazy.
type ActivationPreference string

// LazyActivation delays policy changes until the object itself changes.
const LazyActivation ActivationPreference = "Lazy"

// ResourceSelector names objects of one kind.
type ResourceSelector struct {
	// APIVersion of the objects, for example apps/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	Kind string `json:"kind"`
	// Namespace of the objects. In namespaced policies it is that of the policy.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of one object; then labelSelector is ignored.
	// +optional
	Name string `json:"name,omitempty"`
	// LabelSelector takes the objects whose labels match. Without it and a name, all objects of the kind are taken.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Placement chooses clusters and divides replicas among them.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.clusterAffinity) && has(self.clusterAffinities))",message="give either clusterAffinity or clusterAffinities, not both",fieldPath=".clusterAffinities"
type Placement struct {
	// ClusterAffinity restricts the clusters.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// ClusterAffinities are tried one after the other, until the objects can be placed.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.affinityName == a.affinityName))",message="affinityName must be unique"
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`
	// ClusterTolerations tolerate taints of clusters.
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator in ['Exists', 'Equal'])",message="operator must be Exists or Equal"
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`
	// SpreadConstraints bound the number of clusters or groups of clusters.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, (has(c.spreadByLabel) && size(c.spreadByLabel) > 0) || self.exists_one(d, (has(d.spreadByField) ? d.spreadByField : 'cluster') == (has(c.spreadByField) ? c.spreadByField : 'cluster') && !(has(d.spreadByLabel) && size(d.spreadByLabel) > 0)))",message="each spreadByField may be given once (absent means cluster)"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, has(c.spreadByField) && c.spreadByField != 'cluster') || self.exists(c, !has(c.spreadByLabel) && (!has(c.spreadByField) || c.spreadByField == 'cluster'))",message="a constraint by region, zone or provider needs one with spreadByField: cluster beside it"
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`
	// ReplicaScheduling divides replicas. Absent: every cluster gets all of them.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`
	// WorkloadAffinity keeps groups of workloads together or apart.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
	// Growth names the FleetGrowth by which the fleet may get more machines when replicas that are divided by room, or
	// an object that no cluster fits, have no place. Absent: it does not grow for these objects. An extension: Karmada
	// has no such field.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Growth string `json:"growth,omitempty"`
}

// SpreadFieldValue names a property of clusters.
type SpreadFieldValue string

// Values of SpreadFieldValue.
const (
	SpreadByFieldCluster  SpreadFieldValue = "cluster"
	SpreadByFieldRegion   SpreadFieldValue = "region"
	SpreadByFieldZone     SpreadFieldValue = "zone"
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// SpreadConstraint bounds the number of groups that objects are spread over.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.spreadByLabel) && size(self.spreadByLabel) > 0 && has(self.spreadByField))",message="give either spreadByField or spreadByLabel, not both",fieldPath=".spreadByLabel"
// +kubebuilder:validation:XValidation:rule="!has(self.maxGroups) || !has(self.minGroups) || self.maxGroups >= self.minGroups",message="must not be smaller than minGroups",fieldPath=".maxGroups"
type SpreadConstraint struct {
	// SpreadByField groups by a property. Absent means cluster, when SpreadByLabel is absent too.
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	// +optional
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`
	// SpreadByLabel groups by a label of clusters.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`
	// MaxGroups is the largest number of groups. Absent means no bound; 0 selects none.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxGroups *int `json:"maxGroups,omitempty"`
	// MinGroups is the smallest number of groups. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinGroups *int `json:"minGroups,omitempty"`
}

// ClusterAffinity matches clusters: those under exclude never match, the others when all that is given holds. Empty
// matches all.
type ClusterAffinity struct {
	// LabelSelector matches labels of clusters.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// FieldSelector matches provider, region and zones of clusters.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`
	// ClusterNames lists the clusters that may be chosen.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
	// ExcludeClusters lists clusters that are never chosen.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// FieldSelector matches properties of clusters.
type FieldSelector struct {
	// MatchExpressions must all hold.
	// +optional
	MatchExpressions []FieldSelectorRequirement `json:"matchExpressions,omitempty"`
}

// FieldSelectorRequirement matches one property of clusters.
type FieldSelectorRequirement struct {
	// Key is the property. Of the zones of a cluster, In wants any among the values and NotIn none.
	// +kubebuilder:validation:Enum=provider;region;zone
	Key SpreadFieldValue `json:"key"`
	// Operator is In or NotIn.
	// +kubebuilder:validation:Enum=In;NotIn
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values to compare with.
	// +optional
	Values []string `json:"values,omitempty"`
}

// ClusterAffinityTerm is a named ClusterAffinity.
type ClusterAffinityTerm struct {
	// AffinityName names the term.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`

	// OverflowAffinities add clusters, tier by tier, for replicas that find no room before.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	OverflowAffinities []OverflowAffinity `json:"overflowAffinities,omitempty"`
}

// OverflowAffinity is one tier of clusters that is used when the tiers before are full.
type OverflowAffinity struct {
	// AffinityName names the tier.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// ReplicaSchedulingType is Duplicated or Divided.
type ReplicaSchedulingType string

// Values of ReplicaSchedulingType.
const (
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	ReplicaSchedulingTypeDivided    ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference is Aggregated, Weighted or Even.
type ReplicaDivisionPreference string

// Values of ReplicaDivisionPreference.
const (
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	ReplicaDivisionPreferenceWeighted   ReplicaDivisionPreference = "Weighted"
	// ReplicaDivisionPreferenceEven is an extension of the published API.
	ReplicaDivisionPreferenceEven ReplicaDivisionPreference = "Even"
)

// DynamicWeightFactor names what weights are computed from.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weighs clusters by how many replicas still fit.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// ReplicaSchedulingStrategy divides replicas among the chosen clusters.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType Duplicated gives every cluster all replicas, Divided shares them out. Default: Divided.
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +kubebuilder:default=Divided
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`
	// ReplicaDivisionPreference Aggregated uses as few clusters as possible, Weighted goes by weights. Even (an
	// extension of the published API) gives all clusters the same number, as far as they have room; what runs already
	// stays where it is. Absent means Weighted. Only for Divided.
	// +kubebuilder:validation:Enum=Aggregated;Weighted;Even
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`
	// WeightPreference gives the weights. Absent: all weights are equal.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
	// Limits bound how many replicas single clusters get when replicas are divided. An extension of the published API.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Limits []ReplicaLimit `json:"limits,omitempty"`
}

// ReplicaLimit bounds the share of every cluster that matches. Of several that match a cluster, the largest minimum and
// the smallest maximum count; the maximum wins over the minimum. An extension of the published API.
//
// +kubebuilder:validation:XValidation:rule="has(self.minReplicas) || has(self.maxReplicas)",message="give minReplicas or maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.maxReplicas >= self.minReplicas",message="must not be smaller than minReplicas",fieldPath=".maxReplicas"
type ReplicaLimit struct {
	// TargetCluster matches the clusters. Absent means all.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	// MinReplicas are given to each of these clusters before others get more, as far as there are replicas and room.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas are never exceeded. Replicas that find no place leave the binding unschedulable.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// ClusterPreferences gives weights to clusters. DynamicWeight wins over StaticWeightList.
type ClusterPreferences struct {
	// StaticWeightList: a cluster has the largest weight of the entries that match it; one that none matches gets
	// nothing.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`
	// DynamicWeight computes the weights.
	// +kubebuilder:validation:Enum=AvailableReplicas
	// +optional
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight gives a weight to the clusters that match.
type StaticClusterWeight struct {
	// TargetCluster matches the clusters.
	TargetCluster ClusterAffinity `json:"targetCluster"`
	// Weight of each of them.
	// +kubebuilder:validation:Minimum=1
	Weight int64 `json:"weight"`
}

// WorkloadAffinity keeps groups of workloads together or apart.
type WorkloadAffinity struct {
	// Affinity keeps workloads with the same value of a label in the same clusters.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`
	// AntiAffinity keeps workloads with the same value of a label in different clusters.
	// +optional
	AntiAffinity *WorkloadAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm names the label that makes a group.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is a label key of the objects.
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// FailoverBehavior says how objects leave clusters.
type FailoverBehavior struct {
	// Application is about workloads that stay unhealthy. Absent: they stay where they are. It needs propagateDeps.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`
	// Cluster is about clusters that fail.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`
	// FailBack is about the way back when what failed is healthy again. Absent: the settings of the fleet. An
	// extension: Karmada has no such field.
	// +optional
	FailBack *FailBackBehavior `json:"failBack,omitempty"`
}

// FailBackMode is Automatic or Never.
type FailBackMode string

// Values of FailBackMode.
const (
	FailBackAutomatic FailBackMode = "Automatic"
	FailBackNever     FailBackMode = "Never"
)

// FailBackBehavior says when objects return to the clusters that they left because of a failure. An extension: Karmada
// has no such type.
type FailBackBehavior struct {
	// Mode Automatic returns objects by itself, Never leaves them where they are until a WorkloadRebalancer or a new
	// placement moves them. Default: Automatic.
	// +kubebuilder:validation:Enum=Automatic;Never
	// +kubebuilder:default=Automatic
	// +optional
	Mode FailBackMode `json:"mode,omitempty"`
	// WindowSeconds is how long a cluster must have been healthy without a break. Default: the fleet's setting, 300.
	// +kubebuilder:validation:Minimum=0
	// +optional
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
}

// PurgeMode says how the old copy is removed.
type PurgeMode string

// Values of PurgeMode. Immediately and Graciously are older names of Directly and Gracefully.
const (
	PurgeModeDirectly    PurgeMode = "Directly"
	PurgeModeGracefully  PurgeMode = "Gracefully"
	PurgeModeNever       PurgeMode = "Never"
	PurgeModeImmediately PurgeMode = "Immediately"
	PurgeModeGraciously  PurgeMode = "Graciously"
)

// ApplicationFailoverBehavior moves workloads that stay unhealthy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gracePeriodSeconds) || !has(self.purgeMode) || self.purgeMode in ['Gracefully', 'Graciously']",message="only with purgeMode Gracefully",fieldPath=".gracePeriodSeconds"
type ApplicationFailoverBehavior struct {
	// DecisionConditions say when.
	DecisionConditions DecisionConditions `json:"decisionConditions"`
	// PurgeMode says how the old copy is removed: Directly at once, Gracefully when its replacement is healthy, Never
	// not by itself. Immediately and Graciously are older names of the first two. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never;Immediately;Graciously
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`
	// GracePeriodSeconds bounds how long the old copy stays. Absent: until its replacement is healthy.
	// +kubebuilder:validation:Minimum=1
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// StatePreservation carries parts of the old status over.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions say when an application fails over.
type DecisionConditions struct {
	// TolerationSeconds is how long it may stay unhealthy. Default: 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=300
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// StatePreservation carries parts of the failed copy's status over as labels of the new one.
type StatePreservation struct {
	// Rules name the parts.
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule carries one value over.
type StatePreservationRule struct {
	// AliasLabelName is the key of the label that receives the value.
	AliasLabelName string `json:"aliasLabelName"`
	// JSONPath points into the failed copy's status, for example {.availableReplicas}.
	JSONPath string `json:"jsonPath"`
}

// ClusterFailoverBehavior moves objects away from clusters that fail.
type ClusterFailoverBehavior struct {
	// PurgeMode says how the old copy is removed: Directly at once, Gracefully when its replacement is healthy.
	// Immediately and Graciously are older names of these. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Immediately;Graciously
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`
	// GracePeriodSeconds bounds how long the old copy stays with purgeMode Gracefully. Absent: until its replacement is
	// healthy. An extension: Karmada has this field for applications only.
	// +kubebuilder:validation:Minimum=0
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// StatePreservation carries parts of the old status over.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// Suspension stops propagation.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.dispatching) && self.dispatching && has(self.dispatchingOnClusters) && has(self.dispatchingOnClusters.clusterNames) && size(self.dispatchingOnClusters.clusterNames) > 0)",message="give either dispatching or dispatchingOnClusters, not both",fieldPath=".dispatchingOnClusters"
type Suspension struct {
	// Dispatching true stops it for all clusters.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`
	// DispatchingOnClusters stops it for some.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters lists clusters.
type SuspendClusters struct {
	// ClusterNames lists the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// PriorityClassSource says which API a priority class is of.
type PriorityClassSource string

// KubePriorityClass is scheduling.k8s.io/v1 PriorityClass.
const KubePriorityClass PriorityClassSource = "KubePriorityClass"

// SchedulePriority orders the scheduler's queue.
type SchedulePriority struct {
	// PriorityClassSource says which API the class is of: KubePriorityClass, a PriorityClass of scheduling.k8s.io/v1 in
	// the fleet.
	// +kubebuilder:validation:Enum=KubePriorityClass
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`
	// PriorityClassName names the class. One that is missing counts as 0 until it exists.
	PriorityClassName string `json:"priorityClassName"`
}
