package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RevisionsNamespace holds the revisions of objects with a staged rollout: Secrets of the type RevisionType, since
	// what an object contains may be confidential. An extension: Karmada has no such namespace.
	RevisionsNamespace = "trellis-rollouts"
	// RevisionType is the type of the Secrets that hold revisions.
	RevisionType = "federation.trellis.garden/revision"
	// RevisionBindingLabel, on such a Secret, identifies the binding of the object by a hash of its namespace and name.
	RevisionBindingLabel = "federation.trellis.garden/revision-of"
	// RevisionAnnotation, on a Work, is the revision of the object that it holds. Only for objects with a staged
	// rollout.
	RevisionAnnotation = "federation.trellis.garden/revision"
)

// RolloutControl is what people ask of the rollout of one object. trellisctl rollout writes it; policies don't touch
// it. An extension: Karmada has no such type.
type RolloutControl struct {
	// Paused stops before the next wave, also before the first one of a new change.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Resumed lets a rollout go on that has stopped.
	// +optional
	Resumed *RolloutResumption `json:"resumed,omitempty"`
	// Undo gives all clusters another revision than the rollout would.
	// +optional
	Undo *RolloutUndo `json:"undo,omitempty"`
}

// RolloutResumption names the stop of a rollout that is over.
type RolloutResumption struct {
	// Number of the rollout, as in status.rollout.number. It has no meaning for others.
	Number int64 `json:"number"`
	// Stop is the number of the stop, as in status.rollout.stops. Those before it are over as well.
	Stop int32 `json:"stop"`
}

// RolloutUndo replaces the result of a rollout until the object changes again.
type RolloutUndo struct {
	// Number of the rollout, as in status.rollout.number. It has no meaning for others.
	Number int64 `json:"number"`
	// Revision that all clusters get instead; one of status.rollout.revisions.
	Revision string `json:"revision"`
}

// RolloutPhase says how far a rollout is.
type RolloutPhase string

// Values of RolloutPhase.
const (
	// RolloutProgressing: clusters of the current wave are not healthy with the new revision yet.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutSoaking: they are, and have to stay so for a while.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutPaused: somebody, or the policy, wants it to wait.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutFailed: a wave was not healthy for too long. Nothing goes on before somebody resumes or undoes it.
	RolloutFailed RolloutPhase = "Failed"
	// RolloutRolledBack: all clusters have another revision than that of the object.
	RolloutRolledBack RolloutPhase = "RolledBack"
	// RolloutCompleted: all clusters have the revision of the object.
	RolloutCompleted RolloutPhase = "Completed"
)

// Reasons of phases of rollouts.
const (
	// RolloutReasonInitial: the first revision of an object goes everywhere at once.
	RolloutReasonInitial = "Initial"
	// RolloutReasonAllWavesDone: of Completed.
	RolloutReasonAllWavesDone = "AllWavesDone"
	// RolloutReasonReverted: the object has again the content that is complete already, so that all clusters get it at
	// once.
	RolloutReasonReverted = "Reverted"
	// RolloutReasonWaiting: of Progressing.
	RolloutReasonWaiting = "WaitingForClusters"
	// RolloutReasonHealthy: of Soaking.
	RolloutReasonHealthy = "ClustersHealthy"
	// RolloutReasonWavePause: the policy wants somebody to resume after the wave.
	RolloutReasonWavePause = "PauseAfterWave"
	// RolloutReasonPolicyPause: spec.rollout.paused of the policy.
	RolloutReasonPolicyPause = "PausedByPolicy"
	// RolloutReasonUserPause: spec.rolloutControl.paused of the binding.
	RolloutReasonUserPause = "PausedByUser"
	// RolloutReasonInvalidPlan: the policy's waves cannot be understood.
	RolloutReasonInvalidPlan = "InvalidPlan"
	// RolloutReasonDeadline: of Failed and RolledBack.
	RolloutReasonDeadline = "ProgressDeadlineExceeded"
	// RolloutReasonUndone: spec.rolloutControl.undo of the binding.
	RolloutReasonUndone = "Undone"
)

// RolloutStatus is how far the rollout of an object is, and all that the next step depends on. An extension: Karmada
// has no such type.
type RolloutStatus struct {
	// Number counts the rollouts of the object; every change of it begins a new one.
	Number int64 `json:"number"`
	// Phase of the rollout: Progressing, Soaking, Paused, Failed, RolledBack or Completed.
	Phase RolloutPhase `json:"phase"`
	// Reason of the phase, a word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what is waited for, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// Since is when phase or reason changed last.
	Since metav1.Time `json:"since"`
	// StableRevision is what clusters have whose wave has not come yet, and all of them after a rollback.
	StableRevision string `json:"stableRevision"`
	// UpdateRevision is that of the object.
	UpdateRevision string `json:"updateRevision"`
	// Revisions are those that can be gone back to, in the order of their rollouts.
	// +optional
	Revisions []RolloutRevision `json:"revisions,omitempty"`
	// CurrentWave is how many waves get the new revision: the last of them is the current one.
	// +optional
	CurrentWave int32 `json:"currentWave,omitempty"`
	// WaveResumed tells that somebody resumed the rollout after the current wave.
	// +optional
	WaveResumed bool `json:"waveResumed,omitempty"`
	// HealthySince is since when all clusters that have the new revision have been healthy. Absent while one is not.
	// +optional
	HealthySince *metav1.Time `json:"healthySince,omitempty"`
	// UnhealthySeconds is how long the current wave was not healthy, without the time since UnhealthySince.
	// +optional
	UnhealthySeconds int32 `json:"unhealthySeconds,omitempty"`
	// UnhealthySince is since when the progress deadline runs. Absent while it doesn't.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`
	// Stops is how often the rollout has stopped so far, to wait for somebody to resume it.
	// +optional
	Stops int32 `json:"stops,omitempty"`
	// Waves of the rollout, in their order.
	// +optional
	Waves []RolloutWaveStatus `json:"waves,omitempty"`
	// PlanHash identifies the waves of the policy that Waves were made of.
	// +optional
	PlanHash string `json:"planHash,omitempty"`
}

// RolloutRevision is a version of an object.
type RolloutRevision struct {
	// Revision is its name, made of its content.
	Revision string `json:"revision"`
	// Number of the last rollout of it.
	Number int64 `json:"number"`
	// Time when that rollout began.
	Time metav1.Time `json:"time"`
	// TemplateGeneration is the newest generation of the object in the fleet that had this content.
	// +optional
	TemplateGeneration int64 `json:"templateGeneration,omitempty"`
}

// RolloutWaveStatus is how far a wave is.
type RolloutWaveStatus struct {
	// Name of the wave.
	Name string `json:"name"`
	// Clusters of the wave, sorted.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// Updated is the number of clusters that have the new revision.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// Healthy is the number of clusters that are healthy with it.
	// +optional
	Healthy int32 `json:"healthy,omitempty"`
	// Unavailable is the number of clusters that are not waited for: they don't answer, leave the fleet, or dispatching
	// to them is suspended. They get the new revision when they are back.
	// +optional
	Unavailable int32 `json:"unavailable,omitempty"`
	// Left tells that all clusters of the wave lost the object after the wave had come, so that nothing shows whether
	// the new revision is healthy.
	// +optional
	Left bool `json:"left,omitempty"`
}
