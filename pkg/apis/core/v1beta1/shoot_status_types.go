package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ShootStatus is what was last observed of a Shoot.
type ShootStatus struct {
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// What cannot be done at present, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Constraints []Condition `json:"constraints,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// The gardenlet that worked last on the object.
	Gardener Gardener `json:"gardener"`
	// Whether the cluster sleeps.
	IsHibernated bool `json:"hibernated"`
	// What was done last, or is being done.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// Errors of the last operation, one per failed task.
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// When the present series of tries began.
	// +optional
	RetryCycleStartTime *metav1.Time `json:"retryCycleStartTime,omitempty"`
	// Seed that runs the control plane; differs from spec.seedName while it moves.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Name of the control plane's namespace in the seed. Immutable once set.
	TechnicalID string `json:"technicalID"`
	// Unique id that stays when the control plane moves.
	UID types.UID `json:"uid"`
	// Identity that is unique in all landscapes. Immutable once set.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty"`
	// Addresses of the API server and of other endpoints.
	// +optional
	AdvertisedAddresses []ShootAdvertisedAddress `json:"advertisedAddresses,omitempty"`
	// When the move to another seed began.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty"`
	// How far rotations are.
	// +optional
	Credentials *ShootCredentials `json:"credentials,omitempty"`
	// When a schedule last changed the hibernation.
	// +optional
	LastHibernationTriggerTime *metav1.Time `json:"lastHibernationTriggerTime,omitempty"`
	// What the last maintenance did.
	// +optional
	LastMaintenance *LastMaintenance `json:"lastMaintenance,omitempty"`
	// Address ranges that are in use.
	// +optional
	Networking *NetworkingStatus `json:"networking,omitempty"`
	// Which pools wait for in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
	// Which pools wait for a rollout that was asked for.
	// +optional
	ManualWorkerPoolRollout *ManualWorkerPoolRollout `json:"manualWorkerPoolRollout,omitempty"`
	// How far a live migration is.
	// +optional
	LiveMigration *LiveMigration `json:"liveMigration,omitempty"`
}

// ShootAdvertisedAddress is an address of the cluster.
type ShootAdvertisedAddress struct {
	// external, internal, service-account-issuer, or another name.
	Name string `json:"name"`
	// URL with scheme.
	URL string `json:"url"`
	// What answers there.
	// +optional
	Application *string `json:"application,omitempty"`
}

// ShootCredentials tells the state of a cluster's credentials.
type ShootCredentials struct {
	// How far rotations are.
	// +optional
	Rotation *ShootCredentialsRotation `json:"rotation,omitempty"`
	// How data is encrypted in etcd.
	// +optional
	EncryptionAtRest *EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// ShootCredentialsRotation tells how far rotations are.
type ShootCredentialsRotation struct {
	// Of the certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`
	// Of the SSH key of the machines.
	// +optional
	SSHKeypair *ShootSSHKeypairRotation `json:"sshKeypair,omitempty"`
	// Of the passwords of the monitoring.
	// +optional
	Observability *ObservabilityRotation `json:"observability,omitempty"`
	// Of the key that signs service account tokens.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
	// Of the key for encryption at rest.
	// +optional
	ETCDEncryptionKey *ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty"`
}

// CARotation tells how far the rotation of the certificate authorities is.
type CARotation struct {
	// How far it is.
	Phase CredentialsRotationPhase `json:"phase"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// When the first half of the last rotation was done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// When the second half of the last rotation began.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
	// Pools whose machines have to be replaced first.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// CredentialsRotationPhase is how far a rotation in two halves is.
type CredentialsRotationPhase string

const (
	// RotationPreparing is creating the new credential beside the old one.
	RotationPreparing CredentialsRotationPhase = "Preparing"
	// RotationPreparingWithoutWorkersRollout is the same, with machines left alone.
	RotationPreparingWithoutWorkersRollout CredentialsRotationPhase = "PreparingWithoutWorkersRollout"
	// RotationWaitingForWorkersRollout is waiting for machines to be replaced.
	RotationWaitingForWorkersRollout CredentialsRotationPhase = "WaitingForWorkersRollout"
	// RotationPrepared has both credentials in use; clients can switch over.
	RotationPrepared CredentialsRotationPhase = "Prepared"
	// RotationCompleting is removing the old credential.
	RotationCompleting CredentialsRotationPhase = "Completing"
	// RotationCompleted has only the new credential in use.
	RotationCompleted CredentialsRotationPhase = "Completed"
)

// PendingWorkersRollout names a pool whose machines have to be replaced.
type PendingWorkersRollout struct {
	// Name of the pool.
	Name string `json:"name"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// ShootSSHKeypairRotation tells when the SSH key was rotated.
type ShootSSHKeypairRotation struct {
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
}

// ObservabilityRotation tells when the monitoring's passwords were rotated.
type ObservabilityRotation struct {
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
}

// ServiceAccountKeyRotation tells how far the rotation of the key for service account tokens is.
type ServiceAccountKeyRotation struct {
	// How far it is.
	Phase CredentialsRotationPhase `json:"phase"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// When the first half of the last rotation was done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// When the second half of the last rotation began.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
	// Pools whose machines have to be replaced first.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// ETCDEncryptionKeyRotation tells how far the rotation of the key for encryption at rest is.
type ETCDEncryptionKeyRotation struct {
	// How far it is.
	Phase CredentialsRotationPhase `json:"phase"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// When the first half of the last rotation was done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// When the second half of the last rotation began.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
	// Whether the second half follows by itself.
	//
	// Deprecated: the rotation always runs in one go.
	// +optional
	AutoCompleteAfterPrepared *bool `json:"autoCompleteAfterPrepared,omitempty"`
}

// EncryptionAtRest tells how data is encrypted in etcd.
type EncryptionAtRest struct {
	// Encrypted resources besides secrets.
	// +optional
	Resources []string `json:"resources,omitempty"`
	// The cipher in use.
	Provider EncryptionProviderStatus `json:"provider"`
}

// EncryptionProviderStatus tells the cipher in use.
type EncryptionProviderStatus struct {
	// Cipher.
	Type EncryptionProviderType `json:"type"`
}

// LastMaintenance tells what the last maintenance did.
type LastMaintenance struct {
	// What was changed, for humans.
	Description string `json:"description"`
	// When it began.
	TriggeredTime metav1.Time `json:"triggeredTime"`
	// How it ended.
	State LastOperationState `json:"state"`
	// Why it failed.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`
}

// NetworkingStatus tells the address ranges in use.
type NetworkingStatus struct {
	// Ranges of pod addresses.
	// +optional
	Pods []string `json:"pods,omitempty"`
	// Ranges of node addresses.
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Ranges of service addresses.
	// +optional
	Services []string `json:"services,omitempty"`
	// Ranges from which traffic leaves the cluster.
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
}

// InPlaceUpdatesStatus tells which pools wait for in-place updates.
type InPlaceUpdatesStatus struct {
	// Waiting pools.
	// +optional
	PendingWorkerUpdates *PendingWorkerUpdates `json:"pendingWorkerUpdates,omitempty"`
}

// PendingWorkerUpdates lists pools that wait for in-place updates.
type PendingWorkerUpdates struct {
	// Names of pools that are updated automatically.
	// +optional
	AutoInPlaceUpdate []string `json:"autoInPlaceUpdate,omitempty"`
	// Names of pools that are updated on request.
	// +optional
	ManualInPlaceUpdate []string `json:"manualInPlaceUpdate,omitempty"`
}

// ManualWorkerPoolRollout tells which pools wait for a rollout that was asked for.
type ManualWorkerPoolRollout struct {
	// Pools whose machines have to be replaced first.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// LiveMigration tells how far a live migration is.
type LiveMigration struct {
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
