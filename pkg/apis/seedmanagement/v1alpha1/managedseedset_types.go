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
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec ManagedSeedSetSpec `json:"spec,omitempty"`
	// What was observed; written by controllers.
	// +optional
	Status ManagedSeedSetStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedSetList is a list of ManagedSeedSet objects.
type ManagedSeedSetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ManagedSeedSet `json:"items"`
}

// ManagedSeedSetSpec is how many seeds there are, and what they are made from.
type ManagedSeedSetSpec struct {
	// Number of seeds. Defaults to 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Selects the ManagedSeeds and Shoots of the set; the labels of both templates must match. Immutable.
	Selector metav1.LabelSelector `json:"selector"`
	// What ManagedSeeds are made from.
	Template ManagedSeedTemplate `json:"template"`
	// What Shoots are made from.
	ShootTemplate gardencorev1beta1.ShootTemplate `json:"shootTemplate"`
	// How changes of the templates reach what is there.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
	// Old revisions that are kept. Defaults to 10. Immutable.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// UpdateStrategy is how changes of the templates reach what is there.
type UpdateStrategy struct {
	// RollingUpdate, which is also the default.
	// +optional
	Type *UpdateStrategyType `json:"type,omitempty"`
	// Settings of type RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateStrategy `json:"rollingUpdate,omitempty"`
}

// UpdateStrategyType names a way of updating.
type UpdateStrategyType string

// RollingUpdateStrategyType updates one replica after the other, the highest ordinal first.
const RollingUpdateStrategyType UpdateStrategyType = "RollingUpdate"

// RollingUpdateStrategy holds the settings of a rolling update.
type RollingUpdateStrategy struct {
	// Replicas with a lower ordinal keep the old revision. Defaults to 0.
	// +optional
	Partition *int32 `json:"partition,omitempty"`
}

// ManagedSeedSetStatus is what was last observed of a ManagedSeedSet.
type ManagedSeedSetStatus struct {
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas that are there.
	Replicas int32 `json:"replicas"`
	// Replicas whose seed is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Ordinal of the next replica. Never shrinks.
	// +optional
	NextReplicaNumber int32 `json:"nextReplicaNumber,omitempty"`
	// Replicas of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// Replicas of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// Revision that replicas had before the update under way.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// Revision that replicas have after the update under way.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// Collisions of revision names so far. Never shrinks.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// State, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Replica that has to come to rest before the next one is touched.
	// +optional
	PendingReplica *PendingReplica `json:"pendingReplica,omitempty"`
}

// PendingReplica is a replica that is waited for.
type PendingReplica struct {
	// Name of the replica.
	Name string `json:"name"`
	// What is waited for.
	Reason PendingReplicaReason `json:"reason"`
	// Since when it is waited for this.
	Since metav1.Time `json:"since"`
	// Times that the failed operation of the shoot was tried again.
	// +optional
	Retries *int32 `json:"retries,omitempty"`
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
