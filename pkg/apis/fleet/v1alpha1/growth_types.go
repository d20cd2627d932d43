package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// FleetGrowth says how a fleet may get more machines for objects that do not fit into its members, within which limits,
// and when it gives them back. Policies refer to it by name in spec.placement.growth.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=fleetgrowths,scope=Cluster,shortName=fg
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.status.machines`,name="Machines",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.shoots`,name="Shoots",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.costPerHour`,name="Cost/h",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.currency`,name="Currency",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Satisfied")].status`,name="Satisfied",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Satisfied")].message`,name="Why",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FleetGrowth struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name is at most 63 characters long, since it becomes the value of a label.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What may be had, and within which limits.
	Spec FleetGrowthSpec `json:"spec"`
	// What was done and why; written by controllers.
	// +optional
	Status FleetGrowthStatus `json:"status,omitempty"`
}

// FleetGrowthList is a list of FleetGrowths.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FleetGrowthList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []FleetGrowth `json:"items"`
}

// FleetGrowthSpec says what may be had, and within which limits.
type FleetGrowthSpec struct {
	// Machines are the machine types that may be had, with what they offer and cost. Pools of other types are never
	// enlarged.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=type
	Machines []GrowthMachine `json:"machines"`
	// Currency of the costs, for people.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Currency string `json:"currency,omitempty"`
	// Limits bound what is had at a time.
	Limits GrowthLimits `json:"limits"`
	// Pools are the worker pools of members that may be enlarged. Of several entries that select a pool, the first
	// counts.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Pools []GrowthPools `json:"pools,omitempty"`
	// Shoots may be created when no pool can be enlarged. Absent: none.
	// +optional
	Shoots *GrowthShoots `json:"shoots,omitempty"`
	// CoolDownSeconds is how long after something was added nothing more is. Default: 30.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=30
	// +optional
	CoolDownSeconds *int32 `json:"coolDownSeconds,omitempty"`
	// GiveBack says when machines and shoots are given back.
	// +optional
	GiveBack *GrowthGiveBack `json:"giveBack,omitempty"`
}

// GrowthMachine is a machine type that may be had.
type GrowthMachine struct {
	// Type is the name of the machine type in the cloud profile.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`
	// Capacity is what an empty node of that type has for pods: cpu and memory at least. Pods are 110 unless given. It
	// should be what status.allocatable of such a node says, less what DaemonSets request. Not negative.
	// +kubebuilder:validation:XValidation:rule="has(self.cpu) && has(self.memory)",message="needs cpu and memory"
	Capacity corev1.ResourceList `json:"capacity"`
	// CostPerHour of one machine. Not negative.
	// +optional
	CostPerHour resource.Quantity `json:"costPerHour,omitempty"`
}

// GrowthLimits bound what is had at a time, over all pools and shoots.
type GrowthLimits struct {
	// Machines is the largest number of machines.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Machines int32 `json:"machines"`
	// CostPerHour is what they may cost together. Absent: no bound. Not negative.
	// +optional
	CostPerHour *resource.Quantity `json:"costPerHour,omitempty"`
	// Step is the largest number of machines that are added at once. Default: 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=10
	// +optional
	Step *int32 `json:"step,omitempty"`
}

// GrowthPools selects worker pools of members that are shoots.
type GrowthPools struct {
	// ClusterSelector selects members by the labels of their Clusters. Empty: all.
	// +optional
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// Names of the pools. Empty: all.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Names []string `json:"names,omitempty"`
	// Maximum is the largest number of machines that a pool may be enlarged to.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Maximum int32 `json:"maximum"`
}

// GrowthShoots says which shoots may be created in the fleet's project.
type GrowthShoots struct {
	// Maximum is the largest number of shoots at a time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Maximum int32 `json:"maximum"`
	// NamePrefix begins the names of the shoots; a number follows. The garden bounds the length of names.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must consist of small letters, digits and '-', begin with a letter, and end with a letter or digit"
	// +kubebuilder:validation:MaxLength=16
	NamePrefix string `json:"namePrefix"`
	// Template of the shoots.
	Template GrowthShootTemplate `json:"template"`
}

// GrowthShootTemplate describes shoots.
type GrowthShootTemplate struct {
	// Labels of the shoots, by which policies select them as members.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Spec of the shoots, as in a Shoot of core.gardener.cloud/v1beta1. Its worker pools have machine types of
	// spec.machines, and a minimum. It names no seed and no resources.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec"`
}

// GrowthGiveBack says when machines and shoots are given back.
type GrowthGiveBack struct {
	// IdleSeconds is how long after a pool was enlarged last its minimum is lowered again, unless something waits for
	// it, so that the cluster-autoscaler of the shoot removes the machines that are not used; and how long a shoot must
	// have been unused. Default: 600.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=604800
	// +kubebuilder:default=600
	// +optional
	IdleSeconds *int32 `json:"idleSeconds,omitempty"`
	// Disabled keeps everything until the FleetGrowth is deleted.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// Conditions of a FleetGrowth.
const (
	// GrowthAllowed says whether the garden lets the fleet grow: see AllowGrowthAnnotation.
	GrowthAllowed = "Allowed"
	// GrowthSatisfied says whether nothing waits for machines that cannot be had.
	GrowthSatisfied = "Satisfied"
)

// Reasons of the conditions of a FleetGrowth.
const (
	// ReasonAllowed is the reason of Allowed=True.
	ReasonAllowed = "Allowed"
	// ReasonNotAllowed: the fleet's Shoot lacks the annotation.
	ReasonNotAllowed = "NotAllowed"
	// ReasonInvalid: the object cannot be carried out as it is.
	ReasonInvalid = "Invalid"
	// ReasonNothingWaits is the reason of Satisfied=True.
	ReasonNothingWaits = "NothingWaits"
	// ReasonGrowing: what was asked for is on its way.
	ReasonGrowing = "Growing"
	// ReasonRefused: something waits that limits or other reasons keep from getting machines.
	ReasonRefused = "Refused"
	// ReasonDemandUnknown: the fleet's controllers have not said for a while what waits.
	ReasonDemandUnknown = "DemandUnknown"
)

// FleetGrowthStatus is what was done and why.
type FleetGrowthStatus struct {
	// ObservedGeneration is the generation of the spec that was acted by.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Demand is what waits for room; written by the fleet's controllers.
	// +optional
	Demand *GrowthDemand `json:"demand,omitempty"`
	// Machines that were added and not given back, those of shoots included.
	// +optional
	Machines int32 `json:"machines"`
	// Shoots that were created and not given back.
	// +optional
	Shoots int32 `json:"shoots"`
	// CostPerHour of the machines.
	// +optional
	CostPerHour *resource.Quantity `json:"costPerHour,omitempty"`
	// Observed is what empty nodes turned out to have, where that was less than spec.machines says. It is forgotten
	// when the spec changes.
	// +listType=map
	// +listMapKey=type
	// +optional
	Observed []ObservedMachine `json:"observed,omitempty"`
	// Unused are shoots that were created and that nothing uses, since when.
	// +listType=map
	// +listMapKey=name
	// +optional
	Unused []UnusedShoot `json:"unused,omitempty"`
	// Refused says why more is not added, if something waits.
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Refused []string `json:"refused,omitempty"`
	// Decisions are the last ones, the latest first.
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Decisions []GrowthDecision `json:"decisions,omitempty"`
	// Conditions: Allowed, Satisfied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxGrowthRecords bounds status.refused and status.decisions.
const MaxGrowthRecords = 20

// MaxGrowthDemand bounds status.demand.items.
const MaxGrowthDemand = 50

// GrowthDemand is what waits for room.
type GrowthDemand struct {
	// ObservedTime is when this was last found to be so.
	ObservedTime metav1.Time `json:"observedTime"`
	// ObservedGeneration is the generation of the spec that this was found with.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Items are the objects that wait.
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Items []GrowthDemandItem `json:"items,omitempty"`
	// Omitted is the number of objects that wait and are not listed.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// Used are the created shoots that have objects with divided replicas.
	// +optional
	Used []string `json:"used,omitempty"`
}

// GrowthDemandItem is an object that waits for room.
type GrowthDemandItem struct {
	// Binding is the ResourceBinding as namespace/name, or the ClusterResourceBinding.
	Binding string `json:"binding"`
	// Replicas that have no place.
	Replicas int32 `json:"replicas"`
	// Request of one replica.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// NodeClaim restricts the nodes.
	// +optional
	NodeClaim *workv1alpha2.NodeClaim `json:"nodeClaim,omitempty"`
	// Components of an object that is placed as a unit, all of them in one cluster. It counts as one replica, which has
	// no request of its own then.
	// +optional
	Components []GrowthDemandComponent `json:"components,omitempty"`
	// Clusters that would take it if they had room.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// MaxClusters is the largest number of clusters it may be spread over; 0: no bound.
	// +optional
	MaxClusters int32 `json:"maxClusters,omitempty"`
	// NewShoot tells that a shoot of the template would take it.
	// +optional
	NewShoot bool `json:"newShoot,omitempty"`
	// Useless says why neither would help, if so.
	// +optional
	Useless string `json:"useless,omitempty"`
}

// GrowthDemandComponent is a part of an object that waits for room.
type GrowthDemandComponent struct {
	// Name of the component.
	Name string `json:"name"`
	// Replicas that it has.
	Replicas int32 `json:"replicas"`
	// Request of one replica.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// NodeClaim restricts the nodes.
	// +optional
	NodeClaim *workv1alpha2.NodeClaim `json:"nodeClaim,omitempty"`
}

// ObservedMachine is what an empty node of a machine type has.
type ObservedMachine struct {
	// Type is the machine type.
	Type string `json:"type"`
	// Capacity that was found.
	Capacity corev1.ResourceList `json:"capacity"`
}

// UnusedShoot is a shoot that nothing uses.
type UnusedShoot struct {
	// Name of the shoot.
	Name string `json:"name"`
	// Since when.
	Since metav1.Time `json:"since"`
}

// GrowthDecision is something that was done.
type GrowthDecision struct {
	// Time of the decision.
	Time metav1.Time `json:"time"`
	// Action is EnlargePool, LowerMinimum, RestorePool, LeavePool, CreateShoot, DrainShoot, KeepShoot or DeleteShoot.
	Action string `json:"action"`
	// Shoot that it was about.
	Shoot string `json:"shoot"`
	// Pool that it was about.
	// +optional
	Pool string `json:"pool,omitempty"`
	// Machines that were added, or less than zero if some may go.
	// +optional
	Machines int32 `json:"machines,omitempty"`
	// Reason tells why.
	Reason string `json:"reason"`
	// Error tells that it did not succeed; it is tried again.
	// +optional
	Error string `json:"error,omitempty"`
}

// PoolRecord says what a fleet did to a worker pool. It is kept on the Shoot, see GrownPoolsAnnotation.
type PoolRecord struct {
	// Fleet is the name of the fleet's Shoot.
	Fleet string `json:"fleet"`
	// Growth is the FleetGrowth.
	Growth string `json:"growth"`
	// Minimum of the pool before.
	Minimum int32 `json:"minimum"`
	// Maximum of the pool before.
	Maximum int32 `json:"maximum"`
	// Nodes of the pool before.
	Nodes int32 `json:"nodes"`
	// SetMinimum is the minimum that was set. With another one, somebody else has changed the pool, and it is left
	// alone.
	SetMinimum int32 `json:"setMinimum"`
	// SetMaximum is the maximum that was set. With another one, somebody else has changed the pool, and it is left
	// alone.
	SetMaximum int32 `json:"setMaximum"`
	// Since is when the pool was changed last.
	Since metav1.Time `json:"since"`
}
