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
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,opt,name=conditions"`
	// What cannot be done at present, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Constraints []Condition `json:"constraints,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,opt,name=constraints"`
	// The gardenlet that worked last on the object.
	Gardener Gardener `json:"gardener" protobuf:"bytes,3,opt,name=gardener"`
	// Whether the cluster sleeps.
	IsHibernated bool `json:"hibernated" protobuf:"bytes,4,opt,name=hibernated"`
	// What was done last, or is being done.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty" protobuf:"bytes,5,opt,name=lastOperation"`
	// Errors of the last operation, one per failed task.
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty" protobuf:"bytes,6,opt,name=lastErrors"`
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,7,opt,name=observedGeneration"`
	// When the present series of tries began.
	// +optional
	RetryCycleStartTime *metav1.Time `json:"retryCycleStartTime,omitempty" protobuf:"bytes,8,opt,name=retryCycleStartTime"`
	// Seed that runs the control plane; differs from spec.seedName while it moves.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,9,opt,name=seedName"`
	// Name of the control plane's namespace in the seed. Immutable once set.
	TechnicalID string `json:"technicalID" protobuf:"bytes,10,opt,name=technicalID"`
	// Unique id that stays when the control plane moves.
	UID types.UID `json:"uid" protobuf:"bytes,11,opt,name=uid"`
	// Identity that is unique in all landscapes. Immutable once set.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty" protobuf:"bytes,12,opt,name=clusterIdentity"`
	// Addresses of the API server and of other endpoints.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	AdvertisedAddresses []ShootAdvertisedAddress `json:"advertisedAddresses,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,13,opt,name=advertisedAddresses"`
	// When the move to another seed began.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty" protobuf:"bytes,14,opt,name=migrationStartTime"`
	// How far rotations are.
	// +optional
	Credentials *ShootCredentials `json:"credentials,omitempty" protobuf:"bytes,15,opt,name=credentials"`
	// When a schedule last changed the hibernation.
	// +optional
	LastHibernationTriggerTime *metav1.Time `json:"lastHibernationTriggerTime,omitempty" protobuf:"bytes,16,opt,name=lastHibernationTriggerTime"`
	// What the last maintenance did.
	// +optional
	LastMaintenance *LastMaintenance `json:"lastMaintenance,omitempty" protobuf:"bytes,17,opt,name=lastMaintenance"`
	// Address ranges that are in use.
	// +optional
	Networking *NetworkingStatus `json:"networking,omitempty" protobuf:"bytes,19,opt,name=networking"`
	// Which pools wait for in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty" protobuf:"bytes,20,opt,name=inPlaceUpdates"`
	// Which pools wait for a rollout that was asked for.
	// +optional
	ManualWorkerPoolRollout *ManualWorkerPoolRollout `json:"manualWorkerPoolRollout,omitempty" protobuf:"bytes,21,opt,name=manualWorkerPoolRollout"`
	// How far a live migration is.
	// +optional
	LiveMigration *LiveMigration `json:"liveMigration,omitempty" protobuf:"bytes,22,opt,name=liveMigration"`
}

// ShootAdvertisedAddress is an address of the cluster.
type ShootAdvertisedAddress struct {
	// external, internal, service-account-issuer, or another name.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// URL with scheme.
	URL string `json:"url" protobuf:"bytes,2,opt,name=url"`
	// What answers there.
	// +optional
	Application *string `json:"application,omitempty" protobuf:"bytes,3,opt,name=application"`
}

// ShootCredentials tells the state of a cluster's credentials.
type ShootCredentials struct {
	// How far rotations are.
	// +optional
	Rotation *ShootCredentialsRotation `json:"rotation,omitempty" protobuf:"bytes,1,opt,name=rotation"`
	// How data is encrypted in etcd.
	// +optional
	EncryptionAtRest *EncryptionAtRest `json:"encryptionAtRest,omitempty" protobuf:"bytes,2,opt,name=encryptionAtRest"`
}

// ShootCredentialsRotation tells how far rotations are.
type ShootCredentialsRotation struct {
	// Of the certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty" protobuf:"bytes,1,opt,name=certificateAuthorities"`
	// Of the SSH key of the machines.
	// +optional
	SSHKeypair *ShootSSHKeypairRotation `json:"sshKeypair,omitempty" protobuf:"bytes,3,opt,name=sshKeypair"`
	// Of the passwords of the monitoring.
	// +optional
	Observability *ObservabilityRotation `json:"observability,omitempty" protobuf:"bytes,4,opt,name=observability"`
	// Of the key that signs service account tokens.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty" protobuf:"bytes,5,opt,name=serviceAccountKey"`
	// Of the key for encryption at rest.
	// +optional
	ETCDEncryptionKey *ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty" protobuf:"bytes,6,opt,name=etcdEncryptionKey"`
}

// CARotation tells how far the rotation of the certificate authorities is.
type CARotation struct {
	// How far it is.
	Phase CredentialsRotationPhase `json:"phase" protobuf:"bytes,1,opt,name=phase"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,3,opt,name=lastInitiationTime"`
	// When the first half of the last rotation was done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty" protobuf:"bytes,4,opt,name=lastInitiationFinishedTime"`
	// When the second half of the last rotation began.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty" protobuf:"bytes,5,opt,name=lastCompletionTriggeredTime"`
	// Pools whose machines have to be replaced first.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty" protobuf:"bytes,6,opt,name=pendingWorkersRollouts"`
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
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,2,opt,name=lastInitiationTime"`
}

// ShootSSHKeypairRotation tells when the SSH key was rotated.
type ShootSSHKeypairRotation struct {
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,1,opt,name=lastInitiationTime"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
}

// ObservabilityRotation tells when the monitoring's passwords were rotated.
type ObservabilityRotation struct {
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,1,opt,name=lastInitiationTime"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
}

// ServiceAccountKeyRotation tells how far the rotation of the key for service account tokens is.
type ServiceAccountKeyRotation struct {
	// How far it is.
	Phase CredentialsRotationPhase `json:"phase" protobuf:"bytes,1,opt,name=phase"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,3,opt,name=lastInitiationTime"`
	// When the first half of the last rotation was done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty" protobuf:"bytes,4,opt,name=lastInitiationFinishedTime"`
	// When the second half of the last rotation began.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty" protobuf:"bytes,5,opt,name=lastCompletionTriggeredTime"`
	// Pools whose machines have to be replaced first.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty" protobuf:"bytes,6,opt,name=pendingWorkersRollouts"`
}

// ETCDEncryptionKeyRotation tells how far the rotation of the key for encryption at rest is.
type ETCDEncryptionKeyRotation struct {
	// How far it is.
	Phase CredentialsRotationPhase `json:"phase" protobuf:"bytes,1,opt,name=phase"`
	// When the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
	// When the last rotation began.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,3,opt,name=lastInitiationTime"`
	// When the first half of the last rotation was done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty" protobuf:"bytes,4,opt,name=lastInitiationFinishedTime"`
	// When the second half of the last rotation began.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty" protobuf:"bytes,5,opt,name=lastCompletionTriggeredTime"`
	// Whether the second half follows by itself.
	//
	// Deprecated: the rotation always runs in one go.
	// +optional
	AutoCompleteAfterPrepared *bool `json:"autoCompleteAfterPrepared,omitempty" protobuf:"bytes,6,opt,name=autoCompleteAfterPrepared"`
}

// EncryptionAtRest tells how data is encrypted in etcd.
type EncryptionAtRest struct {
	// Encrypted resources besides secrets.
	// +optional
	Resources []string `json:"resources,omitempty" protobuf:"bytes,1,opt,name=resources"`
	// The cipher in use.
	Provider EncryptionProviderStatus `json:"provider" protobuf:"bytes,2,opt,name=provider"`
}

// EncryptionProviderStatus tells the cipher in use.
type EncryptionProviderStatus struct {
	// Cipher.
	Type EncryptionProviderType `json:"type" protobuf:"bytes,1,opt,name=type"`
}

// LastMaintenance tells what the last maintenance did.
type LastMaintenance struct {
	// What was changed, for humans.
	Description string `json:"description" protobuf:"bytes,1,opt,name=description"`
	// When it began.
	TriggeredTime metav1.Time `json:"triggeredTime" protobuf:"bytes,2,opt,name=triggeredTime"`
	// How it ended.
	State LastOperationState `json:"state" protobuf:"bytes,3,opt,name=state"`
	// Why it failed.
	// +optional
	FailureReason *string `json:"failureReason,omitempty" protobuf:"bytes,4,opt,name=failureReason"`
}

// NetworkingStatus tells the address ranges in use.
type NetworkingStatus struct {
	// Ranges of pod addresses.
	// +optional
	Pods []string `json:"pods,omitempty" protobuf:"bytes,1,opt,name=pods"`
	// Ranges of node addresses.
	// +optional
	Nodes []string `json:"nodes,omitempty" protobuf:"bytes,2,opt,name=nodes"`
	// Ranges of service addresses.
	// +optional
	Services []string `json:"services,omitempty" protobuf:"bytes,3,opt,name=services"`
	// Ranges from which traffic leaves the cluster.
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty" protobuf:"bytes,4,opt,name=egressCIDRs"`
}

// InPlaceUpdatesStatus tells which pools wait for in-place updates.
type InPlaceUpdatesStatus struct {
	// Waiting pools.
	// +optional
	PendingWorkerUpdates *PendingWorkerUpdates `json:"pendingWorkerUpdates,omitempty" protobuf:"bytes,1,opt,name=pendingWorkerUpdates"`
}

// PendingWorkerUpdates lists pools that wait for in-place updates.
type PendingWorkerUpdates struct {
	// Names of pools that are updated automatically.
	// +optional
	AutoInPlaceUpdate []string `json:"autoInPlaceUpdate,omitempty" protobuf:"bytes,1,opt,name=autoInPlaceUpdate"`
	// Names of pools that are updated on request.
	// +optional
	ManualInPlaceUpdate []string `json:"manualInPlaceUpdate,omitempty" protobuf:"bytes,2,opt,name=manualInPlaceUpdate"`
}

// ManualWorkerPoolRollout tells which pools wait for a rollout that was asked for.
type ManualWorkerPoolRollout struct {
	// Pools whose machines have to be replaced first.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty" protobuf:"bytes,1,opt,name=pendingWorkersRollouts"`
}

// LiveMigration tells how far a live migration is.
type LiveMigration struct {
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,opt,name=conditions"`
}
