package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedSet keeps a number of ManagedSeeds, each with a Shoot of its own, named <set>-<ordinal>.
type ManagedSeedSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec ManagedSeedSetSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status ManagedSeedSetStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedSetList is a list of ManagedSeedSet objects.
type ManagedSeedSetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []ManagedSeedSet `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ManagedSeedSetSpec is how many seeds there are, and what they are made from.
type ManagedSeedSetSpec struct {
	// Number of seeds. Defaults to 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"bytes,1,opt,name=replicas"`
	// Selects the ManagedSeeds and Shoots of the set; the labels of both templates must match. Immutable.
	Selector metav1.LabelSelector `json:"selector" protobuf:"bytes,2,opt,name=selector"`
	// What ManagedSeeds are made from.
	Template ManagedSeedTemplate `json:"template" protobuf:"bytes,3,opt,name=template"`
	// What Shoots are made from.
	ShootTemplate gardencorev1beta1.ShootTemplate `json:"shootTemplate" protobuf:"bytes,4,opt,name=shootTemplate"`
	// How changes of the templates reach what is there.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,5,opt,name=updateStrategy"`
	// Old revisions that are kept. Defaults to 10. Immutable.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"bytes,6,opt,name=revisionHistoryLimit"`
}

// UpdateStrategy is how changes of the templates reach what is there.
type UpdateStrategy struct {
	// RollingUpdate, which is also the default.
	// +optional
	Type *UpdateStrategyType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`
	// Settings of type RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateStrategy `json:"rollingUpdate,omitempty" protobuf:"bytes,2,opt,name=rollingUpdate"`
}

// UpdateStrategyType names a way of updating.
type UpdateStrategyType string

// RollingUpdateStrategyType updates one replica after the other, the highest ordinal first.
const RollingUpdateStrategyType UpdateStrategyType = "RollingUpdate"

// RollingUpdateStrategy holds the settings of a rolling update.
type RollingUpdateStrategy struct {
	// Replicas with a lower ordinal keep the old revision. Defaults to 0.
	// +optional
	Partition *int32 `json:"partition,omitempty" protobuf:"bytes,1,opt,name=partition"`
}

// ManagedSeedSetStatus is what was last observed of a ManagedSeedSet.
type ManagedSeedSetStatus struct {
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,1,opt,name=observedGeneration"`
	// Replicas that are there.
	Replicas int32 `json:"replicas" protobuf:"bytes,2,opt,name=replicas"`
	// Replicas whose seed is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"bytes,3,opt,name=readyReplicas"`
	// Ordinal of the next replica. Never shrinks.
	// +optional
	NextReplicaNumber int32 `json:"nextReplicaNumber,omitempty" protobuf:"bytes,4,opt,name=nextReplicaNumber"`
	// Replicas of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty" protobuf:"bytes,5,opt,name=currentReplicas"`
	// Replicas of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"bytes,6,opt,name=updatedReplicas"`
	// Revision that replicas had before the update under way.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty" protobuf:"bytes,7,opt,name=currentRevision"`
	// Revision that replicas have after the update under way.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty" protobuf:"bytes,8,opt,name=updateRevision"`
	// Collisions of revision names so far. Never shrinks.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"bytes,9,opt,name=collisionCount"`
	// State, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,10,opt,name=conditions"`
	// Replica that has to come to rest before the next one is touched.
	// +optional
	PendingReplica *PendingReplica `json:"pendingReplica,omitempty" protobuf:"bytes,11,opt,name=pendingReplica"`
}

// PendingReplica is a replica that is waited for.
type PendingReplica struct {
	// Name of the replica.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// What is waited for.
	Reason PendingReplicaReason `json:"reason" protobuf:"bytes,2,opt,name=reason"`
	// Since when it is waited for this.
	Since metav1.Time `json:"since" protobuf:"bytes,3,opt,name=since"`
	// Times that the failed operation of the shoot was tried again.
	// +optional
	Retries *int32 `json:"retries,omitempty" protobuf:"bytes,4,opt,name=retries"`
}

// PendingReplicaReason is why a replica is waited for.
type PendingReplicaReason string

const (
	// ShootReconcilingReason says that the shoot is being reconciled.
	ShootReconcilingReason PendingReplicaReason = "ShootReconciling"
	// ShootDeletingReason says that the shoot is being deleted.
	ShootDeletingReason PendingReplicaReason = "ShootDeleting"
	// ShootReconcileFailedReason says that the reconciliation of the shoot has failed.
	ShootReconcileFailedReason PendingReplicaReason = "ShootReconcileFailed"
	// ShootDeleteFailedReason says that the deletion of the shoot has failed.
	ShootDeleteFailedReason PendingReplicaReason = "ShootDeleteFailed"
	// ManagedSeedPreparingReason says that the managed seed is being set up.
	ManagedSeedPreparingReason PendingReplicaReason = "ManagedSeedPreparing"
	// ManagedSeedDeletingReason says that the managed seed is being deleted.
	ManagedSeedDeletingReason PendingReplicaReason = "ManagedSeedDeleting"
	// SeedNotReadyReason says that the seed is not ready.
	SeedNotReadyReason PendingReplicaReason = "SeedNotReady"
	// ShootNotHealthyReason says that the shoot is not healthy.
	ShootNotHealthyReason PendingReplicaReason = "ShootNotHealthy"
)
