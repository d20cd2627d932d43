package v1alpha2

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

const (
	// AppliedAffinityAnnotation is the name of the affinity term that spec.clusters were chosen with. It is written
	// together with them, so that it is known even when the status is not written yet. An extension: Karmada has no
	// such annotation.
	AppliedAffinityAnnotation = "federation.trellis.garden/applied-affinity"
	// DecisionAnnotation holds the scheduler's last decision but for the clusters: a line with the generation that has
	// it, its time and its reason, and then the message. It is written together with the clusters; the status repeats
	// it. An extension: Karmada has no such annotation.
	DecisionAnnotation = "federation.trellis.garden/decision"
	// DecisionReportAnnotation holds, as JSON, the PlacementDecision of the last decision, if the status may not have
	// it yet. An extension.
	DecisionReportAnnotation = "federation.trellis.garden/decision-report"
	// Finalizer keeps a ResourceBinding until its Works are gone.
	Finalizer = "karmada.io/binding-controller"
	// ClusterFinalizer keeps a ClusterResourceBinding until its Works are gone.
	ClusterFinalizer = "karmada.io/cluster-resource-binding-controller"

	// PermanentIDLabel, on a ResourceBinding and its Works, identifies the binding.
	PermanentIDLabel = "resourcebinding.karmada.io/permanent-id"
	// ClusterPermanentIDLabel, on a ClusterResourceBinding and its Works, identifies the binding.
	ClusterPermanentIDLabel = "clusterresourcebinding.karmada.io/permanent-id"
	// NamespaceAnnotation, on a Work, holds the namespace of its ResourceBinding.
	NamespaceAnnotation = "resourcebinding.karmada.io/namespace"
	// NameAnnotation, on a Work, holds the name of its ResourceBinding.
	NameAnnotation = "resourcebinding.karmada.io/name"
	// ClusterNameAnnotation, on a Work, holds the name of its ClusterResourceBinding.
	ClusterNameAnnotation = "clusterresourcebinding.karmada.io/name"

	// DeletionProtectionLabel, with the value DeletionProtectionAlways on any object of the fleet, has its deletion
	// refused.
	DeletionProtectionLabel = "resourcetemplate.karmada.io/deletion-protected"
	// DeletionProtectionAlways is the value of DeletionProtectionLabel that protects.
	DeletionProtectionAlways = "Always"

	// ConditionScheduled says whether clusters were found.
	ConditionScheduled = "Scheduled"
	// ConditionFullyApplied says whether all clusters have the object.
	ConditionFullyApplied = "FullyApplied"

	// ReasonSuccess is the reason of Scheduled=True.
	ReasonSuccess = "Success"
	// ReasonSchedulerError: the decision failed for another reason than room or fit.
	ReasonSchedulerError = "SchedulerError"
	// ReasonNoClusterFit: no cluster passes the policy's filters.
	ReasonNoClusterFit = "NoClusterFit"
	// ReasonUnschedulable: the clusters that fit lack room.
	ReasonUnschedulable = "Unschedulable"
	// ReasonWaiting: nothing is known yet of members that have just come; the message tells until when they are waited
	// for. The decision before it stays.
	ReasonWaiting = "WaitingForMembers"
	// ReasonQuotaExceeded: a FederatedResourceQuota does not allow what was decided; the decision before it stays.
	ReasonQuotaExceeded = "QuotaExceeded"

	// ReasonFullyAppliedSuccess is the reason of FullyApplied=True.
	ReasonFullyAppliedSuccess = "FullyAppliedSuccess"
	// ReasonFullyAppliedFailed is the reason of FullyApplied=False.
	ReasonFullyAppliedFailed = "FullyAppliedFailed"
)

// Producers of graceful eviction tasks.
const (
	// EvictionProducerTaintManager evicts from clusters with taints that are not tolerated.
	EvictionProducerTaintManager = "TaintManager"
	// EvictionProducerApplicationFailover evicts copies that stay unhealthy.
	EvictionProducerApplicationFailover = "ApplicationFailover"
	// EvictionProducerFailBack removes what is not needed any more after a return. Its task may name a cluster that
	// keeps the object with fewer replicas.
	EvictionProducerFailBack = "FailBack"

	// EvictionReasonTaintUntolerated is the reason of evictions by taints.
	EvictionReasonTaintUntolerated = "TaintUntolerated"
	// EvictionReasonApplicationFailure is the reason of evictions of unhealthy copies.
	EvictionReasonApplicationFailure = "ApplicationFailure"
	// EvictionReasonReturned is the reason of tasks that clear up after a return.
	EvictionReasonReturned = "Returned"
)

// ResourceBinding ties a namespaced object to its placement and to what became of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourcebindings,scope=Namespaced,shortName=rb,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="Scheduled",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FullyApplied",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:printcolumn:JSONPath=`.spec.clusters[*].name`,name="Clusters",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`,name="Why",type=string,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is propagated, and where to.
	Spec ResourceBindingSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ResourceBinding `json:"items"`
}

// ClusterResourceBinding ties an object without namespace to its placement and to what became of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterresourcebindings,scope=Cluster,shortName=crb,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="Scheduled",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FullyApplied",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:printcolumn:JSONPath=`.spec.clusters[*].name`,name="Clusters",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`,name="Why",type=string,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is propagated, and where to.
	Spec ResourceBindingSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBindings.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec is the object, its placement and, in Clusters, the decision.
type ResourceBindingSpec struct {
	// Resource is the object.
	Resource ObjectReference `json:"resource"`
	// PropagateDeps takes along what the object refers to.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`
	// ReplicaRequirements is what one replica needs.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`
	// Replicas that the object wants.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Components are the parts of an object that has several with replicas.
	// +optional
	Components []Component `json:"components,omitempty"`
	// Clusters is the decision of the scheduler: where the object goes, and with how many replicas.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
	// GracefulEvictionTasks are copies that go away once others run.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`
	// BeforeFailover is where the object returns to: where it was before clusters failed, or an earlier affinity term.
	// Absent when it returns to none. An extension: Karmada has no such field.
	// +optional
	BeforeFailover *BeforeFailover `json:"beforeFailover,omitempty"`
	// LastFailBack is the last return after a failure. An extension: Karmada has no such field.
	// +optional
	LastFailBack *FailBack `json:"lastFailBack,omitempty"`
	// RequiredBy are bindings that need the object in their clusters.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`
	// SchedulerName is that of the policy. It has no effect.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
	// Placement is that of the policy.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`
	// Failover is that of the policy.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`
	// ConflictResolution is that of the policy. Default: Abort.
	// +kubebuilder:default=Abort
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`
	// RescheduleTriggeredAt, when after status.lastScheduledTime, asks for a decision from scratch.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`
	// Suspension stops dispatching or scheduling.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`
	// PreserveResourcesOnDeletion leaves the objects in the members when the binding goes away.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
	// SchedulePriority orders the scheduler's queue.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
	// WorkloadAffinityGroups are the groups that the object belongs to.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
	// Rollout is that of the policy. An extension: Karmada has no such field.
	// +optional
	Rollout *policyv1alpha1.RolloutStrategy `json:"rollout,omitempty"`
	// RolloutControl is what people ask of the rollout. An extension: Karmada has no such field.
	// +optional
	RolloutControl *RolloutControl `json:"rolloutControl,omitempty"`
}

// ObjectReference tells an object.
type ObjectReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object, empty if it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// ResourceVersion of the object when it was looked at.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// ReplicaRequirements is what one replica needs.
type ReplicaRequirements struct {
	// NodeClaim restricts the nodes.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`
	// ResourceRequest are the requests of its pod.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`
	// Namespace of the pod.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// PriorityClassName of the pod.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim restricts nodes.
type NodeClaim struct {
	// HardNodeAffinity is the required node affinity.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`
	// NodeSelector is that of the pod.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are those of the pod.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Component is a part with replicas.
type Component struct {
	// Name of the component.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Replicas of the component.
	Replicas int32 `json:"replicas"`
	// ReplicaRequirements is what one replica needs.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements is what one replica of a component needs.
type ComponentReplicaRequirements struct {
	// NodeClaim restricts the nodes.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`
	// ResourceRequest are the requests of its pod.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`
	// PriorityClassName of the pod.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// TargetCluster is a cluster and its share.
type TargetCluster struct {
	// Name of the cluster.
	Name string `json:"name"`
	// Replicas there.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Components there, of an object that is placed as a unit.
	// +optional
	Components []TargetComponent `json:"components,omitempty"`
}

// TargetComponent is a component's share.
type TargetComponent struct {
	// Name of the component.
	Name string `json:"name"`
	// Replicas there.
	Replicas int32 `json:"replicas"`
}

// GracefulEvictionTask is a copy that goes away once others run.
type GracefulEvictionTask struct {
	// FromCluster is left.
	FromCluster string `json:"fromCluster"`
	// PurgeMode says how the copy is removed, as in the failover of a policy.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never;Immediately;Graciously
	// +optional
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`
	// Replicas that were there.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Reason is a word, such as TaintUntolerated or ApplicationFailure.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`
	// Message explains.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// Producer is the controller that evicts.
	Producer string `json:"producer"`
	// GracePeriodSeconds bounds how long the copy stays.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// SuppressDeletion true keeps the copy until somebody changes it, false removes the copy now. Absent: as purgeMode
	// says.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`
	// PreservedLabelState is carried over to the new copy.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`
	// CreationTimestamp of the task.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`
	// ClustersBeforeFailover had the object before.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}

// BeforeFailover remembers a decision that failures of clusters made void, so that the object can return.
type BeforeFailover struct {
	// Clusters is the decision before the first failure.
	Clusters []TargetCluster `json:"clusters"`
	// AffinityName is the affinity term of that decision.
	// +optional
	AffinityName string `json:"affinityName,omitempty"`
	// PlacementHash tells the placement of that decision. With another one the object has nowhere to return to.
	PlacementHash string `json:"placementHash"`
	// Failed are the clusters that were left. None of them is chosen before it has been healthy for a while.
	Failed []FailedCluster `json:"failed"`
}

// FailedCluster is a cluster that an object left because of a failure.
type FailedCluster struct {
	// Name of the cluster.
	Name string `json:"name"`
	// Reason is a word.
	Reason string `json:"reason"`
	// Time is when the object left.
	Time metav1.Time `json:"time"`
}

// FailBack is a return after a failure.
type FailBack struct {
	// Time of the return.
	Time metav1.Time `json:"time"`
	// Clusters that the object returned to.
	Clusters []string `json:"clusters"`
	// AffinityName is the affinity term that the scheduler has to begin with. It is cleared when the scheduler has done
	// so.
	// +optional
	AffinityName string `json:"affinityName,omitempty"`
}

// BindingSnapshot is the decision of another binding.
type BindingSnapshot struct {
	// Namespace of the binding.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the binding.
	Name string `json:"name"`
	// Clusters of the binding.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// Suspension stops dispatching or scheduling.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling true keeps the scheduler's decision as it is. Default: false.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SuspendsDispatching tells whether nothing is sent to a cluster. It is false of nil.
func (s *Suspension) SuspendsDispatching(cluster string) bool {
	if s == nil {
		return false
	}
	return s.Dispatching != nil && *s.Dispatching ||
		s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
}

// SchedulePriority orders the scheduler's queue.
type SchedulePriority struct {
	// Priority: larger first.
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are groups, as key=value.
type WorkloadAffinityGroups struct {
	// AffinityGroup stays together.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`
	// AntiAffinityGroup stays apart.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}

// ResourceBindingStatus is what became of the object.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation that was decided on last.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`
	// SchedulerObservedAffinityName is the affinity term in use.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`
	// LastScheduledTime is when the last decision was made.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`
	// Conditions: Scheduled, FullyApplied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// AggregatedStatus is the object's state per cluster.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
	// AggregatedGeneration is the newest generation that AggregatedStatus speaks of. It is kept only while copies wait
	// for their replacement. An extension: Karmada has no such field.
	// +optional
	AggregatedGeneration int64 `json:"aggregatedGeneration,omitempty"`
	// UnhealthyCopies are the clusters whose copy is unhealthy, and since when; only for objects with failover of
	// applications. An extension: Karmada has no such field.
	// +optional
	UnhealthyCopies []UnhealthyCopy `json:"unhealthyCopies,omitempty"`
	// Decision says of every cluster why it was chosen or not when the last decision was made. An extension: Karmada
	// has no such field.
	// +optional
	Decision *PlacementDecision `json:"decision,omitempty"`
	// Rollout is how far the rollout of the object's last change is; only for objects with one. An extension: Karmada
	// has no such field.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
}

// PlacementDecision explains a decision, cluster by cluster: each is a candidate, or rejected by the first check that
// it failed, or both if it was a candidate that others were preferred to. Long lists are cut; Omitted says so. What is
// said of every cluster is text, because API servers spend much more time on lists of objects, and every write of a
// binding pays for it.
type PlacementDecision struct {
	// Strategy is how replicas are divided: Duplicated, StaticWeight, DynamicWeight, Aggregated or Even.
	// +optional
	Strategy string `json:"strategy,omitempty"`
	// SkippedAffinities are the affinity terms that could not be satisfied before the one in use, with the reason.
	// +optional
	SkippedAffinities []SkippedAffinity `json:"skippedAffinities,omitempty"`
	// Ranking are the clusters that passed all checks of single clusters, in the order in which they were preferred,
	// one in a line: its name, "chosen" if it got the object, and what it was compared by, such as replicas=3
	// available=12 score=100 weight=2 tier=1.
	// +optional
	Ranking Ranking `json:"ranking,omitempty"`
	// Groups are the regions, zones, providers or values of a label that a spread constraint chose among.
	// +optional
	Groups []DecisionGroup `json:"groups,omitempty"`
	// Rejections are the reasons for which clusters were left out.
	// +optional
	Rejections []DecisionRejection `json:"rejections,omitempty"`
	// Omitted is the number of clusters of which nothing is said because there are too many.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// SkippedAffinity is an affinity term that could not be satisfied.
type SkippedAffinity struct {
	// AffinityName is the name of the term.
	AffinityName string `json:"affinityName"`
	// Message is the reason.
	Message string `json:"message"`
}

// DecisionGroup is a group of clusters that a spread constraint chose among.
type DecisionGroup struct {
	// Name of the region, zone or provider, or value of the label.
	Name string `json:"name"`
	// Score that groups were compared by.
	Score int64 `json:"score"`
	// Clusters of the group that could be chosen.
	Clusters int32 `json:"clusters"`
	// Chosen tells whether clusters could be taken from it.
	// +optional
	Chosen bool `json:"chosen,omitempty"`
}

// DecisionRejection is a reason against clusters.
type DecisionRejection struct {
	// Reason is a word, such as TaintNotTolerated.
	Reason string `json:"reason"`
	// Message names the field that decided and compares the values.
	Message string `json:"message"`
	// Clusters that were left out for it, with spaces between them.
	Clusters string `json:"clusters"`
}

// UnhealthyCopy is a copy that is unhealthy.
type UnhealthyCopy struct {
	// ClusterName is the cluster.
	ClusterName string `json:"clusterName"`
	// Since is when it was first seen to be unhealthy.
	Since metav1.Time `json:"since"`
}

// ResourceHealth is Healthy, Unhealthy or Unknown.
type ResourceHealth string

// Values of ResourceHealth.
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)

// AggregatedStatusItem is the object's state in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the cluster.
	ClusterName string `json:"clusterName"`
	// Status of the object there.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`
	// Applied says whether the cluster has the object as it should be.
	// +optional
	Applied bool `json:"applied,omitempty"`
	// AppliedMessage explains when it hasn't.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`
	// Health of the object there.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// BindingSpec gives the spec, in one form for both kinds.
func (b *ResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus gives the status, in one form for both kinds.
func (b *ResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

// BindingSpec gives the spec, in one form for both kinds.
func (b *ClusterResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus gives the status, in one form for both kinds.
func (b *ClusterResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }
